/** @jsxImportSource @hono/hono/jsx */
import type { Mail } from "../deps.ts";
import type { Reader } from "../pages/texts/texts.tsx";

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
      <body style={style.body}>
        <div style={style.card}>
          <h1 style={style.title}>{title}</h1>
          <p>{says}</p>
          <p>
            <a style={style.link} href={url}>{action}</a>
          </p>
          <p style={style.quiet}>{texts.mailUnasked}</p>
        </div>
      </body>
    </html>,
  );
  const text = `${says}\n\n${url}\n\n${texts.mailUnasked}`;
  return { id, to: [to], subject: `${host}: ${title}`, text, html };
}

const style = {
  body: "margin:0;padding:24px;background:#f6f7f9;color:#1a1f36;" +
    "font:15px/1.5 -apple-system,'Segoe UI',Roboto,sans-serif",
  card: "max-width:560px;margin:0 auto;padding:24px;background:#fff;border-radius:12px;" +
    "border:1px solid #e3e8ee",
  title: "margin:0 0 16px;font-size:18px",
  quiet: "margin:16px 0 0;color:#5b6478;font-size:13px",
  link: "color:#4338ca",
};
