/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { badRequest } from "../../base/errors.ts";
import { type Amount, formatAmount, parseAmount } from "../../base/money.ts";
import type { Deps } from "../../deps.ts";
import { auditEntry } from "../../ledger/api/money_responses.ts";
import type { ProjectVisit } from "../guard.tsx";
import { decimalText, formIdOf, submittedText } from "../submitted_fields.ts";
import { Confirm, FormError, FormField, Hidden } from "../../pages/form_parts.tsx";
import { ExactMoney } from "../../pages/parts.tsx";

const reasonCharsMax = 500;

/** The input of a deposit or refund form. */
interface MoneyFormInput {
  /** Null where the field is empty. */
  amount: Amount | null;
  reason: string | null;
  /** Whether the review was confirmed. */
  confirmed: boolean;
}

/** Reads the form. Throws 400 for an invalid amount. */
export function readMoneyForm(form: URLSearchParams): MoneyFormInput {
  const typed = submittedText(form, "amount");
  const amount = parseAmount(decimalText(form, "amount"));
  if (typed !== null && (amount === null || amount === 0n)) {
    throw badRequest(
      "amount",
      "‘Amount’ must be greater than zero, with at most 12 digits before the point and 9 after " +
        `it, not '${typed.slice(0, 40)}'.`,
    );
  }
  const reason = submittedText(form, "reason")?.slice(0, reasonCharsMax) ?? null;
  return { amount, reason, confirmed: form.has("confirmed") };
}

/**
 * Returns what is recorded with the money: the reason and the actor, in its metadata and, in the
 * same write, in the audit trail. The form's id is the idempotency key, so that a form sent twice
 * is recorded once.
 */
export function recordedResult(
  deps: Deps,
  { session: { by } }: ProjectVisit,
  { action, reason, form }: {
    action: "deposit" | "refund";
    reason: string | null;
    form: URLSearchParams;
  },
) {
  const why = reason === null ? {} : { reason };
  const actor = { actorType: "paywall-owner", actorId: by.actor.id } as const;
  return {
    key: `console:${formIdOf(form)}`,
    issuer: "console" as const,
    metadata: { source: "console", by: by.actor.id, ...why },
    origin: { trigger: { source: "console", ...actor } as const, source: "console" },
    alongside: auditEntry(deps, { by, action, reason }),
  };
}

/**
 * The fields of a deposit or refund; submitting them leads to a review before anything is recorded.
 */
export function MoneyForm({ visit, form, problem, action, hidden, amountHint }: {
  visit: ProjectVisit;
  form: URLSearchParams;
  problem: string | null;
  action: string;
  hidden: Record<string, string>;
  /** What an empty amount means, where it is allowed. */
  amountHint: string | null;
}) {
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={action}>
        <Hidden fields={hidden} />
        <FormField
          name="amount"
          label={`Amount, ${visit.project.currency.toUpperCase()}`}
          value={form.get("amount") ?? ""}
          required={amountHint === null}
          more={{ inputmode: "decimal" }}
          {...(amountHint === null ? {} : { hint: amountHint })}
        />
        <FormField
          name="reason"
          label="Reason"
          value={form.get("reason") ?? ""}
          hint="Stored with the activity and in the audit trail."
          more={{ maxlength: String(reasonCharsMax) }}
        />
        <button type="submit" class="primary">Review</button>
      </form>
    </>
  );
}

/** The review: what exactly will be recorded. */
export function ConfirmMoney({ visit, says, amount, wish, action, back, hidden, formId }: {
  visit: ProjectVisit;
  /** A sentence that ends with the amount. */
  says: Child;
  amount: Amount;
  wish: MoneyFormInput;
  action: string;
  back: string;
  hidden: Record<string, string>;
  formId: string;
}) {
  const { currency } = visit.project;
  const exact = formatAmount(amount);
  const fields = {
    ...hidden,
    amount: exact,
    reason: wish.reason ?? "",
    formId,
    confirmed: "yes",
  };
  const text = (
    <>
      <p>
        {says}{" "}
        <strong>
          <ExactMoney amount={amount} currency={currency} />
        </strong>.
      </p>
      <p>
        {wish.reason === null ? "No reason given." : (
          <>
            Reason: <bdi>{wish.reason}</bdi>
          </>
        )}
      </p>
    </>
  );
  const button = `Record ${exact} ${currency.toUpperCase()}`;
  return <Confirm says={text} {...{ button, action, back, fields }} danger={false} />;
}
