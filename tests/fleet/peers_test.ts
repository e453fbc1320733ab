import assert from "node:assert/strict";
import { deadAfterMs, Peers } from "../../src/fleet/peers.ts";

const beatMs = 500;

/** Peers that are read twice a second; what `rows` says is what stands in the store. */
function watching() {
  const peers = new Peers(2 * beatMs);
  let elapsed = 1_000;
  const rows = new Map<string, number>();
  const read = (isWhole = true) =>
    peers.beginReading()({
      rows: [...rows].map(([id, at]) => ({ id, version: String(at), at })),
      isWhole,
      elapsed,
      now: elapsed,
    });
  return {
    peers,
    rows,
    read,
    /** Reads twice a second for some time; returns how often somebody was found to be gone. */
    watch(ms: number): number {
      let news = 0;
      for (const end = elapsed + ms; elapsed < end;) {
        elapsed += beatMs;
        if (read()) news++;
      }
      return news;
    },
    /** Time passes in which this process cannot read. */
    stall: (ms: number) => void (elapsed += ms),
    get elapsed() {
      return elapsed;
    },
  };
}

Deno.test("peers: a process whose row stays the same while it is watched is gone, once", () => {
  const { peers, rows, watch } = watching();
  rows.set("prc_a", 1);
  assert.equal(watch(beatMs + deadAfterMs - beatMs), 0);
  assert.equal(peers.isGone("prc_a"), false);
  assert.equal(watch(beatMs), 1);
  assert.equal(peers.isGone("prc_a"), true);
  assert.equal(watch(10_000), 0, "that is news only once");
});

Deno.test("peers: a stall of the store, in which nobody can beat, makes nobody gone", () => {
  const watched = watching();
  const { peers, rows, watch, stall } = watched;
  rows.set("prc_a", 1);
  watch(1_000);
  stall(120_000);
  assert.equal(watch(2_000), 0);
  assert.equal(peers.isGone("prc_a"), false);
  rows.set("prc_a", 2);
  watch(beatMs);
  stall(120_000);
  watch(2_000);
  assert.equal(peers.isGone("prc_a"), false);
});

Deno.test("peers: a process that was only paused is alive again with its next sign of life", () => {
  const { peers, rows, watch } = watching();
  rows.set("prc_a", 1);
  watch(10_000);
  assert.equal(peers.isGone("prc_a"), true);
  rows.set("prc_a", 2);
  watch(beatMs);
  assert.equal(peers.isGone("prc_a"), false);
});

Deno.test("peers: a process without a row is gone by the first reading that begins after it is asked for", () => {
  const { peers, rows, read } = watching();
  const take = peers.beginReading();
  assert.equal(peers.isGone("prc_new"), false);
  take({ rows: [], isWhole: true, elapsed: 2_000, now: 2_000 });
  assert.equal(peers.isGone("prc_new"), false, "its row may be younger than that reading");
  rows.set("prc_new", 1);
  read();
  assert.equal(peers.isGone("prc_new"), false);
  peers.isGone("prc_old");
  assert.equal(read(false), false, "rows were left out");
  assert.equal(peers.isGone("prc_old"), false);
  assert.equal(read(), true);
  assert.equal(peers.isGone("prc_old"), true);
});

Deno.test("peers: a process whose row goes is gone at once", () => {
  const { peers, rows, watch } = watching();
  rows.set("prc_a", 1);
  watch(1_000);
  rows.clear();
  assert.equal(watch(beatMs), 1);
  assert.equal(peers.isGone("prc_a"), true);
});

Deno.test("peers: clocks differ by what rows say as they are written, not by how old they are", () => {
  const watched = watching();
  const { peers, rows, watch, stall } = watched;
  rows.set("prc_dead", watched.elapsed - 3_600_000);
  rows.set("prc_ahead", watched.elapsed);
  watch(beatMs);
  assert.deepEqual(peers.differing(), []);
  rows.set("prc_ahead", watched.elapsed + 7_200_000);
  watch(beatMs);
  assert.deepEqual(peers.differing().map(([id]) => id), ["prc_ahead"]);
  assert.ok(Math.abs(peers.aheadMs("prc_ahead") - 7_200_000) < 1_000);
  rows.set("prc_ahead", watched.elapsed - 2_000);
  watch(beatMs);
  assert.equal(peers.aheadMs("prc_ahead"), 0, "within seconds they agree");
  rows.set("prc_ahead", watched.elapsed);
  stall(60_000);
  watch(beatMs);
  assert.equal(peers.aheadMs("prc_ahead"), 0, "it may have been written long ago");
});
