/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { Page } from "../pages/page.tsx";
import type { Reader } from "../pages/texts/texts.tsx";
import { ActivityDays, type ShownEntry } from "../paywall/activity_days.tsx";
import { AddEmailForm, AskLinkForm } from "./email_pages.tsx";
import { AddPasskeyButton, UsePasskeyButton, walletScript as script } from "./passkey_button.tsx";

/** What the wallet page shows. */
export interface WalletView {
  /** The path of this server's pages. */
  base: string;
  reader: Reader;
  balances: { shown: Child; text: string }[];
  connections: {
    name: string;
    user: string;
    projectId: string;
    isActive: boolean;
    cap: string;
    spent: string;
    topUpUrl: string;
  }[];
  entries: ShownEntry[];
  /** In milliseconds since 1970. */
  now: number;
  /** Times are formatted for people, in UTC; `usedAt` is null before the first use. */
  passkeys: { id: string; addedAt: string; usedAt: string | null }[];
  /** Browsers create passkeys for names of hosts, and not for addresses. */
  offersPasskeys: boolean;
  /** Whether this server sends e-mail. */
  offersEmail: boolean;
  emails: { hash: string; shown: string }[];
  /** Wallets that the operator proposes to join with this one. */
  joins: { from: string; amounts: string; hasConfirmed: boolean }[];
}

/** A person's wallet: balances, who may charge it, and what was spent. */
export function WalletPage(view: WalletView) {
  const { base, reader, balances, connections, entries, now } = view;
  const { texts, lang } = reader;
  return (
    <Page title={texts.wallet} script={script} base={base} lang={lang}>
      {view.joins.map((join) => <Join {...join} reader={reader} />)}
      <div class="card">
        <h1 class="balance-label">{texts.wallet}</h1>
        {balances.length === 0 ? <p class="balance">{texts.empty}</p> : null}
        {balances.map(({ shown }) => <p class="balance">{shown}</p>)}
        <h2>{connections.length === 0 ? texts.noApps : texts.apps}</h2>
        {connections.map((connection) => <Connection {...connection} reader={reader} />)}
      </div>
      <Passkeys {...view} />
      <Emails {...view} />
      <ActivityDays entries={entries} reader={reader} now={now} />
      <Devices reader={reader} />
    </Page>
  );
}

function Connection({ name, user, projectId, isActive, cap, spent, topUpUrl, reader }:
  & WalletView["connections"][number]
  & { reader: Reader }) {
  const { texts } = reader;
  const field = `cap-${projectId}-${user}`;
  return (
    <section class="connection">
      <h3>
        <bdi>{name}</bdi>
      </h3>
      <p class="muted">
        {reader.say("asUser", { user })} ·{" "}
        {isActive ? reader.text("spentToday", { spent, cap }) : texts.ended}
      </p>
      {isActive
        ? (
          <>
            <p>
              <a class="button primary wide" href={topUpUrl}>{texts.topUp}</a>
            </p>
            <details>
              <summary>{texts.dailyLimit}</summary>
              <form method="post">
                <input type="hidden" name="projectId" value={projectId} />
                <input type="hidden" name="user" value={user} />
                <div class="field">
                  <label for={field}>{texts.newLimit}</label>
                  <input id={field} name="cap" inputmode="decimal" />
                </div>
                <p class="actions">
                  <button type="submit" name="action" value="cap">{texts.change}</button>
                  <button type="submit" name="action" value="revoke" class="plain">
                    {reader.say("endPermission", { app: name })}
                  </button>
                </p>
              </form>
            </details>
          </>
        )
        : null}
    </section>
  );
}

/** The operator's proposal to join two wallets: both owners decide on a device of theirs. */
function Join(
  { from, amounts, hasConfirmed, reader }: WalletView["joins"][number] & { reader: Reader },
) {
  const { texts } = reader;
  return (
    <section class="card">
      <h2>{texts.joinTitle}</h2>
      <p>{reader.say("joinNote", { amounts })}</p>
      {hasConfirmed ? <p>{texts.joinWaiting}</p> : null}
      <form method="post">
        <input type="hidden" name="from" value={from} />
        {hasConfirmed
          ? null
          : (
            <button type="submit" name="action" value="join" class="primary wide">
              {texts.joinConfirm}
            </button>
          )}
        <button type="submit" name="action" value="decline-join" class="plain wide">
          {texts.joinDecline}
        </button>
      </form>
    </section>
  );
}

