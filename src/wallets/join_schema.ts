import { z } from "zod";
import { idOf } from "../base/fields.ts";

const reason = z.string().trim().min(10, { error: "must be a sentence of 10 characters or more" })
  .max(500).optional();

/** The body of a request to join a wallet with another one. */
export const joinBodySchema = z.strictObject({
  into: idOf("per", "The wallet that remains: it gets the money, the apps, and who may open them."),
  reasons: z.strictObject({
    from: reason.meta({ description: "Why the wallet that ends can be taken for its owner’s." }),
    into: reason.meta({ description: "The same for the wallet that remains." }),
  }).default({}).meta({
    description:
      "For a wallet that nobody can open: why the operator agrees in its owner’s place. " +
      "Owners who can open their wallet confirm there, and no reason is accepted.",
  }),
});
