/** @jsxImportSource @hono/hono/jsx */
import { Activities, Page, scriptHash, type TopUpView } from "../paywall/page.tsx";

// The only script: makes and uses passkeys, which browsers offer to scripts alone.
const script = `
const send = async (path, body) => {
  const answer = await fetch(document.documentElement.dataset.base + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error.message);
  return said;
};
const offer = (id, work) => {
  const button = document.getElementById(id);
  if (!button || !window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await work(window.PublicKeyCredential, navigator.credentials);
      location.reload();
    } catch (error) {
      document.getElementById("said").textContent = error.message;
    }
  });
};
offer("add-passkey", async (format, credentials) => {
  const options = await send("/wallet/passkeys/options", {});
  const publicKey = format.parseCreationOptionsFromJSON(options);
  await send("/wallet/passkeys", (await credentials.create({ publicKey })).toJSON());
});
offer("use-passkey", async (format, credentials) => {
  const options = await send("/wallet/sign-in/options", {});
  const publicKey = format.parseRequestOptionsFromJSON(options);
  await send("/wallet/sign-in", (await credentials.get({ publicKey })).toJSON());
});
`;

/** The script's name in a Content-Security-Policy. */
export const walletScriptHash = scriptHash(script);

/** What the authorization page asks. */
export interface AuthorizeView {
  /** Where this server's addresses start. */
  base: string;
  projectName: string;
  user: string;
  currency: string;
  /** The wallet of this device: what is in it; null where there is none yet. */
  balance: string | null;
  /** Caps to choose, as decimal strings and for people. */
  caps: { value: string; label: string }[];
  /** What is allowed now; null when nothing is, or by another wallet. */
  cap: string | null;
}

/** The page behind the link of a message that asks for leave to spend. */
export function AuthorizePage(view: AuthorizeView) {
  const { base, projectName, user, currency, balance, caps, cap } = view;
  return (
    <Page title={`${projectName} asks for permission`} script={script} base={base}>
      <h1>{projectName} asks for permission</h1>
      <p>
        It wants to charge your wallet for what <strong>{user}</strong>{" "}
        uses, never more in one day than you say here. You can end that at any time.
      </p>
      {balance === null ? <NoWallet /> : (
        <p>
          Your wallet: <strong>{balance}</strong>
        </p>
      )}
      {cap === null ? null : <p>Now allowed: {cap} a day.</p>}
      <form method="post">
        <fieldset>
          <legend>Most in one day</legend>
          {caps.map(({ value, label }, index) => (
            <label>
              <input type="radio" name="cap" value={value} checked={index === 0} /> {label}
            </label>
          ))}
          <label for="other">Another amount, in {currency.toUpperCase()}</label>
          <input id="other" name="other" inputmode="decimal" />
        </fieldset>
        <button type="submit" name="decision" value="approve">Allow</button>
        <button type="submit" name="decision" value="decline">Do not allow</button>
      </form>
    </Page>
  );
}

function NoWallet() {
  return (
    <>
      <p>This device has no wallet yet: you get one when you allow this.</p>
      <UsePasskey />
    </>
  );
}

function UsePasskey() {
  return (
    <>
      <button type="button" id="use-passkey" hidden>Use your wallet of another device</button>
      <p id="said" role="alert"></p>
    </>
  );
}

/** What the wallet's own page shows. */
export interface WalletView {
  /** Where this server's addresses start. */
  base: string;
  balances: string[];
  connections: {
    name: string;
    user: string;
    projectId: string;
    isActive: boolean;
    cap: string;
    spent: string;
    topUpUrl: string;
  }[];
  activities: TopUpView["activities"];
  passkeys: number;
}

/** A person's wallet: balances, who may spend of it, what was spent. */
export function WalletPage({ base, balances, connections, activities, passkeys }: WalletView) {
  return (
    <Page title="Your wallet" script={script} base={base}>
      <h1>Your wallet</h1>
      {balances.length === 0 ? <p>Nothing is in it yet.</p> : null}
      {balances.map((balance) => <p class="balance" key={balance}>{balance}</p>)}
      <h2>Who may charge it</h2>
      {connections.length === 0 ? <p>Nobody.</p> : null}
      {connections.map((connection) => (
        <ConnectionForm
          key={connection.projectId}
          {...connection}
        />
      ))}
      <Activities activities={activities} />
      <h2>On another device</h2>
      <p>
        {passkeys === 0
          ? "Only this device knows your wallet. A passkey lets you back in from another one."
          : "Your passkey opens this wallet on other devices."}
      </p>
      <button type="button" id="add-passkey" hidden>Add a passkey</button>
      <p id="said" role="alert"></p>
      <form method="post">
        <button type="submit" name="action" value="leave">Forget it on this device</button>
      </form>
    </Page>
  );
}

function ConnectionForm(
  { name, user, projectId, isActive, cap, spent, topUpUrl }: WalletView["connections"][number],
) {
  const field = `cap-${projectId}-${user}`;
  return (
    <section>
      <h3>{name}</h3>
      <p>
        As {user}: {isActive ? `${spent} of ${cap} today` : "not allowed any more"}.
      </p>
      {isActive
        ? (
          <>
            <p>
              <a href={topUpUrl}>Add money with {name}</a>
            </p>
            <form method="post">
              <input type="hidden" name="projectId" value={projectId} />
              <input type="hidden" name="user" value={user} />
              <label for={field}>Most in one day</label>
              <input id={field} name="cap" inputmode="decimal" />
              <button type="submit" name="action" value="cap">Change</button>
              <button type="submit" name="action" value="revoke">End permission of {name}</button>
            </form>
          </>
        )
        : null}
    </section>
  );
}

/** The wallet's page on a device that knows none. */
export function NoWalletPage({ base }: Pick<WalletView, "base">) {
  return (
    <Page title="Your wallet" script={script} base={base}>
      <h1>Your wallet</h1>
      <p>
        This device knows no wallet. You get one when an app asks for permission; a passkey opens
        yours here.
      </p>
      <UsePasskey />
    </Page>
  );
}

/** What has become of a request for leave. */
export function DecidedPage(
  { base, approved, projectName, cap, topUpUrl }: {
    base: string;
    approved: boolean;
    projectName: string;
    cap: string;
    topUpUrl: string;
  },
) {
  const title = approved ? `${projectName} may charge your wallet` : "Not allowed";
  return (
    <Page title={title}>
      <h1>{title}</h1>
      {approved
        ? (
          <>
            <p>Up to {cap} a day. Go back to your chat and send your message again.</p>
            <p>
              <a href={topUpUrl}>Add money</a> — <a href={`${base}/wallet`}>Your wallet</a>
            </p>
          </>
        )
        : <p>{projectName} may not charge your wallet. Nothing was charged.</p>}
    </Page>
  );
}
