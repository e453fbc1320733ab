import { consoleStyle } from "./style_console.ts";
import { docsStyle } from "./style_docs.ts";
import { payerStyle } from "./style_payer.ts";
import { theme } from "./theme.ts";

const base = `
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; font: 0.875rem/1.55 var(--font); color: var(--text); background: var(--canvas);
  overflow-wrap: anywhere; font-feature-settings: "cv05", "ss03"; -webkit-font-smoothing: antialiased; }
h1, h2, h3 { line-height: 1.25; letter-spacing: -0.012em; font-weight: 600; margin: 0; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.0625rem; } h3 { font-size: 0.9375rem; }
p, ul, ol, dl { max-width: 44rem; margin: 0 0 0.75rem; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 0.2em;
  text-decoration-color: color-mix(in srgb, currentColor 40%, transparent); }
a:hover { text-decoration-color: currentColor; }
small, .small { font-size: 0.8125rem; }
.muted { color: var(--muted); }
.number, .figure { font-variant-numeric: tabular-nums; }
.nowrap, time { white-space: nowrap; }
code, pre { font-family: var(--mono); }
code { font-size: 0.92em; overflow-wrap: anywhere; }
pre { font-size: 0.8125rem; line-height: 1.5; margin: 0 0 1rem; padding: 0.875rem 1rem;
  overflow: auto; background: var(--sunken); border: 1px solid var(--line);
  border-radius: var(--radius); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 0.25rem; }
.skip { position: absolute; left: -100rem; top: 0; padding: 0.75rem 1rem; z-index: 3;
  background: var(--surface); border-radius: var(--radius); }
.skip:focus { left: 0.5rem; top: 0.5rem; }
.icon { width: 1rem; height: 1rem; flex: none; stroke: currentColor; fill: none;
  stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round; vertical-align: -0.15em; }
.brand { display: inline-flex; align-items: center; gap: 0.5rem; font-weight: 650;
  color: inherit; text-decoration: none; letter-spacing: -0.015em; }
.brand svg { width: 1.375rem; height: 1.375rem; flex: none; }
[hidden] { display: none !important; }
`;

const controls = `
button, .button, input, select, textarea { font: inherit; color: inherit; max-width: 100%;
  border-radius: var(--radius); border: 1px solid var(--line-strong); background: var(--surface); }
button, .button { display: inline-flex; align-items: center; justify-content: center; gap: 0.4rem;
  min-height: 2.25rem; padding: 0.375rem 0.875rem; font-weight: 550; text-decoration: none;
  cursor: pointer; box-shadow: var(--shadow); white-space: normal; text-align: center; }
button:hover, .button:hover { background: var(--hover); }
button.primary, .button.primary { background: var(--accent); border-color: transparent;
  color: var(--on-accent); }
button.primary:hover, .button.primary:hover { background: var(--accent-strong); }
button.danger { background: var(--bad); border-color: transparent; color: var(--on-bad); }
button.danger:hover { background: color-mix(in srgb, var(--bad) 85%, var(--text)); }
button.plain, .button.plain { background: none; border-color: transparent; box-shadow: none; }
button.plain:hover, .button.plain:hover { background: var(--hover); }
button.small, .button.small { min-height: 1.875rem; padding: 0.125rem 0.625rem;
  font-size: 0.8125rem; }
input, select, textarea { min-height: 2.25rem; padding: 0.375rem 0.75rem;
  box-shadow: inset var(--shadow); }
input::placeholder, textarea::placeholder { color: var(--muted); opacity: 1; }
textarea { font-family: var(--mono); font-size: 0.8125rem; line-height: 1.5; width: 100%; }
input:focus-visible, select:focus-visible, textarea:focus-visible { outline-offset: -1px;
  border-radius: var(--radius); }
input[type="file"] { padding: 0.3125rem; }
input:is([type="date"], [type="datetime-local"]) { height: 2.25rem; padding-block: 0; }
input::file-selector-button { font: inherit; font-size: 0.8125rem; font-weight: 550; color: inherit;
  margin: 0 0.75rem 0 0; padding: 0.125rem 0.625rem; cursor: pointer; background: var(--sunken);
  border: 1px solid var(--line); border-radius: 0.375rem; }
input[aria-invalid="true"] { border-color: var(--bad); box-shadow: 0 0 0 1px var(--bad); }
input[type="checkbox"], input[type="radio"] { min-height: 0; width: 1rem; height: 1rem; margin: 0;
  accent-color: var(--accent); box-shadow: none; flex: none; }
label, legend { font-weight: 550; }
label.check { font-weight: 400; display: flex; gap: 0.5rem; padding: 0.25rem 0;
  align-items: baseline; }
label.check input { position: relative; top: 0.15em; }
.field { margin: 0 0 1rem; max-width: 32rem; }
.field > label { display: block; margin-bottom: 0.25rem; }
.field input:not([type="checkbox"]), .field textarea, .field select { width: 100%; }
.hint { display: block; margin-top: 0.25rem; font-size: 0.8125rem; color: var(--muted); }
.fields { display: grid; gap: 0 1rem; max-width: 64rem;
  grid-template-columns: repeat(auto-fill, minmax(min(14rem, 100%), 1fr)); }
fieldset { border: 1px solid var(--line); border-radius: var(--radius); margin: 0 0 1rem;
  padding: 0.75rem 1rem; min-width: 0; }
legend { padding: 0 0.375rem; margin-left: -0.375rem; }
fieldset.part { border: 0; border-top: 1px solid var(--line); border-radius: 0; margin: 0;
  padding: 1.25rem 0 0.5rem; }
.card form { margin: 0 0 1rem; }
form > .part:first-of-type { border-top: 0; padding-top: 0; }
.part > legend { float: left; width: 100%; padding: 0; margin: 0; font-weight: 600; }
.part > .hint { clear: left; margin: 0.25rem 0 1rem; max-width: 40rem; }
.part > legend + div { clear: left; padding-top: 0.75rem; }
.part .fields { max-width: 32rem; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }
.part .fields:has(.family) { max-width: none; }
@media (min-width: 62rem) {
  .part { display: grid; grid-template-columns: 15rem minmax(0, 1fr); gap: 0 2.5rem;
    grid-template-rows: auto 1fr; }
  .part > .hint { grid-column: 1; } .part > div, .part > legend + div { grid-column: 2;
    grid-row: 1 / span 2; padding-top: 0; }
}
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin: 0 0 1rem;
  max-width: none; }
.actions form, .actions .field { margin: 0; }
.actions.end { align-items: end; } .actions > .last { margin-left: auto; }
summary { cursor: pointer; padding: 0.375rem 0; font-weight: 550; }
summary:hover { color: var(--accent); }
details { margin: 0 0 1rem; } td details, td ul { margin: 0; }
`;

