import type { Deps } from "../deps.ts";
import type { Devices } from "../paywall/device.ts";
import type { Links } from "../paywall/link.ts";
import type { Directory } from "../projects/directory.ts";
import type { Authorizations } from "./authorizations.ts";
import type { Passkeys } from "./passkeys.ts";

/** What the pages of wallets stand on. */
export interface WalletRooms {
  deps: Deps;
  directory: Directory;
  links: Links;
  devices: Devices;
  authorizations: Authorizations;
  passkeys: Passkeys;
}