/** The addresses that open the wallet; nothing where the server sends no e-mail. */
function Emails({ base, reader, emails, offersEmail }: WalletView) {
  const { texts } = reader;
  if (!offersEmail && emails.length === 0) return null;
  return (
    <section class="card">
      <h2>{texts.emails}</h2>
      <p>{emails.length > 0 ? texts.emailHas : texts.emailNone}</p>
      {emails.map(({ hash, shown }) => (
        <form method="post">
          <input type="hidden" name="email" value={hash} />
          <button type="submit" name="action" value="remove-email">
            {reader.text("removeEmail", { email: shown })}
          </button>
        </form>
      ))}
      {offersEmail ? <AddEmailForm {...{ base, reader }} /> : null}
    </section>
  );
}

function Passkeys({ reader, passkeys, offersPasskeys }: WalletView) {
  const { texts } = reader;
  const none = offersPasskeys ? texts.passkeyNone : texts.deviceOnly;
  return (
    <section class="card">
      <h2>{texts.passkeys}</h2>
      <p>{passkeys.length > 0 ? texts.passkeyHas : none}</p>
      {passkeys.map((passkey) => <Passkey {...passkey} reader={reader} />)}
      {offersPasskeys ? <AddPasskeyButton label={texts.addPasskey} /> : null}
      <p id="said" role="alert"></p>
    </section>
  );
}

function Passkey(
  { id, addedAt, usedAt, reader }: WalletView["passkeys"][number] & { reader: Reader },
) {
  const { texts } = reader;
  const used = usedAt === null ? texts.notUsed : reader.text("lastUsed", { date: usedAt });
  return (
    <form method="post">
      <p class="muted">{reader.text("added", { date: addedAt })}, {used} (UTC)</p>
      <input type="hidden" name="passkey" value={id} />
      <button type="submit" name="action" value="remove-passkey">
        {reader.text("removePasskey", { date: addedAt })}
      </button>
    </form>
  );
}

function Devices({ reader: { texts } }: { reader: Reader }) {
  return (
    <section class="card">
      <h2>{texts.lost}</h2>
      <p>{texts.lostNote}</p>
      <form method="post" class="actions">
        <button type="submit" name="action" value="sign-out-others">{texts.signOutOthers}</button>
        <button type="submit" name="action" value="leave" class="plain">{texts.forget}</button>
      </form>
    </section>
  );
}

/** The wallet page on a device without a wallet. */
export function NoWalletPage(
  { base, reader, offersPasskeys, offersEmail }: Pick<
    WalletView,
    "base" | "reader" | "offersPasskeys" | "offersEmail"
  >,
) {
  const { texts, lang } = reader;
  return (
    <Page title={texts.wallet} script={script} base={base} lang={lang}>
      <div class="card">
        <h1>{texts.noWallet}</h1>
        <p>
          {texts.noWalletNote} {offersPasskeys ? texts.noWalletPasskey : ""}
        </p>
        {offersPasskeys ? <UsePasskeyButton label={texts.usePasskey} /> : null}
        {offersEmail
          ? (
            <>
              <p>{texts.noWalletEmail}</p>
              <AskLinkForm {...{ base, reader }} />
            </>
          )
          : null}
      </div>
    </Page>
  );
}

/** Asks for confirmation before a device forgets a wallet that has no passkey. */
export function ConfirmForgetPage({ base, reader, balances, connections }: WalletView) {
  const { texts, lang } = reader;
  const active = connections.filter(({ isActive }) => isActive);
  const amounts = balances.map(({ text }) => text).join(", ");
  return (
    <Page title={texts.forgetTitle} base={base} lang={lang}>
      <div class="card">
        <h1>{texts.forgetTitle}</h1>
        <p>{texts.forgetNote}</p>
        {balances.length === 0 ? null : <p>{reader.say("forgetLose", { amounts })}</p>}
        {active.length === 0 ? null : (
          <>
            <p>{texts.forgetApps}</p>
            <ul>
              {active.map(({ name, user, cap }) => (
                <li>{reader.say("forgetApp", { app: name, user, cap })}</li>
              ))}
            </ul>
          </>
        )}
        <form method="post">
          <input type="hidden" name="confirmed" value="yes" />
          <button type="submit" name="action" value="leave" class="danger wide">
            {texts.forgetConfirm}
          </button>
        </form>
        <p class="with">
          <a href={`${base}/wallet`}>{texts.backToWallet}</a>
        </p>
      </div>
    </Page>
  );
}
