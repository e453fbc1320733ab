/** The pages of the documentation: contents beside a text, examples beside a reference. */
export const docsStyle = `
.docs { display: block; background: var(--surface); }
.docs h2 { margin: 3rem 0 0.75rem; font-size: 1.375rem; }
.docs h3 { margin: 2.25rem 0 0.5rem; font-size: 1.0625rem; }
.docs h4 { margin: 1.5rem 0 0.5rem; }
.docs > nav { padding: 1rem; border-bottom: 1px solid var(--line); }
.docs > nav p { margin: 0.25rem 0; font-weight: 600; }
.docs > nav ul { list-style: none; margin: 0; padding: 0; }
.docs > nav .parts { margin: 0.75rem 0; display: flex; gap: 0.25rem; }
.docs > nav .wide-only { display: none; }
.docs .guides { margin-top: 3rem; } .docs .guides h2 { margin: 0 0 0.5rem; font-size: 0.9375rem; }
.docs .guides .card { box-shadow: none; }
.docs > nav li a, .docs > nav li [aria-current] { display: block; padding: 0.1875rem 0.5rem;
  border-radius: 0.375rem; color: var(--muted); text-decoration: none; }
.docs > nav li a:hover { color: var(--text); background: var(--hover); }
.docs > nav li [aria-current] { color: var(--accent-strong); background: var(--accent-soft);
  font-weight: 600; }
.docs > main { padding: 1.5rem 1rem 5rem; max-width: 60rem; min-width: 0; font-size: 0.9375rem; }
.docs main pre { white-space: pre-wrap; }
.docs dl { margin: 0.5rem 0; } .docs dt { margin-top: 0.75rem; } .docs dd { margin: 0 0 0 1rem; }
.docs dd p { margin: 0.25rem 0; }
.docs table { margin: 0 0 1rem; } .docs td, .docs th { overflow-wrap: anywhere; }
.docs td code { white-space: normal; }
.docs tr > :first-child { padding-left: 0; }
.docs .address { font-family: var(--mono); font-size: 0.8125rem; }
.docs .method { display: inline-block; padding: 0 0.375rem; border-radius: 0.25rem;
  font: 600 0.75rem/1.5 var(--mono); background: var(--accent-soft); color: var(--accent-strong); }
.docs .search { margin: 0.75rem 0; } .docs .search input { width: 100%; }
.docs .results { list-style: none; padding: 0; } .docs .results li { margin: 0 0 1.25rem; }
.docs .results a { font-weight: 600; } .docs .results p { margin: 0.25rem 0 0; color: var(--muted); }
.docs .operation { padding-top: 1rem; border-top: 1px solid var(--line); margin-top: 2.5rem; }
.docs .operation h2 { margin-top: 1rem; } .docs .operation h3 { font-size: 0.9375rem; }
.docs .examples { min-width: 0; }
.code-tabs { border: 0; padding: 0; margin: 1rem 0; display: flex; flex-wrap: wrap; gap: 0.25rem;
  min-width: 0; }
.code-tabs > input { position: absolute; opacity: 0; width: 1px; height: 1px; }
.code-tabs > label { padding: 0.25rem 0.625rem; border-radius: 0.375rem; cursor: pointer;
  font-size: 0.8125rem; font-weight: 600; color: var(--muted); }
.code-tabs > label:hover { background: var(--hover); color: var(--text); }
.code-tabs > input:checked + label { background: var(--accent-soft); color: var(--accent-strong); }
.code-tabs > input:focus-visible + label { outline: 2px solid var(--accent); outline-offset: 1px; }
.code-tabs .copy > button { top: -2.125rem; right: 0; box-shadow: none; }
.code-tabs .panels { flex: 1 0 100%; min-width: 0; } .code-tabs .panels > div { display: none; }
.code-tabs > input:nth-of-type(1):checked ~ .panels > :nth-child(1),
.code-tabs > input:nth-of-type(2):checked ~ .panels > :nth-child(2),
.code-tabs > input:nth-of-type(3):checked ~ .panels > :nth-child(3) { display: block; }
@media (min-width: 80rem) {
  .docs > main.with-examples { max-width: 84rem; }
  .docs .operation { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 27rem);
    gap: 2.5rem; }
  .docs .examples { position: sticky; top: 1rem; align-self: start; max-height: calc(100vh - 2rem);
    overflow-y: auto; }
}
@media (min-width: 60rem) {
  .docs { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
  .docs > nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border: 0;
    padding: 1.25rem 1rem; border-right: 1px solid var(--line); background: var(--canvas); }
  .docs > nav p { margin-top: 1rem; } .docs > nav .wide-only { display: block; }
  .docs > nav .parts { display: block; }
  .docs > main { padding: 2rem 3rem 6rem; }
}
`;
