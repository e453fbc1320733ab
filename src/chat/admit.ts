import { ApiError } from "../base/errors.ts";
import type { Held } from "../ledger/hold.ts";
import { busyMessage, topUpMessage } from "../paywall/message.ts";
import type { Answer, Ask, ChatRooms } from "./answer.ts";
import { Meter } from "./meter.ts";
import { boundByBytes, boundMedia, countPrompt, type Media, withRoom } from "./prompt.ts";
import { type ChatQuote, type PromptSize, quoteChat } from "./quote.ts";
import { findReplay, runningMark, type StoredAnswer } from "./replay.ts";
import type { Paywall } from "./reply.ts";
import { loadTokenizer } from "./tokenizer.ts";

/** What became of a request for an answer. `settings_moved`: read the settings again. */
export type Admission =
  | { kind: "admitted"; answer: Answer }
  | { kind: "paywalled"; paywall: Paywall }
  | { kind: "replayed"; stored: StoredAnswer }
  | { kind: "settings_moved" };

/**
 * Holds what the answer may cost at most, before anything is sent. Throws 400 for content that
 * cannot be priced, 422 for a reused idempotency key, 429 at too many running answers.
 */
export async function admit(rooms: ChatRooms, ask: Ask): Promise<Admission> {
  const media = boundMedia(ask.chat, ask.terms.mediaTokens);
  const prompt: PromptSize = { bound: boundByBytes(ask.chat, media), counted: null };
  for (;;) {
    const replay = ask.replay && (await findReplay(rooms.deps, ask.ref, ask.replay));
    if (replay?.stored) return { kind: "replayed", stored: replay.stored };
    const held = await placeHold(rooms, ask, { prompt, remains: replay?.remains ?? null });
    switch (held.kind) {
      case "marked":
        continue;
      case "count":
        prompt.counted = withRoom(await countInput(rooms, ask, media));
        continue;
      case "settings_moved":
        return { kind: "settings_moved" };
      case "held":
        return { kind: "admitted", answer: open(rooms, ask, { quote: held.quote, media }) };
      default:
        return { kind: "paywalled", paywall: await paywallFor(rooms, ask, held.kind) };
    }
  }
}

async function placeHold(
  rooms: ChatRooms,
  ask: Ask,
  { prompt, remains }: { prompt: PromptSize; remains: Uint8Array | null },
): Promise<Held<ChatQuote>> {
  const { ref, id, replay, caller, chat, terms, user } = ask;
  return await rooms.holds.place<ChatQuote>({
    ref,
    id,
    snapshot: caller.snapshot,
    quote: quoteChat(chat, terms, prompt),
    mark: replay && runningMark(replay, { user, holdId: id, remains }),
  });
}

function countInput({ deps }: ChatRooms, { chat }: Ask, media: Media): Promise<number> {
  const pause = () => deps.clock.sleep(0);
  return loadTokenizer().then((count) => countPrompt(chat, media, { count, pause }));
}

function open(
  rooms: ChatRooms,
  ask: Ask,
  { quote, media }: { quote: ChatQuote; media: Media },
): Answer {
  const meter = new Meter({
    choices: ask.chat.choices,
    countInput: () => countInput(rooms, ask, media),
  });
  return { ...ask, quote, meter, controller: new AbortController() };
}

async function paywallFor(
  { topUpUrl }: ChatRooms,
  { caller, user }: Ask,
  kind: "insufficient_funds" | "busy",
): Promise<Paywall> {
  const url = await topUpUrl(caller.snapshot.project, user);
  const message = kind === "busy" ? busyMessage(url) : topUpMessage(url);
  return { reason: "insufficient_funds", message, url };
}

/** 404: the project has no price for this model, so it is not served. */
export function modelNotFound(model: string): ApiError {
  return new ApiError(404, {
    message: `The model '${model}' does not exist, or has no price in this project.`,
    code: "model_not_found",
    param: "model",
  });
}
