/** @jsxImportSource @hono/hono/jsx */
import { ApiError, badRequest } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import { fromDecimal } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import { FormError, FormField, Hidden } from "../../pages/form_parts.tsx";
import { Badge, Card, DetailList, EmptyState, MoneyCell, Table } from "../../pages/parts.tsx";
import { checkId } from "../../projects/admin_guard.ts";
import { parseWith } from "../../base/request.ts";
import { joinBodySchema } from "../../wallets/join_schema.ts";
import {
  type JoinView,
  readWallet,
  type WalletOfOperator,
  walletsOfUser,
} from "../../wallets/wallet_view.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { orShowFormAgain } from "../submitted_fields.ts";
import { type ConsoleGuard, type ConsoleVisit, requireOperator } from "../guard.tsx";

const path = "/wallets";

/** What is looked for: the wallets of a user, or one wallet. */
interface Search {
  projectId: string;
  user: string;
  wallet: string;
}

/** The wallets of the shared mode, for operators: whose they are, and two that become one. */
export function walletPages(
  guard: ConsoleGuard,
  { deps, projectCache, joins }: Pick<ConsoleDeps, "deps" | "projectCache" | "joins">,
) {
  async function find({ projectId, user, wallet }: Search): Promise<WalletOfOperator[]> {
    if (wallet !== "") return [await readWallet(deps, checkId(wallet, "wallet"))];
    if (projectId === "" || user === "") return [];
    const { project } = await projectCache.refresh(checkId(projectId, "project"));
    const ids = await walletsOfUser(deps.kv, project, checkUserId(user, "user"));
    return await Promise.all(ids.map((id) => readWallet(deps, id)));
  }

  async function show(visit: ConsoleVisit, search: Search) {
    const found = await find(search).catch((error) => {
      if (error instanceof ApiError && error.status < 500) return error.message;
      throw error;
    });
    const isFound = typeof found !== "string";
    const problem = isFound ? null : found;
    const view = { visit, search, problem, wallets: isFound ? found : [] };
    const note = "A person’s money for several apps. Two wallets of one person can become one.";
    return visit.page("Wallets", <Wallets {...view} />, { problem, note });
  }

  return {
    show: guard.signedIn(async (visit) => {
      requireOperator(visit);
      const { query } = visit.incoming;
      const [projectId = "", user = "", wallet = ""] = [
        query("project")?.trim(),
        query("user"),
        query("wallet")?.trim(),
      ];
      return await show(visit, { projectId, user, wallet });
    }),
    ...joinPages(guard, { deps, joins }),
  };
}

/** The form that joins two wallets, or withdraws that. */
function joinPages(guard: ConsoleGuard, { deps, joins }: Pick<ConsoleDeps, "deps" | "joins">) {
  async function show(visit: ConsoleVisit, from: string, problem: string | null) {
    const wallet = isId("per", from) ? await readWallet(deps, from).catch(() => null) : null;
    const canConfirm = wallet !== null && wallet.devices + wallet.passkeys + wallet.emails > 0;
    const page = <JoinForm {...{ visit, from, canConfirm, problem }} />;
    const note = "For two wallets of one person. It cannot be undone once both sides have agreed.";
    return visit.page("Join wallets", page, { problem, note });
  }

  async function receive(visit: ConsoleVisit): Promise<Response> {
    const form = await visit.form();
    const from = readWalletId(form, "from");
    const address = visit.at(`${path}?${new URLSearchParams({ wallet: from })}`);
    if (form.get("action") === "withdraw") {
      await joins.withdraw(from, visit.session.by);
      return visit.go(address, "join-withdrawn");
    }
    const { into, reasons } = parseWith(joinBodySchema, {
      into: readWalletId(form, "into"),
      reasons: { ...reasonIn(form, "from"), ...reasonIn(form, "into") },
    });
    const stated = { from: reasons.from ?? null, into: reasons.into ?? null };
    const { isJoined } = await joins.ask({ from, into, reasons: stated }, visit.session.by);
    return visit.go(address, isJoined ? "wallets-joined" : "join-asked");
  }

  return {
    showJoin: guard.signedIn(async (visit) => {
      requireOperator(visit);
      return await show(visit, visit.incoming.query("from") ?? "", null);
    }),
    join: guard.signedIn(async (visit) => {
      requireOperator(visit);
      const from = (await visit.form()).get("from") ?? "";
      const again = (problem: string) => show(visit, from, problem);
      return await orShowFormAgain(() => receive(visit), again, labels);
    }),
  };
}

/** Throws 400 for what cannot be a wallet's id. */
function readWalletId(form: URLSearchParams, name: "from" | "into"): string {
  const id = (form.get(name) ?? "").trim();
  if (isId("per", id)) return id;
  throw badRequest(name, `Invalid '${name}': it must be the id of a wallet.`);
}

