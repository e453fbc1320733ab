/** @jsxImportSource @hono/hono/jsx */
import { EmptyState } from "../pages/parts.tsx";
import { Frame, type Reference } from "./reference.tsx";
import { searchCharsMax, type SearchResult } from "./search.ts";

/** What a search found; `results` is null where the text is too long. */
export function SearchPage({ reference, base, query, results }: {
  reference: Reference;
  base: string;
  query: string;
  results: readonly SearchResult[] | null;
}) {
  return (
    <Frame reference={reference} base={base} title="Search" query={query}>
      <h1>Search</h1>
      {results === null
        ? <p class="notice">At most {searchCharsMax} characters can be searched for.</p>
        : query === ""
        ? <p>Enter a word, a path, a field or an error code.</p>
        : results.length === 0
        ? (
          <EmptyState icon="docs" title="Nothing found">
            No section contains these words. Try fewer, or an error code.
          </EmptyState>
        )
        : (
          <>
            <p class="muted">
              {results.length === 1 ? "1 result" : `${results.length} results`} for “{query}”.
            </p>
            <ol class="results">
              {results.map(({ title, place, href, snippet }) => (
                <li>
                  <a href={href}>{title}</a> <span class="muted">{place}</span>
                  <p>{snippet}</p>
                </li>
              ))}
            </ol>
          </>
        )}
    </Frame>
  );
}
