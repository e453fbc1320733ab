/** Inline styles of e-mails: mail programs read no style sheet. */
export const mailStyle = {
  body: "margin:0;padding:24px;background:#f6f7f9;color:#1a1f36;" +
    "font:15px/1.5 -apple-system,'Segoe UI',Roboto,sans-serif",
  card: "max-width:560px;margin:0 auto;padding:24px;background:#fff;border-radius:12px;" +
    "border:1px solid #e3e8ee",
  title: "margin:0 0 16px;font-size:18px",
  quiet: "margin:16px 0 0;color:#5b6478;font-size:13px",
  link: "color:#4338ca",
} as const;
