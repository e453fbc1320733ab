/** @jsxImportSource @hono/hono/jsx */
import { ActivitySection, type TopUpView } from "../paywall/top_up_page.tsx";
import { Page } from "../pages/page.tsx";
import { PasskeyButton, walletScript as script } from "./passkey_button.tsx";

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
  /** Times are for people, in UTC; `usedAt` is null before the first use. */
  passkeys: { id: string; addedAt: string; usedAt: string | null }[];
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
      <ActivitySection activities={activities} />
      <h2>On another device</h2>
      <p>
        {passkeys.length === 0
          ? "Only the devices that you used know your wallet. A passkey lets you back in from another."
          : "Your passkey opens this wallet on other devices."}
      </p>
      {passkeys.map((passkey) => <PasskeyForm key={passkey.id} {...passkey} />)}
      <button type="button" id="add-passkey" hidden>Add a passkey</button>
      <p id="said" role="alert"></p>
      <h2>A device that you lost, or share</h2>
      <p>
        Whoever holds a device that knows your wallet can spend of it. Of one that you lost, remove
        the passkey too.
      </p>
      <form method="post">
        <button type="submit" name="action" value="sign-out-others">
          Sign out all other devices
        </button>
        <button type="submit" name="action" value="leave">Forget it on this device</button>
      </form>
    </Page>
  );
}

function PasskeyForm({ id, addedAt, usedAt }: WalletView["passkeys"][number]) {
  return (
    <form method="post">
      <p>
        Added {addedAt}, {usedAt === null ? "not used yet" : `used last ${usedAt}`} (UTC)
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
      <h3>{name}</h3>
      <p>
        As <bdi>{user}</bdi>: {isActive ? `${spent} of ${cap} today` : "not allowed any more"}.
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
      <PasskeyButton />
    </Page>
  );
}

/** Asks before a wallet is forgotten on a device, where no passkey leads back to it. */
export function ConfirmForgetPage({ base, balances, connections }: WalletView) {
  const title = "Forget your wallet for good?";
  const active = connections.filter(({ isActive }) => isActive);
  return (
    <Page title={title}>
      <h1>{title}</h1>
      <p>
        It has no passkey: once this device has forgotten it, nothing leads back to it but another
        device that you used it on.
      </p>
      {balances.length === 0 ? null : (
        <p>
          Out of reach then: <strong>{balances.join(", ")}</strong>.
        </p>
      )}
      {active.length === 0 ? null : (
        <>
          <p>These may go on charging it, and you could not end that any more:</p>
          <ul>
            {active.map(({ name, user, cap }) => (
              <li>
                {name}, as <bdi>{user}</bdi>: up to {cap} a day
              </li>
            ))}
          </ul>
        </>
      )}
      <form method="post">
        <input type="hidden" name="confirmed" value="yes" />
        <button type="submit" name="action" value="leave">Forget it for good</button>
      </form>
      <p>
        <a href={`${base}/wallet`}>Back to your wallet</a>, where you can add a passkey.
      </p>
    </Page>
  );
}
