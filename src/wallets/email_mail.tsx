/** @jsxImportSource @hono/hono/jsx */
import type { Mail } from "../deps.ts";
import type { Reader } from "../pages/texts/texts.tsx";
import { mailStyle } from "../pages/mail_style.ts";

/**
 * Returns the e-mail with a link that opens wallets, or confirms an address. It contains nothing
 * that anybody else has written: it may be sent to strangers.
 */
export function walletMail(
  { kind, baseUrl, to, url, reader }: {
    kind: "open" | "confirm";
    /** Where links begin. */
    baseUrl: string;
    to: string;
    url: string;
    /** The language of who asked for it. */
    reader: Reader;
  },
  id: string,
): Mail {
  const { host } = new URL(baseUrl);
  const { texts } = reader;
  const isOpening = kind === "open";
  const title = isOpening ? texts.mailOpen : texts.mailConfirm;
  const says = reader.text(isOpening ? "mailOpenNote" : "mailConfirmNote", { host });
  const action = isOpening ? texts.openWallet : texts.confirmEmail;
  const html = String(
    <html lang={reader.lang}>
      <body style={mailStyle.body}>
        <div style={mailStyle.card}>
          <h1 style={mailStyle.title}>{title}</h1>
          <p>{says}</p>
          <p>
            <a style={mailStyle.link} href={url}>{action}</a>
          </p>
          <p style={mailStyle.quiet}>{texts.mailUnasked}</p>
        </div>
      </body>
    </html>,
  );
  const text = `${says}\n\n${url}\n\n${texts.mailUnasked}`;
  return { id, to: [to], subject: `${host}: ${title}`, text, html };
}
