/** @jsxImportSource @hono/hono/jsx */
import { Page } from "../pages/page.tsx";
import { PasskeyButton, walletScript as script } from "./passkey_button.tsx";

/** What the authorization page shows. */
export interface AuthorizeView {
  /** The base URL of this server. */
  base: string;
  projectName: string;
  user: string;
  currency: string;
  /** The balance of this device's wallet; null where it has none yet. */
  balance: string | null;
  /** The caps to choose from, as decimal strings and formatted for people. */
  caps: { value: string; label: string }[];
  /** The current cap; null when nothing is authorized, or by another wallet. */
  cap: string | null;
  /** Browsers create passkeys for names of hosts, and not for addresses. */
  offersPasskeys: boolean;
}

/** The page behind the link of a message that asks for authorization. */
export function AuthorizePage(view: AuthorizeView) {
  const { base, projectName, user, currency, balance, caps, cap, offersPasskeys } = view;
  return (
    <Page title={`${projectName} asks for permission`} script={script} base={base}>
      <h1>
        <bdi>{projectName}</bdi> asks for permission
      </h1>
      <p>
        It will charge your wallet for what{" "}
        <strong>
          <bdi>{user}</bdi>
        </strong>{" "}
        uses, up to the daily limit you choose here. You can end this at any time.
      </p>
      {balance === null ? <NoWallet offersPasskeys={offersPasskeys} /> : (
        <p>
          Your wallet: <strong>{balance}</strong>
        </p>
      )}
      {cap === null ? null : <p>Current limit: {cap} per day.</p>}
      <form method="post">
        <fieldset>
          <legend>Daily limit</legend>
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

function NoWallet({ offersPasskeys }: Pick<AuthorizeView, "offersPasskeys">) {
  return (
    <>
      <p>This device has no wallet yet. You get one when you allow this.</p>
      {offersPasskeys ? <PasskeyButton /> : null}
    </>
  );
}

/** What a used link shows: to the person who authorized, to another device, or to who declined. */
export type AuthorizeDecision = "approved" | "elsewhere" | "declined";

/** The page that shows the outcome of an authorization request. */
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
    elsewhere: "This link has been used",
    declined: "Not allowed",
  }[decided];
  const wallet = <a href={`${base}/wallet`}>Your wallet</a>;
  return (
    <Page title={title}>
      <h1>{title}</h1>
      {decided !== "approved" ? null : (
        <>
          <p>Up to {cap} per day. Go back to your chat and send your message again.</p>
          <p>
            <a href={topUpUrl}>Add money</a> — {wallet}
          </p>
        </>
      )}
      {decided !== "elsewhere" ? null : (
        <>
          <p>
            {projectName}{" "}
            may charge the wallet of the device that allowed it. This device is not connected to
            that wallet. If it is the same device, its cookies have been removed since.
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
