/** @jsxImportSource @hono/hono/jsx */
import { ApiError, badRequest, notFound } from "../../base/errors.ts";
import { checkUserId } from "../../base/user_id.ts";
import { requireActive } from "../../projects/active.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { orShowFormAgain } from "../submitted_fields.ts";
import { ConfirmMoney, MoneyForm, readMoneyForm, recordedResult } from "./money_form.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { addressOf } from "../users/user_link.tsx";

const section = "/users";

/** A manual deposit: filled in, confirmed, recorded once. */
export function depositPages(guard: ConsoleGuard, { recorder, deps }: ConsoleDeps) {
  function show(visit: ProjectVisit, form: URLSearchParams, problem: string | null): Response {
    const user = userOf(visit, form);
    const title = `Deposit for ${user}`;
    const heading = (
      <>
        Deposit for <bdi>{user}</bdi>
      </>
    );
    if (visit.project.status !== "active") {
      const page = <Archived back={addressOf(visit, user)} />;
      return visit.page(title, page, { section, heading, status: 403 });
    }
    const action = visit.here("/deposit");
    const view = { visit, form, problem, action, hidden: { user }, amountHint: null };
    return visit.page(title, <MoneyForm {...view} />, { section, heading, problem });
  }

  return {
    form: guard.project((visit) => {
      const user = visit.incoming.query("user") ?? "";
      return show(visit, new URLSearchParams({ user }), null);
    }),
    record: guard.project(async (visit) => {
      const { project: { id: projectId }, here, go, page } = visit;
      const form = await visit.form();
      return await orShowFormAgain(async () => {
        const user = userOf(visit, form);
        const back = addressOf(visit, user);
        const wish = readMoneyForm(form);
        const { amount } = wish;
        if (amount === null) throw badRequest("amount", "‘Amount’ is required.");
        if (!wish.confirmed) {
          requireActive(visit.project);
          const says = (
            <>
              The balance of <bdi>{user}</bdi> increases by
            </>
          );
          const formId = deps.id("form");
          const common = { visit, says, amount, wish, back, formId, hidden: { user } };
          const review = <ConfirmMoney {...common} action={here("/deposit")} />;
          return page("Record this deposit?", review, { section });
        }
        const details = recordedResult(deps, visit, {
          action: "deposit",
          reason: wish.reason,
          form,
        });
        const result = await recorder.deposit({ ref: { projectId, user }, amount, ...details });
        return go(back, result.kind === "replayed" ? "booked-before" : "deposited");
      }, (problem) => show(visit, form, problem)).catch((error) => {
        if (!(error instanceof ApiError && error.code === "project_archived")) throw error;
        return show(visit, form, error.message);
      });
    }),
  };
}

function Archived({ back }: { back: string }) {
  return (
    <>
      <p>This project is archived and takes no deposits.</p>
      <p>
        <a href={back}>Back to the user</a>
      </p>
    </>
  );
}

/** Throws 400 for an invalid user id, 404 where users pay into their own wallets. */
function userOf({ project }: ProjectVisit, form: URLSearchParams): string {
  if (project.mode !== "default") throw notFound("page");
  return checkUserId(form.get("user"), "user");
}
