import { isPostgres, parsePostgres } from "./postgres_address.ts";

/** What is a URL of another kind, or lacks a part of one, rather than the path of a file. */
const otherUrl = /^[a-z][a-z\d+.-]+:|:.*@/i;

/**
 * Returns what is wrong with the name of a store, in words that repeat no part of it: it may have a
 * password in it. Null where it is the path of a file or a valid URL.
 */
export function kvPathFault(path: string): string | null {
  if (isPostgres(path)) {
    try {
      parsePostgres(path);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
  if (/^https?:\/\//i.test(path)) {
    return URL.canParse(path) && !/[?#@]/.test(path)
      ? null
      : "must have no query, fragment or credentials: the token of a KV server is DENO_KV_ACCESS_TOKEN";
  }
  if (!otherUrl.test(path)) return null;
  return "must be the path of a file, the http or https URL of a KV server, or the URL of a " +
    "PostgreSQL database";
}
