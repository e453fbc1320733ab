import { z } from "zod";
import { isMask } from "../base/secret_mask.ts";
import type { Sealed } from "../store/secrets.ts";
import { noMask, secretSetting } from "./stored_secret.ts";

const visibleText = z.string().min(8).max(2048).regex(/^[\x21-\x7e]+$/, {
  error: "must be visible ASCII characters",
});
const secretText = noMask(visibleText);

const signingSecret = noMask(visibleText.max(512)).refine((text) => !text.includes(","), {
  error: "must not contain a comma",
});
const signingSecretsMax = 4;
/** Stored as one text, separated by commas. */
const webhookSecret = z.union([
  secretText.refine((text) => text.split(",").every((one) => one.length >= 8 && !isMask(one)), {
    error: "must have at least 8 characters, or be several such secrets separated by commas",
  }),
  z.array(signingSecret).min(1).max(signingSecretsMax).transform((list) => list.join(",")),
]);

/** A Stripe account in the settings of a project. */
export const stripeSchema = z.strictObject({
  secretKey: secretSetting(noMask(visibleText.max(512))),
  webhookSecret: secretSetting(webhookSecret).meta({
    description: "The webhook's signing secret, or several while Stripe replaces one by another.",
  }),
});

/** A project's own Stripe account, as stored. */
export interface StripeKeys {
  secretKey: Sealed;
  webhookSecret: Sealed;
}
