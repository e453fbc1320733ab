import { createHash } from "node:crypto";
import { BoundedMap } from "../../base/bounded_map.ts";
import { isObject, type Json } from "../../base/json.ts";
import type { Target } from "../../upstreams/upstream.ts";

/** Which conversation a request belongs to. */
export interface Conversation {
  /** Equal for all requests of one conversation of a user. */
  key: string;
  /** The caller named it, so that it is known before its first response. */
  isNamed: boolean;
  /** The request has earlier responses of the model. */
  isContinued: boolean;
}

const openingCharsMax = 16 * 1024;

/**
 * The conversation of a request: by the key that its caller names, else by how it opens: everything
 * up to its first message of the user. Null where neither is there.
 */
export function conversationIn(
  { name, system, messages }: {
    name?: Json | undefined;
    system?: Json | undefined;
    messages: Json | undefined;
  },
): Conversation | null {
  const turns = Array.isArray(messages) ? messages : [];
  const isContinued = turns.some((turn) => isObject(turn) && turn.role === "assistant");
  if (typeof name === "string" && name !== "") {
    return { key: `named ${name.slice(0, openingCharsMax)}`, isNamed: true, isContinued };
  }
  const first = turns.findIndex((turn) => isObject(turn) && turn.role === "user");
  if (first < 0) return null;
  const opening = JSON.stringify([system ?? null, ...turns.slice(0, first + 1)]);
  const hash = createHash("sha256").update(opening.slice(0, openingCharsMax)).digest("base64");
  return { key: `opens ${hash}`, isNamed: false, isContinued };
}

const rememberedMax = 10_000;

/** Which target last answered a conversation, in this process. */
export interface AnsweredConversations {
  /** The one of these targets; null where it is none of them, or not known. */
  find(conversation: string, targets: readonly Target[]): Target | null;
  note(conversation: string, target: Target): void;
}

/** Creates an empty memory. Of too many conversations, those go that were answered longest ago. */
export function createAnsweredConversations(): AnsweredConversations {
  const answered = new BoundedMap<string, string>(rememberedMax);
  const nameOf = ({ upstream, model }: Target) => `${upstream.name} ${model}`;
  return {
    find(conversation, targets) {
      const name = answered.get(conversation);
      return targets.find((target) => nameOf(target) === name) ?? null;
    },
    note(conversation, target) {
      answered.set(conversation, nameOf(target));
    },
  };
}
