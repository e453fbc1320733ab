/** The pages of people who pay: one card on a quiet ground, larger type, one main button. */
export const payerStyle = `
.payer { font-size: 1rem; padding: 0 1rem 3rem; }
.payer > main { width: 100%; max-width: 28rem; margin: 0 auto; padding-top: min(8vh, 4rem); }
.payer .card { padding: 1.75rem; box-shadow: var(--shadow-large); }
@media (max-width: 30rem) { .payer .card { padding: 1.25rem; }
  .payer > main { padding-top: 1.25rem; } }
.payer .notice form { margin: 1rem 0; }
.payer h1 { font-size: 1.25rem; } .payer h2 { font-size: 1rem; margin: 0 0 0.75rem; }
.payer button, .payer .button { min-height: 2.875rem; font-weight: 600; }
.payer button.plain { min-height: 2.5rem; font-weight: 500; color: var(--muted); }
.payer input:not([type="radio"], [type="checkbox"]) { min-height: 2.75rem; }
.app { display: flex; gap: 0.75rem; align-items: center; margin: 0 0 1.5rem; min-width: 0; }
.app img, .app .letter { width: 2.5rem; height: 2.5rem; border-radius: 0.625rem; flex: none;
  object-fit: cover; }
.app img { position: relative; overflow: hidden; line-height: 2.5rem; text-align: center; }
.app .letter, .app img::after { display: grid; place-items: center; font-weight: 650;
  background: var(--brand, var(--accent)); color: var(--on-brand, var(--on-accent));
  font-size: 1.125rem; }
/* Drawn only where the image does not load. */
.app img::after { content: attr(alt); position: absolute; inset: 0; }
.app p { margin: 0; line-height: 1.35; min-width: 0; } .app .name { font-weight: 600; }
.payer .primary { background: var(--brand, var(--accent));
  color: var(--on-brand, var(--on-accent)); }
.payer .primary:hover { background: color-mix(in srgb, var(--brand, var(--accent)) 88%, black); }
.wide { width: 100%; }
.balance { font-size: 2.5rem; font-weight: 650; letter-spacing: -0.03em; line-height: 1.1;
  margin: 0 0 1.5rem; font-variant-numeric: tabular-nums; }
.balance-label { color: var(--muted); margin: 0 0 0.25rem; }
.tiles { display: grid; gap: 0.625rem; margin: 0 0 1rem; padding: 0; border: 0;
  grid-template-columns: repeat(3, minmax(0, 1fr)); }
.tiles legend { margin: 0 0 0.5rem; padding: 0; }
.tiles > label { position: relative; display: grid; place-items: center; min-height: 3.25rem;
  border: 1px solid var(--line-strong); border-radius: var(--radius); cursor: pointer;
  font-weight: 600; padding: 0.25rem; text-align: center; font-variant-numeric: tabular-nums; }
.tiles > label:hover { background: var(--hover); }
.tiles > label input { position: absolute; opacity: 0; inset: 0; width: 100%; height: 100%; margin: 0;
  cursor: pointer; }
.tiles > label:has(input:checked) { border-color: var(--brand, var(--accent));
  box-shadow: 0 0 0 1px var(--brand, var(--accent));
  background: color-mix(in srgb, var(--brand, var(--accent)) 10%, var(--surface)); }
.tiles > label:has(input:focus-visible) { outline: 2px solid var(--accent); outline-offset: 2px; }
.tiles .other { grid-column: 1 / -1; margin: 0.25rem 0 0; max-width: none; }
.tiles .other label { font-size: 0.875rem; color: var(--muted); font-weight: 500; }
.lines { list-style: none; margin: 0; padding: 0; }
.lines li { display: flex; justify-content: space-between; gap: 1rem; padding: 0.625rem 0;
  border-bottom: 1px solid var(--line); font-size: 0.9375rem; }
.lines li:last-child { border-bottom: 0; }
.lines li > :last-child { font-variant-numeric: tabular-nums; white-space: nowrap; }
.day { margin: 0; border-bottom: 1px solid var(--line); }
.day:last-of-type { border-bottom: 0; }
.day summary { display: flex; justify-content: space-between; gap: 1rem; font-weight: 400;
  padding: 0.75rem 0; font-size: 0.9375rem; }
.day summary > :last-child { font-variant-numeric: tabular-nums; white-space: nowrap; }
.state { text-align: center; padding: 0.5rem 0 1rem; }
.state .icon { width: 2.75rem; height: 2.75rem; padding: 0.625rem; border-radius: 50%;
  background: var(--good-soft); color: var(--good); margin: 0 auto 0.75rem; display: block; }
.state.waiting .icon { background: var(--warn-soft); color: var(--warn); }
.state p { margin: 0.25rem auto 0; color: var(--muted); }
.payer footer { text-align: center; color: var(--muted); font-size: 0.8125rem; }
.payer footer a { color: inherit; }
.payer .with { color: var(--muted); font-size: 0.8125rem; text-align: center; margin: 0.75rem 0 0; }
.article { max-width: 46rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
`;
