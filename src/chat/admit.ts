import { ApiError } from "../base/errors.ts";
import { zero } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { depleted } from "../ledger/events.ts";
import type { Held, Rates } from "../ledger/hold.ts";
import type { Refusal } from "../ledger/obstacle.ts";
import { type BalanceView, viewBalance } from "../ledger/view.ts";
import { messageFor } from "../paywall/message.ts";
import { requireActive } from "../projects/active.ts";
import { tallyRefusal } from "../summaries/tally.ts";
import type { Answer, Ask, ChatRooms } from "./answer.ts";
import { blockedEvent, byUser, paywalledEvent, rateLimitedEvent, startedEvents } from "./events.ts";
import { type Place, rateLimited, tooFast } from "./limits.ts";
import { Meter } from "./meter.ts";
import { boundByBytes, boundMedia, countPrompt, type Media, withRoom } from "./prompt.ts";
import { type ChatQuote, type PromptSize, quoteChat } from "./quote.ts";
import { findEarlier } from "./earlier.ts";
import { runningMark, type StoredAnswer } from "./replay.ts";
import type { Paywall } from "./reply.ts";
import { Stretch } from "./stretch.ts";
import { plausibleUsage } from "./usage.ts";
import { loadTokenizer } from "./tokenizer.ts";

/** What became of a request for an answer. `settings_moved`: read the settings again. */
export type Admission =
  | { kind: "admitted"; answer: Answer }
  | { kind: "paywalled"; paywall: Paywall; rates: readonly Rates[] }
  | { kind: "replayed"; stored: StoredAnswer }
  | { kind: "settings_moved" };

/**
 * Holds what the answer may cost at most, before anything is sent. Throws 400 for content that
 * cannot be priced, 403 for an archived project, 422 for a reused idempotency key, 429 at too many
 * running answers.
 */
export async function admit(rooms: ChatRooms, ask: Ask): Promise<Admission> {
  const { key, snapshot: { project: { id: projectId, limits } } } = ask.caller;
  const { gates } = rooms;
  let place: Place | null = null;
  try {
    // Before they take what the key leaves to others.
    const who = { projectId, user: ask.user };
    const tooOften = gates.refusedTooOften(who, limits.user.requestsPerMinute);
    if (tooOften) return await refuseHaste(rooms, ask, tooOften);
    const entered = gates.enter(key.id, limits.key);
    if ("limited" in entered) return await refuseHaste(rooms, ask, entered.limited);
    place = entered;
    const admission = await admitTo(rooms, ask, place);
    if (admission.kind !== "admitted") place.leave();
    if (admission.kind !== "paywalled") return admission;
    return { ...admission, rates: [...admission.rates, place.rates] };
  } catch (error) {
    place?.leave();
    return await tellIfCrowded(rooms, ask, error);
  }
}

async function admitTo(rooms: ChatRooms, ask: Ask, place: Place): Promise<Admission> {
  const media = boundMedia(ask.chat, ask.terms.mediaTokens);
  const prompt: PromptSize = { bound: boundByBytes(ask.chat, media), counted: null, atLeast: 0 };
  const { ref, caller: { snapshot: { project } } } = ask;
  for (let replay = ask.earlier;; replay = await findEarlier(rooms, ask)) {
    if (replay?.stored) return { kind: "replayed", stored: replay.stored };
    requireActive(project);
    if (!ref) {
      const balance = viewBalance(zero, zero, project.currency);
      const nobody = { kind: "authorization_required" as const, balance };
      return await turnAway(rooms, ask, nobody);
    }
    const remains = replay?.remains ?? null;
    const held = await placeHold(rooms, { ...ask, ref }, { prompt, remains });
    switch (held.kind) {
      case "marked":
        continue;
      case "count": {
        const tokens = await countInput(rooms, ask, media, held.countTo);
        prompt.atLeast = withRoom(tokens);
        if (tokens <= held.countTo) prompt.counted = prompt.atLeast;
        continue;
      }
      case "settings_moved":
        return { kind: "settings_moved" };
      case "held": {
        const placed = { ...ask, ref, place, rates: [held.rates, place.rates] };
        return {
          kind: "admitted",
          answer: open(rooms, placed, { quote: held.quote, media, prompt }),
        };
      }
      case "rate_limited":
        return await refuseHaste(rooms, ask, held.rates, held.balance.available);
      default:
        return await turnAway(rooms, ask, held, [held.rates]);
    }
  }
}

async function placeHold(
  rooms: ChatRooms,
  ask: Ask & { ref: AccountRef },
  { prompt, remains }: { prompt: PromptSize; remains: Uint8Array | null },
): Promise<Held<ChatQuote>> {
  const { ref, id, replay, caller, chat, terms, firstRequest } = ask;
  return await rooms.holds.place<ChatQuote>({
    ref,
    id,
    snapshot: caller.snapshot,
    quote: quoteChat(chat, terms, prompt),
    meanwhile: ({ cap }) => firstRequest.prepare(cap),
    events: startedEvents(ask),
    mark: replay && runningMark(replay, { ref, holdId: id, remains }),
  });
}

