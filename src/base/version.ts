/** The version of this program, as in `deno.json` and CHANGELOG.md (https://semver.org). */
export const version = "0.9.0";
