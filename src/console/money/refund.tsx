/** @jsxImportSource @hono/hono/jsx */
import { badRequest, notFound } from "../../base/errors.ts";
import { formatAmount } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import { findActivity } from "../../ledger/activities.ts";
import { absoluteAmount, type Entry } from "../../ledger/entry.ts";
import { requireNotReinstatement } from "../../ledger/record.ts";
import { checkId } from "../../projects/admin_guard.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { orShowFormAgain } from "../submitted_fields.ts";
import { ConfirmMoney, MoneyForm, readMoneyForm, recordedResult } from "./money_form.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { addressOf } from "../users/user_link.tsx";

const section = "/users";
const nothingLeft = "It is fully refunded: nothing is left.";

/** A manual refund, in part or in full: filled in, reviewed, recorded once. */
export function refundPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { recorder, deps } = services;

  async function show(visit: ProjectVisit, form: URLSearchParams, problem: string | null) {
    const { ref, original } = await findOriginal(services, visit, form);
    const left = await recorder.refundableAmount(ref, original);
    const view = {
      visit,
      form,
      problem,
      action: visit.here("/refund"),
      hidden: hiddenOf(original),
      amountHint: `Leave empty to refund the remaining amount: ${formatAmount(left)}.`,
    };
    const page = (
      <>
        <p>
          The {original.kind} of <strong>{absoluteAmount(original)}</strong> by{" "}
          <bdi>{original.user}</bdi>, <code>{original.id}</code>.
        </p>
        {left === 0n ? <p>{nothingLeft}</p> : <MoneyForm {...view} />}
      </>
    );
    return visit.page("Refund", page, { section, problem });
  }

  return {
    form: guard.project((visit) => {
      const { query } = visit.incoming;
      const named = { user: query("user") ?? "", activityId: query("activityId") ?? "" };
      return show(visit, new URLSearchParams(named), null);
    }),
    record: guard.project(async (visit) => {
      const { here, go, page } = visit;
      const form = await visit.form();
      return await orShowFormAgain(async () => {
        const { ref, original } = await findOriginal(services, visit, form);
        const back = addressOf(visit, original.user);
        const wish = readMoneyForm(form);
        if (!wish.confirmed) {
          const left = await recorder.refundableAmount(ref, original);
          if (left === 0n) throw badRequest("amount", nothingLeft);
          const amount = wish.amount ?? left;
          const hidden = hiddenOf(original);
          const common = { visit, says: <Says original={original} />, amount, wish, back, hidden };
          const review = (
            <ConfirmMoney {...common} formId={deps.id("form")} action={here("/refund")} />
          );
          return page("Record this refund?", review, { section });
        }
        const { amount, reason } = wish;
        const details = recordedResult(deps, visit, { action: "refund", reason, form });
        const result = await recorder.refund({ ref, original, amount, ...details });
        return go(back, result.kind === "replayed" ? "booked-before" : "refunded");
      }, (problem) => show(visit, form, problem));
    }),
  };
}

/** Throws 404 for an activity that is not the user's, 400 for a reversal. */
async function findOriginal(
  { deps }: ConsoleDeps,
  { project }: ProjectVisit,
  form: URLSearchParams,
) {
  const user = checkUserId(form.get("user"), "user");
  const activityId = checkId(form.get("activityId") ?? "", "activity");
  const found = await findActivity(deps.kv, project, { user, activityId });
  const isOwn = found?.entry.user === user &&
    (found.entry.projectId ?? project.id) === project.id;
  if (!found || !isOwn) throw notFound("activity");
  requireNotReinstatement(found.entry);
  return { ref: found.ref, original: found.entry };
}

function hiddenOf({ user, id }: Entry): Record<string, string> {
  return { user, activityId: id };
}

function Says({ original: { kind, user } }: { original: Entry }) {
  return kind === "deposit" || kind === "trial"
    ? (
      <>
        This {kind} is taken back: the balance of <bdi>{user}</bdi>{" "}
        decreases, as far as it is available, by
      </>
    )
    : (
      <>
        This {kind} is refunded: the balance of <bdi>{user}</bdi> increases by
      </>
    );
}
