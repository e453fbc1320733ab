import type { Deps } from "../deps.ts";
import type { DeviceCookies } from "./device_cookies.ts";
import type { Links } from "../paywall/links.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Authorizations } from "./authorizations.ts";
import type { Passkeys } from "./passkeys.ts";

/** What the pages of wallets stand on. */
export interface WalletDeps {
  deps: Deps;
  projectCache: ProjectCache;
  links: Links;
  deviceCookies: DeviceCookies;
  authorizations: Authorizations;
  passkeys: Passkeys;
}
