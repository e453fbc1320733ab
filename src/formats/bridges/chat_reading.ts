import type { BridgeOptions } from "../../inference/format.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { ChatChoiceMender, mendWholeChoice } from "../chat/choice_mender.ts";
import type { ChoiceMender } from "../openai/choice_shape.ts";

/**
 * The field in which a bridge finds thinking that was a part of the content. Such thinking does not
 * go back to its server, as that in fields of their own does.
 */
const thoughtsField = "thinking";

/** Creates what mends the chunks of a chat for a bridge. */
export function bridgedMender(options: BridgeOptions): ChoiceMender {
  return new ChatChoiceMender({ ...options, thoughtsField });
}

/** The first choice of a whole chat, mended for a bridge; null for one without a message. */
export function bridgedChoice(choice: Json, options: BridgeOptions): JsonObject | null {
  return mendWholeChoice(choice, 0, { ...options, thoughtsField });
}
