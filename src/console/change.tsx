/** @jsxImportSource @hono/hono/jsx */

/** How a value differs from that of the period before, in percent. */
export function Change({ now, before }: { now: number; before: number }) {
  if (before === 0) return <>no earlier data</>;
  const percent = Math.round(((now - before) / Math.abs(before)) * 100);
  const sign = percent > 0 ? "▲ " : percent < 0 ? "▼ " : "";
  return <>{`${sign}${Math.abs(percent).toLocaleString("en-US")} % vs. previous`}</>;
}
