/** The frame of the console: a bar above, groups of links beside the page. */
export const consoleStyle = `
.shell { display: grid; min-height: 100vh; grid-template-rows: auto 1fr; }
.bar { display: flex; flex-wrap: wrap; gap: 0.5rem 0.75rem; align-items: center;
  padding: 0.625rem 1rem; background: var(--surface); border-bottom: 1px solid var(--line); }
.bar .project { font-weight: 550; min-width: 0; overflow-wrap: anywhere; }
.bar .project::before { content: "/"; color: var(--line-strong); margin-right: 0.75rem;
  font-weight: 400; }
.bar form, .bar .right { margin-left: auto; }
.bar .right { display: flex; gap: 0.25rem; align-items: center; } .bar .right form { margin: 0; }
.side h2 { font-size: 0.75rem; color: var(--muted); font-weight: 550; letter-spacing: 0;
  padding: 0 0.625rem; margin: 1.25rem 0 0.25rem; }
.side ul { list-style: none; margin: 0; padding: 0; }
.side a { display: flex; gap: 0.625rem; align-items: center; padding: 0.3125rem 0.625rem;
  border-radius: 0.375rem; color: var(--muted); text-decoration: none; font-weight: 500; }
.side a:hover { background: var(--hover); color: var(--text); }
.side a[aria-current="page"] { background: var(--accent-soft); color: var(--accent-strong);
  font-weight: 600; }
.menu { padding: 0 1rem; background: var(--surface); border-bottom: 1px solid var(--line); }
.menu details { margin: 0; } .menu summary { padding: 0.625rem 0;
  list-style: none; } .menu summary::-webkit-details-marker { display: none; }
.menu .side { padding: 0 0 1rem; columns: 2; } .menu .side section { break-inside: avoid; }
.menu .side h2 { margin-top: 0.5rem; }
.shell > .side { display: none; }
.page { padding: 1.25rem 1rem 4rem; min-width: 0; width: 100%; max-width: 76rem; margin: 0 auto; }
.page > header { display: flex; flex-wrap: wrap; gap: 0.75rem 1rem; align-items: center;
  justify-content: space-between; margin: 0 0 1.25rem; }
.page > header p { margin: 0.25rem 0 0; color: var(--muted); }
.page > header .actions { margin: 0; }
.page > h2, .page > section > h2 { margin: 1.75rem 0 0.75rem; }
.page > .table { margin: 0 0 1.25rem; background: var(--surface);
  border: 1px solid var(--line); border-radius: var(--radius-large); box-shadow: var(--shadow); }
.page > .table caption { padding-top: 0.75rem; }
.filters { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: end; margin: 0 0 1rem; }
.filters .field { margin: 0; } .filters .field > label { font-size: 0.75rem; color: var(--muted); }
.filters :is(input, select) { width: auto !important; min-width: 8rem; height: 2.25rem; }
.filter-card { padding: 0.875rem 1.25rem; } .filter-card details { margin: 0.25rem 0 0; }
.filter-card .filters { margin: 0; } .filter-card details .filters { padding: 0.25rem 0 0.5rem; }
.name { display: inline-block; max-width: 14rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; vertical-align: bottom; }
code.id { color: var(--muted); font-size: 0.75rem; }
a.quiet { color: var(--muted); text-decoration: none; } a.quiet:hover { text-decoration: underline; }
.family { padding: 0.5rem 0; min-width: 0; } .family label { font-size: 0.8125rem; }
.attention li { padding: 0.125rem 0; } .attention .icon { color: var(--warn); }
.range { margin: 0; position: relative; } .range[open] { flex-basis: 100%; }
.range summary { font-size: 0.8125rem; color: var(--muted); font-weight: 400; }
.lone { width: 100%; max-width: 26rem; margin: 12vh auto 2rem; padding: 0 1rem; }
.lone > .brand { margin-bottom: 1.25rem; font-size: 1rem; }
.lone h1 { font-size: 1.25rem; margin-bottom: 1rem; }
.steps { list-style: none; padding: 0; margin: 0; max-width: none; counter-reset: step; }
.steps > li { display: grid; grid-template-columns: 1.75rem minmax(0, 1fr); gap: 0 0.75rem;
  padding: 0.875rem 0; border-bottom: 1px solid var(--line); counter-increment: step; }
.steps > li:last-child { border-bottom: 0; }
.steps > li.done { padding: 0.375rem 0; color: var(--muted); align-items: center; }
.steps > li.done h3 { margin: 0; font-weight: 500; }
.steps > li::before { content: counter(step); display: grid; place-items: center;
  width: 1.5rem; height: 1.5rem; border-radius: 50%; background: var(--sunken);
  color: var(--muted); font-size: 0.75rem; font-weight: 600; }
.steps > li.done::before { content: "✓"; background: var(--good-soft); color: var(--good); }
.steps > li > div { min-width: 0; } .steps h2 { font-size: 0.9375rem; margin: 0 0 0.5rem; } .steps p { margin: 0 0 0.5rem; }
.steps > li.done > div > :not(h3) { display: none; } .steps pre { margin: 0; }
.message { display: grid; gap: 0 1.5rem; padding: 0.75rem 0; border-top: 1px solid var(--line);
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
.message .field { margin: 0; max-width: none; } .message .bubbles { align-content: start; }
.message .bubble { margin: 0; }
.page > form:not(.card, .actions), .page > fieldset { background: var(--surface);
  border: 1px solid var(--line); border-radius: var(--radius-large); box-shadow: var(--shadow);
  padding: 1.25rem; margin: 0 0 1.25rem; }
.page > form:not(.card, .actions) > :last-child { margin-bottom: 0; }
.page > form > .table { margin: 0 0 1rem; border: 0; box-shadow: none; }
.bubbles { display: grid; gap: 0.5rem; max-width: 32rem; }
.bubble { padding: 0.625rem 0.875rem; border-radius: 1rem; background: var(--sunken);
  width: fit-content; max-width: 85%; white-space: pre-wrap; }
.bubble.mine { margin-left: auto; background: var(--accent-soft); }
@media (min-width: 62rem) {
  .shell { grid-template: auto 1fr / 14.5rem minmax(0, 1fr); }
  .shell > .bar { grid-column: 1 / -1; } .shell > .menu { display: none; }
  .shell > .side { display: block; background: var(--surface); padding: 0.25rem 0.75rem 2rem;
    border-right: 1px solid var(--line); }
  .side > div { position: sticky; top: 0.75rem; }
  .page { padding: 1.75rem 2.25rem 5rem; }
  .shell.alone { grid-template-columns: minmax(0, 1fr); }
}
`;