const parts = `
.card { background: var(--surface); border: 1px solid var(--line); margin: 0 0 1.25rem;
  border-radius: var(--radius-large); box-shadow: var(--shadow); padding: 1.25rem; min-width: 0; }
.card > :last-child { margin-bottom: 0; }
.card > h2, .card > header { margin: 0 0 0.875rem; }
.card > header { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; align-items: baseline;
  justify-content: space-between; }
.card > header p { margin: 0; color: var(--muted); }
.cards { display: grid; gap: 1.25rem; margin: 0 0 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }
.cards > .card { margin: 0; }
.flash, .alert, .notice { padding: 0.75rem 1rem; border-radius: var(--radius); max-width: none;
  border: 1px solid var(--line); background: var(--surface); margin: 0 0 1rem; }
.flash { background: var(--good-soft); border-color: transparent; color: var(--good);
  font-weight: 550; }
.alert { background: var(--bad-soft); border-color: transparent; color: var(--bad);
  font-weight: 550; }
.notice { background: var(--warn-soft); border-color: transparent; }
.notice > :last-child, .alert > :last-child { margin-bottom: 0; }
.notice.info { background: var(--accent-soft); }
.toast { position: fixed; right: 1.25rem; bottom: 1.25rem; z-index: 2; margin: 0;
  max-width: min(26rem, calc(100vw - 2.5rem)); box-shadow: var(--shadow-large); }
.secret { display: block; padding: 0.75rem 1rem; border: 1px dashed var(--warn);
  border-radius: var(--radius); background: var(--warn-soft); user-select: all; }
.tag { display: inline-flex; align-items: center; gap: 0.375rem; padding: 0.0625rem 0.5rem;
  border-radius: 1rem; font-size: 0.75rem; font-weight: 550; white-space: nowrap;
  background: var(--sunken); color: var(--muted); }
.tag::before { content: ""; width: 0.375rem; height: 0.375rem; border-radius: 50%;
  background: currentColor; }
.tag.good { background: var(--good-soft); color: var(--good); }
.tag.bad { background: var(--bad-soft); color: var(--bad); }
.tag.late { background: var(--warn-soft); color: var(--warn); }
.tag.late::before { border-radius: 0; } .tag.bad::before { clip-path: polygon(50% 0, 100% 100%,
  0 100%); border-radius: 0; }
.good { color: var(--good); } .bad { color: var(--bad); } .late { color: var(--warn); }
.stats { display: grid; margin: 0 0 1.25rem; padding: 0; max-width: none;
  overflow: hidden; border: 1px solid var(--line); border-radius: var(--radius-large);
  background: var(--surface); box-shadow: var(--shadow);
  grid-template-columns: repeat(auto-fit, minmax(min(10.5rem, 45%), 1fr)); }
@media (min-width: 60rem) {
  .stats:has(> :nth-child(6):last-child) { grid-template-columns: repeat(3, 1fr); }
}
@media (min-width: 88rem) {
  .stats:has(> :nth-child(6):last-child) { grid-template-columns: repeat(6, 1fr); }
}
.stats > div { padding: 1rem 1.25rem; box-shadow: 1px 1px 0 var(--line); }
.stats dt { color: var(--muted); font-size: 0.8125rem; }
.stats dd { margin: 0.125rem 0 0; font-size: 1.375rem; font-weight: 600; line-height: 1.3;
  letter-spacing: -0.015em; font-variant-numeric: tabular-nums; }
.stats dd time { font-size: 1rem; white-space: normal; }
.stats dd.note { font-size: 0.8125rem; font-weight: 400; color: var(--muted);
  letter-spacing: 0; }
.details { margin: 0; max-width: none; }
.details > div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: 0 1rem;
  padding: 0.3125rem 0; }
.details dt { color: var(--muted); } .details dd { margin: 0; overflow-wrap: anywhere; }
nav:has(> .tabs) { margin: 0 0 1rem; } .page > header nav:has(> .tabs) { margin: 0; }
.tabs { display: flex; flex-wrap: wrap; gap: 0.125rem; list-style: none; padding: 0.1875rem;
  margin: 0; width: fit-content; max-width: 100%; border-radius: var(--radius);
  background: var(--sunken); border: 1px solid var(--line); }
.tabs a { display: block; padding: 0.25rem 0.75rem; border-radius: 0.375rem; color: var(--muted);
  text-decoration: none; font-weight: 550; font-size: 0.8125rem; }
.tabs a:hover { color: var(--text); }
.tabs a[aria-current] { background: var(--surface); color: var(--text);
  box-shadow: var(--shadow); }
.empty { text-align: center; padding: 2.5rem 1rem; color: var(--muted); margin: 0 auto; }
.empty h3 { color: var(--text); margin-bottom: 0.25rem; }
.empty p { margin: 0 auto 1rem; max-width: 30rem; } .empty .icon { width: 1.5rem; height: 1.5rem; }
.pager { display: flex; gap: 0.5rem; margin: 0.75rem 0 0; }
.copy { position: relative; } .copy > button { position: absolute; right: 0.5rem; top: 0.5rem; }
.inline-copy { display: inline-flex; flex-wrap: wrap; align-items: center; gap: 0.375rem;
  max-width: 100%; }
.inline-copy button { flex: none; } .inline-copy code { min-width: 0; }
.changes, .plain-list { list-style: none; margin: 0; padding: 0; }
.exact { color: var(--muted); font-variant-numeric: tabular-nums; font-size: 0.8125rem; }
`;

