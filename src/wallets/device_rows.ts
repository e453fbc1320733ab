import { createHash } from "node:crypto";
import { fromBytes, toBytes } from "../base/json.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../store/expiry.ts";
import {
  allPersonDevicesPrefix,
  deviceKey,
  devicesPrefix,
  personDeviceKey,
  personDevicesPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Kv, type Row, type Write } from "../store/kv.ts";

/** A device of a person. Its cookie is a random secret, of which only the hash is stored. */
export interface Device {
  personId: string;
  /**
   * The device is signed in while this is the person's epoch. Signing out the others begins a new
   * one.
   */
  epoch: number;
  /** In milliseconds since 1970. */
  endsAt: number;
}

const endsAt = (value: Uint8Array) => fromBytes<Pick<Device, "endsAt">>(value).endsAt;

/** Devices. */
export const deviceRows: ExpiringKind = { prefix: devicesPrefix, endsAt };

/** Devices by person. */
export const personDeviceRows: ExpiringKind = { prefix: allPersonDevicesPrefix, endsAt };

/** Returns the hash by which a device is stored. */
export function hashOfCookie(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

/** Reads a device, or null. */
export async function readDevice(kv: Kv, hash: string): Promise<Device | null> {
  return decodeDevice((await kv.get(deviceKey(hash))).value);
}

/** Decodes a device's row. */
export function decodeDevice(value: Uint8Array | null): Device | null {
  return value && fromBytes<Device>(value);
}

/** Returns the rows of a device. */
export function deviceSets(hash: string, device: Device): Write["sets"] {
  const { personId, endsAt } = device;
  return [
    ...withExpiry(deviceRows, { key: deviceKey(hash), value: toBytes(device) }),
    ...withExpiry(personDeviceRows, {
      key: personDeviceKey(personId, hash),
      value: toBytes({ endsAt }),
    }),
  ];
}

/** Returns the keys of a device's rows. */
export function deviceKeys(hash: string, device: Device): Key[] {
  const { personId, endsAt } = device;
  return [
    ...keysWithExpiry(deviceRows, { key: deviceKey(hash), value: toBytes(device) }),
    ...deviceIndexKeys(personId, hash, { endsAt }),
  ];
}

/** Returns the keys of a device's row by person. */
export function deviceIndexKeys(
  personId: string,
  hash: string,
  { endsAt }: Pick<Device, "endsAt">,
): Key[] {
  const key = personDeviceKey(personId, hash);
  return keysWithExpiry(personDeviceRows, { key, value: toBytes({ endsAt }) });
}

/** Returns the write that creates a device: it fails where the secret was used before. */
export function newDeviceWrite(hash: string, device: Device): Write {
  const checks = [{ key: deviceKey(hash), version: null }];
  return { ...emptyWrite(), checks, sets: deviceSets(hash, device) };
}

/** Lists a page of a person's devices, signed out ones too, with their rows. */
export async function listDevices(
  kv: Kv,
  personId: string,
  limit: number,
): Promise<{ hash: string; device: Device; row: Row }[]> {
  const index = await kv.list({ prefix: personDevicesPrefix(personId), limit });
  const hashes = index.map(({ key }) => String(key[2]));
  const rows = hashes.length === 0 ? [] : await kv.getMany(hashes.map(deviceKey));
  return rows.flatMap((row, at) => {
    const device = decodeDevice(row.value);
    return device ? [{ hash: hashes[at] ?? "", device, row }] : [];
  });
}
