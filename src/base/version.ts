/** The version of this program, as in `deno.json` and CHANGELOG.md (https://semver.org). */
export const version = "0.9.0";

/** By what `/healthz` says that it is this program. */
export const serviceName = "farebox";