const tables = `
.table { overflow-x: auto; margin: 0 -1.25rem; }
.card > .table:last-child { margin-bottom: -0.5rem; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
caption { text-align: left; color: var(--muted); padding: 0 1.25rem 0.5rem;
  font-size: 0.8125rem; max-width: calc(100vw - 2rem); }
th, td { text-align: left; vertical-align: baseline; padding: 0.5625rem 0.75rem;
  border-bottom: 1px solid var(--line); font-weight: 400; }
tr > :first-child { padding-left: 1.25rem; } tr > :last-child { padding-right: 1.25rem; }
thead th { color: var(--muted); font-size: 0.75rem; font-weight: 550; white-space: nowrap;
  padding-block: 0.375rem; }
tbody th { font-weight: 550; max-width: 24rem; overflow-wrap: anywhere; min-width: 7rem; }
tbody th:has(> time) { font-weight: 400; color: var(--muted); }
tbody tr:last-child > * { border-bottom: 0; }
tbody tr:hover > * { background: var(--sunken); }
th.number, td.number { text-align: right; white-space: nowrap; }
td code { white-space: nowrap; }
table.dense :is(th, td) { padding-inline: 0.5rem; font-size: 0.8125rem; }
table.dense tbody th { min-width: 5rem; }
table.dense tr > :first-child { padding-left: 1.25rem; }
table.dense tr > :last-child { padding-right: 1.25rem; }
table.inputs td { padding: 0.25rem 0.375rem; border: 0; }
table.inputs tr > :first-child { padding-left: 0; } table.inputs caption { padding-left: 0; }
.page > form > .table { overflow-x: auto; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
table.inputs tr:hover > * { background: none; }
table.inputs input { width: 7rem; } table.inputs td:first-child input { width: 15rem; }
@media (max-width: 40rem) {
  table.inputs thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  table.inputs, table.inputs tbody, table.inputs caption { display: block; }
  table.inputs tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0.5rem;
    padding: 0.75rem 0; border-bottom: 1px solid var(--line); }
  table.inputs td { padding: 0; } table.inputs td:first-child { grid-column: 1 / -1; }
  table.inputs td::before { content: attr(data-label); display: block; color: var(--muted);
    font-size: 0.75rem; }
  table.inputs input, table.inputs td:first-child input { width: 100%; }
  .table.stacks { overflow: visible; } .stacks table { overflow-wrap: anywhere; display: block; }
  .stacks td > * { min-width: 0; }
  .stacks thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .stacks tbody { display: block; }
  .stacks caption { display: block; }
  .stacks tr { display: grid; grid-template-columns: minmax(0, 1fr) fit-content(65%);
    grid-auto-flow: row dense; gap: 0.125rem 1rem; padding: 0.75rem 1.25rem; border-bottom: 1px solid var(--line); }
  .stacks tbody tr:last-child { border-bottom: 0; }
  .stacks tr > th, .stacks tr > td { padding: 0 !important; border: 0; grid-column: 1 / -1;
    min-width: 0; max-width: none; }
  .stacks tbody tr:hover > * { background: none; }
  .stacks tr > th[scope="row"] { grid-column: 1; grid-row: 1; overflow-wrap: anywhere; }
  .stacks tr > td.lead { grid-column: 2; grid-row: 1; font-weight: 600; }
  .stacks tr > td:not(.lead) { display: flow-root; font-size: 0.8125rem; text-align: right;
    white-space: normal; }
  .stacks td:not(.lead)::before { content: attr(data-label); color: var(--muted); float: left;
    margin-right: 1rem; }
  .stacks td[class*="phone-"]::before { content: none; }
  .stacks tr > td:is(.phone-line, .phone-left) { text-align: left; }
  .stacks tr > td.phone-left { grid-column: 1; } .stacks tr > td.phone-right { grid-column: 2; }
  .stacks tr > td.phone-none { display: none; }
  .stacks tr > td:empty { display: none; }
  .stacks td code { white-space: normal; }
}
`;

