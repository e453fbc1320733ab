import assert from "node:assert/strict";
import { asksForTool } from "./model.ts";
import type { Conversation, Program } from "./program.ts";
import type { ClientsService } from "./service.ts";

/** What a case works with. */
export interface Trial {
  service: ClientsService;
  program: Program;
  installed: string;
  /** Calls the provider itself: shows that the program works at all. */
  direct: boolean;
}

/** One promise about every program. */
export interface ClientCase {
  name: string;
  /** Whether the case needs the service, and cannot be tried against a provider alone. */
  needsService?: true;
  /** Rejects with the program's own words when the promise is broken. */
  run(trial: Trial): Promise<void>;
}

const linkOfPaywall = /http:\/\/127\.0\.0\.1:9\/t\/\w+/;
const wrongKeyMs = 20_000;

interface Begun {
  conversation: Conversation;
  topUp(): Promise<void>;
  drain(): Promise<void>;
}

/** Starts a conversation of a new user, with money or without. */
async function begin(
  { service, program, installed, direct }: Trial,
  { money, key }: { money: boolean; key?: string },
): Promise<Begun> {
  const user = `${program.name}-${crypto.randomUUID().slice(0, 8)}`;
  const place = direct ? await service.directPlace(user) : await service.placeFor(user);
  if (money && !direct) await service.topUp(user);
  const conversation = await program.begin({ ...place, ...(key ? { key } : {}) }, installed);
  return { conversation, topUp: () => service.topUp(user), drain: () => service.drain(user) };
}

function answers(stream: boolean) {
  return async (trial: Trial) => {
    const { conversation } = await begin(trial, { money: true });
    assert.match(await conversation.ask("Say word-apple", { stream }), /Heard word-apple/);
    const next = await conversation.ask("Say word-pear", { stream });
    assert.match(next, /Heard word-pear/);
    assert.match(next, /Before that: word-apple/);
  };
}

function callsTool(stream: boolean) {
  return async (trial: Trial) => {
    const { conversation } = await begin(trial, { money: true });
    const said = await conversation.ask(`Please ${asksForTool}`, { stream });
    assert.match(said, /The tool said: [^]*tool-ran/);
  };
}

function meetsPaywall(stream: boolean) {
  return async (trial: Trial) => {
    const { conversation } = await begin(trial, { money: false });
    assert.match(await conversation.ask("Say word-apple", { stream }), linkOfPaywall);
  };
}

function goesOnOncePaid(stream: boolean) {
  return async (trial: Trial) => {
    const { conversation, topUp } = await begin(trial, { money: false });
    assert.match(await conversation.ask("Say word-apple", { stream }), linkOfPaywall);
    await topUp();
    assert.match(await conversation.ask("Say word-pear", { stream }), /Heard word-pear/);
    assert.match(await conversation.ask("Say word-fig", { stream }), /Heard word-fig/);
  };
}

function goesOnAfterMeetingItLater(stream: boolean) {
  return async (trial: Trial) => {
    const { conversation, topUp, drain } = await begin(trial, { money: true });
    assert.match(await conversation.ask("Say word-apple", { stream }), /Heard word-apple/);
    await drain();
    assert.match(await conversation.ask("Say word-plum", { stream }), linkOfPaywall);
    await topUp();
    const said = await conversation.ask("Say word-pear", { stream });
    assert.match(said, /Heard word-pear\. Before that: word-apple/);
  };
}

/** A program may repeat the call, but not for long. */
async function saysThatKeyIsWrong(trial: Trial): Promise<void> {
  const key = "sk_wrong_0123456789abcdef0123456789abcdef";
  const { conversation } = await begin(trial, { money: false, key });
  const startedAt = performance.now();
  const said = await conversation.ask("Say word-apple", { stream: false }).catch(String);
  const ms = performance.now() - startedAt;
  assert.match(said, /API key/i);
  assert.doesNotMatch(said, /Heard/);
  assert.ok(ms < wrongKeyMs, `${Math.round(ms / 1000)} s: ${said}`);
}

/** Every case, in the order of the table. */
export const clientCases: readonly ClientCase[] = [
  { name: "whole", run: answers(false) },
  { name: "streamed", run: answers(true) },
  { name: "tool", run: callsTool(false) },
  { name: "tool, streamed", run: callsTool(true) },
  { name: "paywall", needsService: true, run: meetsPaywall(false) },
  { name: "paywall, streamed", needsService: true, run: meetsPaywall(true) },
  { name: "paid", needsService: true, run: goesOnOncePaid(false) },
  { name: "paid, streamed", needsService: true, run: goesOnOncePaid(true) },
  { name: "paid later", needsService: true, run: goesOnAfterMeetingItLater(false) },
  { name: "paid later, streamed", needsService: true, run: goesOnAfterMeetingItLater(true) },
  { name: "wrong key", run: saysThatKeyIsWrong },
];
