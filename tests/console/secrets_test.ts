import assert from "node:assert/strict";
import { storedRows } from "../support/books.ts";
import { hiddenFields, type Shown, signedIn, type Visitor } from "../support/console.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

/** A form that creates a secret, filled in, and its action in the audit trail. */
interface Filled {
  path: string;
  form: Record<string, string>;
  action: string;
}

const forms: Record<string, (world: World, owner: Visitor) => Promise<Filled>> = {
  "a new key": async (_, owner) => {
    const hidden = hiddenFields((await owner.get("keys")).html, "/keys");
    const form = { ...hidden, name: "till", scopes: "money" };
    return { path: "keys", form, action: "key.created" };
  },
  "a new webhook": async (_, owner) => {
    const hidden = hiddenFields((await owner.get("webhooks")).html, "/webhooks");
    const form = { ...hidden, url: "https://hooks.example.com/farebox", events: "*" };
    return { path: "webhooks", form, action: "webhook.created" };
  },
  "a rotation": async (world, owner) => {
    const { id } = await subscribe(world);
    const path = `webhooks/${id}/rotate`;
    const form = { ...hiddenFields((await owner.get(path)).html, "/rotate"), hours: "0" };
    return { path, form, action: "webhook.rotated" };
  },
};

function secretOf(world: World, { html }: Shown): string {
  const [, secret] = /id="secret">([^<]+)</.exec(html) ?? assert.fail(`no secret on: ${html}`);
  world.seenSecrets.add(secret ?? "");
  return secret ?? "";
}

async function timesDone(world: World, action: string): Promise<number> {
  const path = `/v1/admin/projects/${world.projectId}/audit`;
  const { actions } = (await world.json(path, { key: adminKey })).body;
  return actions.filter((each: Body) => each.action === action).length;
}

for (const [name, fill] of Object.entries(forms)) {
  Deno.test(`console: ${name}, clicked twice, creates one, and its secret is on the last page too`, async () => {
    const gate = createGate();
    const store = createScriptedStore();
    using world = await createWorld({ wrapKv: store.wrap });
    const owner = await signedIn(world);
    const { path, form, action } = await fill(world, owner);
    store.writes.length = 0;
    store.atomic = async (write, real) => {
      await gate.opened;
      return await real(write);
    };
    const first = owner.post(path, form);
    await world.until(() => store.writes.length > 0);
    const second = owner.post(path, form);
    gate.open();
    const secrets = [await first, await second, await owner.post(path, form)]
      .map((shown) => secretOf(world, shown));
    assert.equal(new Set(secrets).size, 1);
    assert.equal(await timesDone(world, action), 1);
  });

  Deno.test(`console: the secret of ${name} is shown again for a few minutes, only to the same browser`, async () => {
    using world = await createWorld();
    const owner = await signedIn(world);
    const { path, form, action } = await fill(world, owner);
    const secret = secretOf(world, await owner.post(path, form));
    await world.clock.advance(5 * 60 * 1000);
    assert.equal(secretOf(world, await owner.post(path, form)), secret);
    const text = (await storedRows(world)).map(({ value }) =>
      new TextDecoder().decode(value ?? undefined)
    );
    assert.ok(!text.join("\n").includes(secret), "nothing shows it that is stored");
    const other = await owner.post(path, { ...form, name: "shop", hours: "1", description: "x" });
    assert.match(other.location ?? "", /already-sent/, "the form was for something else");
    await world.clock.advance(1);
    assert.match((await owner.post(path, form)).location ?? "", /already-sent/);
    assert.equal(await timesDone(world, action), 1);
    const elsewhere = await signedIn(world);
    assert.notEqual(secretOf(world, await elsewhere.post(path, form)), secret);
  });

  Deno.test(`console: ${name} that the store refused is created when the form is sent again`, async () => {
    let down = false;
    using world = await createWorld({
      wrapKv: (kv) => ({
        ...kv,
        atomic(write) {
          const refused = down && write.sets.some(({ key }) => key[0] === "project");
          return refused ? Promise.reject(new Error("down")) : kv.atomic(write);
        },
      }),
    });
    const owner = await signedIn(world);
    const { path, form, action } = await fill(world, owner);
    down = true;
    assert.equal((await owner.post(path, form)).status, 503);
    down = false;
    secretOf(world, await owner.post(path, form));
    assert.equal(await timesDone(world, action), 1);
  });
}
