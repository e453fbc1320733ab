import type { Entry, KeyIssuer } from "./entry.ts";

/**
 * Returns the operation under which an idempotency key is stored. The API has no operation of these
 * names, so no caller can use up a key that this service is going to choose.
 */
export function keyOperation(verb: string, issuer: Entry["keyIssuer"]): string {
  return isOwnKey(issuer) ? `${issuer} ${verb}` : verb;
}

/** Whether this service chose the key of an entry. */
export function isOwnKey(issuer: Entry["keyIssuer"]): issuer is KeyIssuer {
  return issuer !== undefined && issuer !== "caller";
}
