/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { FormField } from "../pages/form_parts.tsx";
import { Page } from "../pages/page.tsx";
import type { Reader } from "../pages/texts/texts.tsx";

interface EmailView {
  /** The path of this server's pages. */
  base: string;
  reader: Reader;
}

/** The form that asks for a link by e-mail; `from` is the page to come back to. */
export function AskLinkForm({ base, reader: { texts }, from }: EmailView & { from?: string }) {
  return (
    <form method="post" action={`${base}/wallet/email`}>
      {from === undefined ? null : <input type="hidden" name="from" value={from} />}
      <EmailField label={texts.yourEmail} />
      <button type="submit" class="wide">{texts.sendLink}</button>
    </form>
  );
}

/** The form that adds an address to the wallet of this device. */
export function AddEmailForm({ base, reader: { texts }, from }: EmailView & { from?: string }) {
  return (
    <form method="post" action={`${base}/wallet`}>
      {from === undefined ? null : <input type="hidden" name="from" value={from} />}
      <EmailField label={texts.yourEmail} />
      <button type="submit" name="action" value="add-email" class="wide">{texts.addEmail}</button>
    </form>
  );
}

function EmailField({ label }: { label: string }) {
  const more = { inputmode: "email", autocomplete: "email", autocapitalize: "none" };
  return <FormField name="email" label={label} required more={more} />;
}

/** What a link of an e-mail asks: reading the page uses nothing up, since mail servers read it. */
export function MailLinkPage(
  { base, reader, action, shown, wallets }: EmailView & {
    /** Where the form is sent. */
    action: string;
    /** The address as its owner recognizes it. */
    shown: string;
    /** The wallets to choose from, each with its balances; null to confirm the address. */
    wallets: { personId: string; amounts: Child }[] | null;
  },
) {
  const { texts, lang } = reader;
  const title = wallets === null ? texts.confirmEmailTitle : texts.openWalletTitle;
  const note = wallets === null ? "confirmEmailNote" : "openWalletNote";
  return (
    <Page title={title} base={base} lang={lang}>
      <div class="card">
        <h1>{title}</h1>
        <p>{reader.say(note, { email: shown })}</p>
        {wallets === null
          ? (
            <form method="post" action={action}>
              <button type="submit" class="primary wide">{texts.confirmEmail}</button>
            </form>
          )
          : wallets.map(({ personId, amounts }) => (
            <form method="post" action={action}>
              <input type="hidden" name="wallet" value={personId} />
              <button type="submit" class="primary wide">{texts.openWallet}: {amounts}</button>
            </form>
          ))}
      </div>
    </Page>
  );
}
