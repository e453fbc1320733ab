import type { Deps } from "../deps.ts";
import type { Post } from "../ledger/post.ts";
import type { Announce } from "../projects/announce.ts";
import type { Directory } from "../projects/directory.ts";
import type { Secrets } from "../store/secrets.ts";
import type { Devices } from "./device.ts";
import type { Links } from "./link.ts";

/** What the pages stand on. */
export interface PaywallRooms {
  deps: Deps;
  directory: Directory;
  links: Links;
  post: Post;
  secrets: Secrets;
  announce: Announce;
  devices: Devices;
}
