/** @jsxImportSource @hono/hono/jsx */
import { ActivitySection, type TopUpView } from "../paywall/top_up_page.tsx";
import { Page } from "../pages/page.tsx";
import { PasskeyButton, walletScript as script } from "./passkey_button.tsx";

/** What the wallet page shows. */
export interface WalletView {
  /** The base URL of this server. */
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
  /** Times are formatted for people, in UTC; `usedAt` is null before the first use. */
  passkeys: { id: string; addedAt: string; usedAt: string | null }[];
  /** Browsers create passkeys for names of hosts, and not for addresses. */
  offersPasskeys: boolean;
}

/** A person's wallet: balances, who may charge it, and what was spent. */
export function WalletPage(view: WalletView) {
  const { base, balances, connections, activities, passkeys, offersPasskeys } = view;
  return (
    <Page title="Your wallet" script={script} base={base}>
      <h1>Your wallet</h1>
      {balances.length === 0 ? <p>It is empty.</p> : null}
      {balances.map((balance) => <p class="balance" key={balance}>{balance}</p>)}
      <h2>Who may charge it</h2>
      {connections.length === 0 ? <p>Nobody.</p> : null}
      {connections.map((connection) => (
        <ConnectionForm
          key={connection.projectId}
          {...connection}
        />
      ))}
      <ActivitySection activities={activities} />
      <h2>On another device</h2>
      <p>{describePasskeys(view)}</p>
      {passkeys.map((passkey) => <PasskeyForm key={passkey.id} {...passkey} />)}
      {offersPasskeys ? <button type="button" id="add-passkey" hidden>Add a passkey</button> : null}
      <p id="said" role="alert"></p>
      <h2>Lost or shared devices</h2>
      <p>
        Anyone with a device that is connected to your wallet can spend from it. If you lost a
        device, remove its passkey too.
      </p>
      <form method="post">
        <button type="submit" name="action" value="sign-out-others">
          Sign out all other devices
        </button>
        <button type="submit" name="action" value="leave">Forget the wallet on this device</button>
      </form>
    </Page>
  );
}

function PasskeyForm({ id, addedAt, usedAt }: WalletView["passkeys"][number]) {
  return (
    <form method="post">
      <p>
        Added {addedAt}, {usedAt === null ? "not used yet" : `last used ${usedAt}`} (UTC)
      </p>
      <input type="hidden" name="passkey" value={id} />
      <button type="submit" name="action" value="remove-passkey">
        Remove the passkey of {addedAt}
      </button>
    </form>
  );
}

function ConnectionForm(
  { name, user, projectId, isActive, cap, spent, topUpUrl }: WalletView["connections"][number],
) {
  const field = `cap-${projectId}-${user}`;
  return (
    <section>
      <h3>
        <bdi>{name}</bdi>
      </h3>
      <p>
        As <bdi>{user}</bdi>: {isActive ? `${spent} of ${cap} today` : "no longer allowed"}.
      </p>
      {isActive
        ? (
          <>
            <p>
              <a href={topUpUrl}>
                Add money with <bdi>{name}</bdi>
              </a>
            </p>
            <form method="post">
              <input type="hidden" name="projectId" value={projectId} />
              <input type="hidden" name="user" value={user} />
              <label for={field}>Daily limit</label>
              <input id={field} name="cap" inputmode="decimal" />
              <button type="submit" name="action" value="cap">Change</button>
              <button type="submit" name="action" value="revoke">
                End permission of <bdi>{name}</bdi>
              </button>
            </form>
          </>
        )
        : null}
    </section>
  );
}

function describePasskeys({ passkeys, offersPasskeys }: WalletView): string {
  if (passkeys.length > 0) return "Your passkey opens this wallet on other devices.";
  const only = "Only devices that you have used are connected to your wallet.";
  return offersPasskeys ? `${only} A passkey lets you in from any other.` : only;
}

/** The wallet page on a device without a wallet. */
export function NoWalletPage(
  { base, offersPasskeys }: Pick<WalletView, "base" | "offersPasskeys">,
) {
  return (
    <Page title="Your wallet" script={script} base={base}>
      <h1>Your wallet</h1>
      <p>
        This device has no wallet. You get one when an app asks for permission.
        {offersPasskeys ? " With a passkey you can open yours here." : ""}
      </p>
      {offersPasskeys ? <PasskeyButton /> : null}
    </Page>
  );
}

/** Asks for confirmation before a device forgets a wallet that has no passkey. */
export function ConfirmForgetPage({ base, balances, connections }: WalletView) {
  const title = "Forget your wallet permanently?";
  const active = connections.filter(({ isActive }) => isActive);
  return (
    <Page title={title}>
      <h1>{title}</h1>
      <p>
        It has no passkey. Once this device has forgotten it, only another device that you used it
        on can open it.
      </p>
      {balances.length === 0 ? null : (
        <p>
          You would lose access to: <strong>{balances.join(", ")}</strong>.
        </p>
      )}
      {active.length === 0 ? null : (
        <>
          <p>These apps could still charge it, and you could not stop them:</p>
          <ul>
            {active.map(({ name, user, cap }) => (
              <li>
                {name}, as <bdi>{user}</bdi>: up to {cap} per day
              </li>
            ))}
          </ul>
        </>
      )}
      <form method="post">
        <input type="hidden" name="confirmed" value="yes" />
        <button type="submit" name="action" value="leave">Forget it permanently</button>
      </form>
      <p>
        <a href={`${base}/wallet`}>Back to your wallet</a>, where you can add a passkey.
      </p>
    </Page>
  );
}
