/** @jsxImportSource @hono/hono/jsx */
import { ApiError, badRequest } from "../../base/errors.ts";
import { type Amount, zero } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import { readArchived } from "../../ledger/archived.ts";
import { readBalance } from "../../ledger/balance.ts";
import { type ForgetJob, readForgetJob } from "../../ledger/forget_account.ts";
import { isPseudonym } from "../../ledger/pseudonym.ts";
import type { Project } from "../../projects/schema.ts";
import { Confirm, FormCheckbox, FormError } from "../../pages/form_parts.tsx";
import { DetailList, ExactMoney, TimeCell } from "../../pages/parts.tsx";
import { seeOther } from "../../pages/response.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { formIdOf, orShowFormAgain } from "../submitted_fields.ts";
import { addressOf, eraseAddressOf } from "./user_link.tsx";

const section = "/users";
const path = `${section}/erase`;

/** Erasing a user from all stored data: what it does, the confirmation, and its progress. */
export function eraseUserPages(
  guard: ConsoleGuard,
  { deps, deps: { kv }, forget, sessions }: ConsoleDeps,
) {
  async function show(visit: ProjectVisit, view: Pick<QuestionView, "user" | "problem" | "on">) {
    const { user, problem } = view;
    const { project } = visit;
    const archived = await readArchived(kv, project.id);
    const page = (
      <Question
        {...view}
        visit={visit}
        balance={await readOwnBalance(deps, project, user)}
        archivedUntil={archived && archived.before}
        formId={deps.id("form")}
      />
    );
    return visit.page(`Erase ${user}?`, page, {
      section,
      problem,
      heading: (
        <>
          Erase <bdi>{user}</bdi>?
        </>
      ),
    });
  }

  return {
    show: guard.project(async (visit) => {
      const { query } = visit.incoming;
      const user = checkUserId(query("user"), "user");
      const found = await readForgetJob(kv, visit.project.id, user);
      if (found) {
        return visit.page("The erasure is running", <Progress job={found.job} visit={visit} />, {
          section,
        });
      }
      const pseudonym = query("as") ?? "";
      if (isPseudonym(pseudonym)) return visit.go(addressOf(visit, pseudonym), "user-erased");
      return await show(visit, { user, problem: null, on: false });
    }),
    erase: guard.project(async (visit) => {
      const { project, session, incoming, go } = visit;
      const form = await visit.form();
      const user = checkUserId(form.get("user"), "user");
      return await orShowFormAgain(async () => {
        const address = eraseAddressOf(visit, user);
        // The name may stand for someone new by now.
        if (!await sessions.claim(session, formIdOf(form))) return go(address, "already-sent");
        const request = { projectId: project.id, user, forfeit: form.has("forfeit") };
        const { status, pseudonym } = await forget.run(request, session.by).catch(inWordsOfForm);
        if (status === "done") return go(addressOf(visit, pseudonym), "user-erased");
        return seeOther(`${address}&as=${pseudonym}`, incoming.requestId);
      }, (problem) => show(visit, { user, problem, on: form.has("forfeit") }));
    }),
  };
}

/** Throws the same error; where a balance is left, with what to choose in the form. */
function inWordsOfForm(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== "balance_not_zero") throw error;
  throw badRequest(
    "forfeit",
    "A balance is left. Pay it out first, or choose below that it is forfeited.",
  );
}

/** What the user has in the project: nothing in the shared mode, where wallets have the money. */
async function readOwnBalance(
  deps: ConsoleDeps["deps"],
  { id: projectId, mode }: Project,
  user: string,
): Promise<Amount> {
  return mode === "shared" ? zero : (await readBalance(deps, { projectId, user })).balance;
}

interface QuestionView {
  visit: ProjectVisit;
  user: string;
  problem: string | null;
  /** Whether it was chosen that the balance is forfeited. */
  on: boolean;
  balance: Amount;
  /** Entries from before this time may be in sealed files; null where there are none. */
  archivedUntil: number | null;
  formId: string;
}

function Question({ visit, user, problem, on, balance, archivedUntil, formId }: QuestionView) {
  const { project: { currency }, here } = visit;
  const forfeit = balance === 0n ? null : (
    <FormCheckbox
      name="forfeit"
      on={on}
      label={
        <>
          Forfeit the balance of{" "}
          <ExactMoney amount={balance} currency={currency} />: it is booked as a charge
        </>
      }
    />
  );
  return (
    <>
      <FormError text={problem} />
      <Confirm
        says={<WhatItDoes archivedUntil={archivedUntil} />}
        button="Erase this user"
        action={here(path)}
        back={addressOf(visit, user)}
        fields={{ user, formId }}
        more={forfeit}
      />
    </>
  );
}

function WhatItDoes({ archivedUntil }: Pick<QuestionView, "archivedUntil">) {
  return (
    <>
      <p>
        The user’s id and everything that they provided are removed from all stored data. It cannot
        be undone.
      </p>
      <ul>
        <li>
          Amounts, kinds and times of entries stay, under a random name, so that the books still add
          up. Their metadata is removed.
        </li>
        <li>Kept texts, links, own limits and the requests’ ids of this user are removed.</li>
        <li>
          It is refused while a request of the user runs, while events about them are not delivered,
          while a key is theirs alone, and while a wallet is connected.
        </li>
        <li>
          Earlier backups, logs, and what webhooks have received are not reached. The same id can be
          used again by someone new.
        </li>
        {archivedUntil === null ? null : (
          <li>
            Sealed files with entries from before <TimeCell at={archivedUntil} />{" "}
            may still name the user: the operator erases them there with{" "}
            <code>farebox archive erase</code>.
          </li>
        )}
      </ul>
    </>
  );
}

/** How far an erasure has come, which goes on by itself. */
function Progress({ job, visit }: { job: ForgetJob; visit: ProjectVisit }) {
  const { user, pseudonym, erased } = job;
  const again = `${eraseAddressOf(visit, user)}&as=${pseudonym}`;
  const rows = Object.entries(erased).map(([kind, count]) =>
    [inWords(kind), count.toLocaleString("en-US")] as const
  );
  return (
    <>
      <p>
        <bdi>{user}</bdi>{" "}
        is being erased. It continues by itself, also when this page is closed, and waits for
        deliveries that are being retried. Until it ends, requests of this user are refused.
      </p>
      <p>
        The entries stay under <code>{pseudonym}</code>.
      </p>
      {rows.length === 0 ? null : (
        <>
          <h2>Records erased so far</h2>
          <DetailList rows={rows} />
        </>
      )}
      <p class="actions">
        <a class="button" href={again}>Check again</a>
        <a class="button" href={visit.here(section)}>All users</a>
      </p>
    </>
  );
}

/** The name of a kind of records as words: `walletEntries` as `wallet entries`. */
function inWords(kind: string): string {
  return kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
