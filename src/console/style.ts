// Sizes in rem, and pairs of colors with a contrast of at least 4.5 to 1, for light and dark mode.
// Every color is accompanied by a word.

/** The style of every page of the console. */
export const style = `
:root { color-scheme: light dark;
  --text: light-dark(#1b1b1f, #ececf1); --muted: light-dark(#55565f, #b4b5c0);
  --page: light-dark(#ffffff, #141417); --raised: light-dark(#f5f5f8, #1e1e23);
  --line: light-dark(#d9dae2, #3a3a43); --link: light-dark(#0b4fc0, #a8c7fa);
  --primary: light-dark(#0b4fc0, #a8c7fa); --on-primary: light-dark(#ffffff, #06264f);
  --danger: light-dark(#a3211b, #ffb4ab); --on-danger: light-dark(#ffffff, #4d0f0a);
  --good: light-dark(#14632f, #8fd9a5); --warn: light-dark(#7a4a00, #f2c46d);
  --series-1: light-dark(#0b4fc0, #a8c7fa); --series-2: light-dark(#9a4a00, #f2b27a);
  --series-3: light-dark(#14632f, #8fd9a5); }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--page); }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 0.25rem; }
.skip { position: absolute; left: -100rem; top: 0; padding: 0.75rem 1rem;
  background: var(--page); z-index: 2; }
.skip:focus { left: 0; }
header { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; align-items: center;
  padding: 0.5rem 1rem; border-bottom: 1px solid var(--line); background: var(--raised); }
header .name { font-weight: 600; overflow-wrap: anywhere; }
header form { margin-left: auto; }
header button { min-height: 2.25rem; padding: 0.25rem 0.75rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.125rem; list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: 0.625rem 0.75rem; border-radius: 0.375rem; color: inherit;
  text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav a[aria-current="page"] { background: var(--line); font-weight: 600; }
.body { display: block; max-width: 82rem; margin: 0 auto; }
.body > nav { padding: 0.5rem; border-bottom: 1px solid var(--line); }
main { padding: 0.5rem 1rem 4rem; min-width: 0; overflow-wrap: anywhere; }
.lone { max-width: 34rem; margin: 2rem auto; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 1rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.125rem; margin: 2rem 0 0.5rem; }
p, ul, dl { max-width: 44rem; }
.muted, .exact, .hint { color: var(--muted); }
.changes { list-style: none; margin: 0; padding: 0; min-width: 16rem; }
.exact { font-variant-numeric: tabular-nums; font-size: 0.875em; overflow-wrap: anywhere; }
.hint { display: block; font-size: 0.875rem; }
code { font: 0.875em ui-monospace, monospace; overflow-wrap: anywhere; }
pre { font: 0.8125rem/1.45 ui-monospace, monospace; padding: 0.75rem; overflow: auto;
  background: var(--raised); border: 1px solid var(--line); border-radius: 0.5rem; }
button, input, select, textarea, .button { font: inherit; min-height: 2.75rem;
  padding: 0.5rem 0.875rem; border-radius: 0.5rem; border: 1px solid var(--muted);
  background: var(--page); color: inherit; max-width: 100%; }
.button { display: inline-block; text-decoration: none; }
button { cursor: pointer; }
button.primary { background: var(--primary); color: var(--on-primary); border-color: transparent;
  font-weight: 600; }
button.danger { background: var(--danger); color: var(--on-danger); border-color: transparent;
  font-weight: 600; }
button.plain { background: transparent; }
input[type="checkbox"], input[type="radio"] { min-height: 1.25rem; width: 1.25rem;
  vertical-align: middle; margin: 0 0.375rem 0 0; }
input[aria-invalid="true"] { border-color: var(--danger); border-width: 2px; }
label, legend { font-weight: 600; }
label.check { font-weight: 400; display: block; padding: 0.375rem 0; }
.field { margin: 0 0 1rem; }
.field > label { display: block; margin-bottom: 0.25rem; }
.field input:not([type="checkbox"]), .field textarea, .field select { width: 26rem; }
.fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr));
  gap: 0 1rem; max-width: 60rem; }
.fields .field input { width: 100%; }
fieldset { border: 1px solid var(--line); border-radius: 0.5rem; margin: 0 0 1rem;
  padding: 0.75rem 1rem; min-width: 0; }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin: 1rem 0; }
.actions form { margin: 0; }
.actions .field { max-width: 100%; }
.flash, .alert { padding: 0.75rem 1rem; border-radius: 0.5rem; border: 1px solid var(--line);
  border-left: 0.375rem solid var(--good); background: var(--raised); max-width: 60rem; }
.alert { border-left-color: var(--danger); }
.secret { display: block; padding: 0.75rem; border: 2px dashed var(--warn); border-radius: 0.5rem;
  user-select: all; }
.stats { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
  gap: 0.5rem; margin: 0 0 1rem; padding: 0; max-width: none; }
.stats > div { padding: 0.75rem; border: 1px solid var(--line); border-radius: 0.5rem;
  background: var(--raised); }
.stats dt { color: var(--muted); font-size: 0.875rem; }
.stats dd { margin: 0; font-size: 1.375rem; font-weight: 600; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; line-height: 1.3; }
.stats dd .exact { display: block; font-weight: 400; font-size: 0.875rem; }
.stats dd time { white-space: normal; font-size: 1rem; }
.stats dd.note { font-size: 0.8125rem; font-weight: 400; color: var(--muted); }
.scroll { overflow-x: auto; margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
caption { text-align: left; color: var(--muted); padding: 0.25rem 0;
  max-width: calc(100vw - 2rem); }
th, td { text-align: left; vertical-align: top; padding: 0.5rem 0.875rem 0.5rem 0;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--muted); font-size: 0.875rem; white-space: nowrap; }
tbody th { font-weight: 600; min-width: 7rem; max-width: 24rem; overflow-wrap: break-word; }
td { min-width: 3rem; }
time { white-space: nowrap; }
table.inputs td { padding: 0.25rem 0.25rem 0.25rem 0; border: 0; }
table.inputs input { width: 7.5rem; padding: 0.375rem 0.5rem; }
table.inputs td:first-child input { width: 15rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td code { white-space: nowrap; }
.tag { display: inline-block; padding: 0 0.5rem; border-radius: 1rem; font-size: 0.8125rem;
  border: 1px solid currentColor; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--danger); } .late { color: var(--warn); }
.pager { display: flex; gap: 1rem; }
.tabs { display: flex; flex-wrap: wrap; gap: 0.25rem; list-style: none; padding: 0;
  margin: 0 0 1rem; }
.tabs a { display: block; padding: 0.5rem 0.75rem; border: 1px solid var(--line);
  border-radius: 0.5rem; text-decoration: none; }
.tabs a[aria-current] { background: var(--line); font-weight: 600; }
details { margin: 0 0 1rem; }
summary { cursor: pointer; padding: 0.5rem 0; }
.charts { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); }
figure { margin: 0 0 1rem; min-width: 0; max-width: 36rem; }
figcaption { min-height: 4.5rem; }
figcaption h2 { margin-top: 1rem; }
figure > svg { display: block; width: 100%; height: auto; }
figure text { font: 12px system-ui, sans-serif; fill: var(--muted); }
figure text.peak { font-weight: 600; fill: var(--text); }
.legend { display: flex; flex-wrap: wrap; gap: 0 1rem; list-style: none; margin: 0; padding: 0; }
.legend svg { vertical-align: -0.125rem; margin-right: 0.375rem; }
@media (min-width: 62rem) {
  .body { display: grid; grid-template-columns: 13rem minmax(0, 1fr); }
  .body > nav { border-bottom: 0; padding: 1rem 0.5rem; }
  .body > nav ul { flex-direction: column; position: sticky; top: 1rem; }
  main { padding: 0.5rem 2rem 4rem; }
}
`;