const labels = {
  from: "The wallet that ends",
  into: "The wallet that remains",
  "reasons.from": "Why the first one is theirs",
  "reasons.into": "Why the second one is theirs",
};

function reasonIn(form: URLSearchParams, side: "from" | "into"): Record<string, string> {
  const reason = (form.get(`reasons.${side}`) ?? "").trim();
  if (reason.length > 500) throw badRequest(`reasons.${side}`, "The reason is too long.");
  return reason === "" ? {} : { [side]: reason };
}

function Wallets({ visit, search, problem, wallets }: {
  visit: ConsoleVisit;
  search: Search;
  problem: string | null;
  wallets: readonly WalletOfOperator[];
}) {
  const isAsked = search.wallet !== "" || search.user !== "";
  return (
    <>
      <FormError text={problem} />
      <Card title="Find a wallet">
        <form method="get" action={visit.at(path)} class="filters">
          <FormField name="project" label="Project’s id" value={search.projectId} />
          <FormField name="user" label="User" value={search.user} />
          <FormField name="wallet" label="Or the wallet’s id" value={search.wallet} />
          <button type="submit">Find</button>
        </form>
      </Card>
      {wallets.length === 0 && isAsked && problem === null
        ? <EmptyState icon="wallet" title="No wallet has ever paid for this user" />
        : null}
      {wallets.map((wallet) => <WalletCard {...{ visit, wallet }} />)}
    </>
  );
}

function WalletCard({ visit, wallet }: { visit: ConsoleVisit; wallet: WalletOfOperator }) {
  const { id, balances, users, devices, passkeys, emails, join, parts } = wallet;
  const amounts = balances.map(({ balance, currency }) => (
    <div>
      <MoneyCell amount={fromDecimal(balance)} currency={currency} />
    </div>
  ));
  return (
    <Card title={id}>
      <DetailList
        rows={[
          ["Balance", balances.length === 0 ? "nothing" : amounts],
          ["Opened by", `${devices} devices, ${passkeys} passkeys, ${emails} e-mail addresses`],
          ...(join === null ? [] : [["Part of", <JoinState join={join} />] as const]),
          ...parts.map((part) => ["Takes in", <JoinState join={part} />] as const),
        ]}
      />
      <Table
        caption="Apps"
        columns={["Project", { title: "User", lead: true }, "Permission"]}
        rows={users.map(({ projectId, user, status }) => [
          <a href={visit.at(`/projects/${projectId}`)}>{projectId}</a>,
          <bdi>{user}</bdi>,
          status,
        ])}
        empty="None."
      />
      {join === null
        ? (
          <p>
            <a class="button" href={visit.at(`${path}/join?from=${id}`)}>
              Join with another wallet of the same person
            </a>
          </p>
        )
        : null}
      {join?.status === "asked"
        ? (
          <form method="post" action={visit.at(`${path}/join`)}>
            <Hidden fields={{ from: id, action: "withdraw" }} />
            <button type="submit">Withdraw the join</button>
          </form>
        )
        : null}
    </Card>
  );
}

function JoinState({ join: { from, into, status, consents } }: { join: JoinView }) {
  const missing = [consents.from === null ? from : null, consents.into === null ? into : null]
    .filter((id) => id !== null);
  return (
    <>
      {from} → {into} {status === "joined" ? <Badge tone="good">joined</Badge> : (
        <>
          <Badge tone="late">to be confirmed</Badge> by the owner of {missing.join(" and that of ")}
        </>
      )}
    </>
  );
}

/** A reason is asked for where nobody can open the wallet; of the other one, it may be needed. */
function JoinForm({ visit, from, canConfirm, problem }: {
  visit: ConsoleVisit;
  from: string;
  canConfirm: boolean;
  problem: string | null;
}) {
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={visit.at(`${path}/join`)}>
        <FormField name="from" label={labels.from} value={from} required />
        <FormField
          name="into"
          label={labels.into}
          required
          hint="It gets the money, the apps, and who may open them."
        />
        {canConfirm ? <p>The owner of the first one confirms on a device of theirs.</p> : (
          <FormField
            name="reasons.from"
            label={labels["reasons.from"]}
            hint="Where nobody can open the wallet that ends. The audit trail keeps what you write."
          />
        )}
        <FormField
          name="reasons.into"
          label={labels["reasons.into"]}
          hint="Where nobody can open the wallet that remains."
        />
        <div class="actions">
          <button type="submit" class="primary">Join the wallets</button>
          <a class="button plain" href={visit.at(path)}>Cancel</a>
        </div>
      </form>
    </>
  );
}