const charts = `
.charts { display: grid; gap: 1.25rem; margin: 0 0 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
.charts > figure { margin: 0; }
figure { margin: 0 0 1.25rem; min-width: 0; background: var(--surface);
  border: 1px solid var(--line); border-radius: var(--radius-large); box-shadow: var(--shadow);
  padding: 1.25rem; }
figcaption { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; justify-content: space-between;
  align-items: baseline; margin-bottom: 0.5rem; }
figure > svg { display: block; width: 100%; height: auto; }
figure > svg.patterns { position: absolute; width: 0; height: 0; }
figure > svg.phone { display: none; }
@media (max-width: 40rem) { figure > svg.wide { display: none; }
  figure > svg.phone { display: block; } }
figure text { font: 11px var(--font); fill: var(--muted); font-variant-numeric: tabular-nums; }
figure text.peak { font-weight: 600; fill: var(--text); }
figure details { margin: 0.5rem 0 0; }
figure summary { font-size: 0.8125rem; color: var(--muted); font-weight: 400; }
figure a:hover rect { opacity: 0.75; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1rem; list-style: none; margin: 0; padding: 0;
  font-size: 0.8125rem; color: var(--muted); }
.legend svg { vertical-align: -0.125rem; margin-right: 0.375rem; }
.share { display: block; width: 100%; max-width: 8rem; height: 0.5rem; }
.share rect { fill: var(--sunken); } .share rect + rect { fill: var(--series-1); }
`;

/** The style sheet of all pages. */
export const style = [
  theme,
  base,
  controls,
  parts,
  tables,
  charts,
  consoleStyle,
  payerStyle,
  docsStyle,
]
  .join("");
