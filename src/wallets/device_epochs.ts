import { fromBytes } from "../base/json.ts";
import { deviceEpochKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { Device } from "./device_rows.ts";

/** Which of a person's devices are signed in. Nothing is stored before others are signed out. */
export interface Epoch {
  /** The epoch of the devices that are signed in. */
  number: number;
  /**
   * The hash of one older cookie that stays valid: that of the device which signed out the others,
   * since the response with its new cookie may be lost.
   */
  kept: string | null;
}

/** Reads a person's epoch, and the version to check when it is written. */
export async function readEpoch(
  kv: Kv,
  personId: string,
): Promise<Epoch & { version: string | null }> {
  const { value, version } = await kv.get(deviceEpochKey(personId));
  return { ...(value ? fromBytes<Epoch>(value) : { number: 0, kept: null }), version };
}

/** Whether a device is signed in. */
export function isSignedIn(
  hash: string,
  { epoch }: Pick<Device, "epoch">,
  { number, kept }: Epoch,
): boolean {
  return epoch === number || hash === kept;
}