async function countInput(
  { deps: { clock } }: ChatRooms,
  { chat }: Ask,
  media: Media,
  most = Infinity,
): Promise<number> {
  const count = await loadTokenizer();
  return await countPrompt(chat, media, { count, stretch: new Stretch(clock), most });
}

function open(
  rooms: ChatRooms,
  ask: Ask & Pick<Answer, "ref" | "place" | "rates">,
  { quote, media, prompt }: { quote: ChatQuote; media: Media; prompt: PromptSize },
): Answer {
  const meter = new Meter({
    choices: ask.chat.choices,
    plausible: plausibleUsage(prompt.bound, quote.cap * ask.chat.choices),
    countInput: (most) => countInput(rooms, ask, media, most),
    clock: rooms.deps.clock,
  });
  return { ...ask, quote, meter, controller: new AbortController() };
}

/** Whoever is faster than the project allows gets 429, or a message, as the project has it. */
async function refuseHaste(
  rooms: ChatRooms,
  ask: Ask,
  rates: Rates,
  balance = "0",
): Promise<Admission> {
  const { caller: { snapshot: { project } }, user } = ask;
  const limit = tooFast(rates)?.limit ?? "requests";
  rooms.deps.meter.refusals[limit].add();
  const date = new Date(rooms.deps.clock.now()).toISOString();
  const limited = rateLimitedEvent(ask, { limit, date });
  countRefusal(rooms, ask, "rate_limit_exceeded");
  if (project.limits.reply === "error") {
    await rooms.announce(project.id, [limited, blockedEvent(ask, "rate_limit_exceeded")]);
    throw rateLimited(rates);
  }
  await rooms.announce(project.id, [limited, paywalledEvent(ask, "rate_limited")]);
  const asked = { obstacle: "insufficient_funds", trigger: byUser(user) } as const;
  const url = await rooms.linkFor(project, user, asked);
  const languages = ask.request.headers.get("accept-language");
  const message = messageFor(project, "rate_limit", { url, balance, languages });
  const paywall = { reason: "limit_reached" as const, message, url };
  return { kind: "paywalled", paywall, rates: [rates] };
}

/** That too many answers run is told to those who listen, and thrown on. */
async function tellIfCrowded(rooms: ChatRooms, ask: Ask, error: unknown): Promise<never> {
  if (error instanceof ApiError && error.code === "concurrency_limit") {
    rooms.deps.meter.refusals.concurrency.add();
    countRefusal(rooms, ask, error.code);
    await rooms.announce(ask.caller.snapshot.project.id, [blockedEvent(ask, error.code)]);
  }
  throw error;
}

/** For the owner's overview: written with whatever is written next. */
function countRefusal({ deps }: ChatRooms, ask: Ask, reason: string): void {
  const { id } = ask.caller.snapshot.project;
  deps.committer.count(tallyRefusal(id, reason, deps.clock.now()));
}

type NotPaid = Omit<
  Exclude<Extract<Held<ChatQuote>, { balance: BalanceView }>, { kind: "rate_limited" }>,
  "rates"
>;

/** Nothing is held, so that it counts among the user's requests here; haste has its own count. */
async function turnAway(
  rooms: ChatRooms,
  ask: Ask,
  notPaid: NotPaid,
  rates: readonly Rates[] = [],
): Promise<Admission> {
  const { id: projectId, limits } = ask.caller.snapshot.project;
  const paywall = await paywallFor(rooms, ask, notPaid);
  const who = { projectId, user: ask.user };
  const counted = rooms.gates.refused(who, limits.user.requestsPerMinute);
  return { kind: "paywalled", paywall, rates: [...rates, counted] };
}

async function paywallFor(
  rooms: ChatRooms,
  ask: Ask,
  { kind, balance: { available } }: NotPaid,
): Promise<Paywall> {
  const { linkFor, announce } = rooms;
  rooms.deps.meter.refusedMoney.chat[kind].add();
  countRefusal(rooms, ask, kind);
  const { caller: { snapshot: { project } }, user, ref } = ask;
  const asked = { trigger: byUser(user), requestedAmount: null, available };
  const empty = kind === "insufficient_funds" && ref ? [depleted(ref, asked)] : [];
  const url = await linkFor(project, user, { obstacle: kind, trigger: byUser(user) });
  await announce(project.id, [paywalledEvent(ask, kind), ...empty]);
  const languages = ask.request.headers.get("accept-language");
  const message = messageFor(project, kind, { url, balance: available, languages });
  return { reason: reasons[kind], message, url };
}

// The holds of running answers stand in the way of money, not of leave to spend it.
const reasons: Record<NotPaid["kind"], Refusal> = {
  insufficient_funds: "insufficient_funds",
  busy: "insufficient_funds",
  authorization_required: "authorization_required",
  limit_reached: "limit_reached",
  spend_limit: "limit_reached",
};

/** 404: the project has no price for this model, so it is not served. */
export function modelNotFound(model: string): ApiError {
  return new ApiError(404, {
    message: `The model '${model}' does not exist, or has no price in this project.`,
    code: "model_not_found",
    param: "model",
  });
}
