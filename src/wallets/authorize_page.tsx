/** @jsxImportSource @hono/hono/jsx */
import { Page } from "../pages/page.tsx";
import { PasskeyButton, walletScript as script } from "./passkey_button.tsx";

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
        It wants to charge your wallet for what{" "}
        <strong>
          <bdi>{user}</bdi>
        </strong>{" "}
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
      <PasskeyButton />
    </>
  );
}

/** What a link that was used says: to whom allowed it, to another's device, to whom said no. */
export type AuthorizeDecision = "approved" | "elsewhere" | "declined";

/** What has become of a request for leave. */
export function AuthorizeResultPage(
  { base, decided, projectName, cap, topUpUrl }: {
    base: string;
    decided: AuthorizeDecision;
    projectName: string;
    cap: string;
    topUpUrl: string;
  },
) {
  const title = {
    approved: `${projectName} may charge your wallet`,
    elsewhere: "This link was used",
    declined: "Not allowed",
  }[decided];
  const wallet = <a href={`${base}/wallet`}>Your wallet</a>;
  return (
    <Page title={title}>
      <h1>{title}</h1>
      {decided !== "approved" ? null : (
        <>
          <p>Up to {cap} a day. Go back to your chat and send your message again.</p>
          <p>
            <a href={topUpUrl}>Add money</a> — {wallet}
          </p>
        </>
      )}
      {decided !== "elsewhere" ? null : (
        <>
          <p>
            {projectName}{" "}
            may charge the wallet of the device that allowed it. This device does not know that
            wallet: if it is the one that allowed it, its cookies were removed since.
          </p>
          <p>{wallet}</p>
        </>
      )}
      {decided !== "declined"
        ? null
        : <p>{projectName} may not charge your wallet. Nothing was charged.</p>}
    </Page>
  );
}
