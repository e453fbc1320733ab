import { version } from "../base/version.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { dataFormatKey } from "./keys.ts";
import { emptyWrite, type Kv } from "./kv.ts";

/** Raised by a version that writes rows which an earlier one would misread. 0.9.0 wrote none. */
export const dataFormat = 1;

/** The newest format of a store's rows, and the version that first wrote it. */
interface StoredFormat {
  format: number;
  by: string;
}

/**
 * Marks the store with this version's format of rows. Throws an Error that says what to do where a
 * newer version has marked it: this one would misread what that wrote.
 */
export async function claimDataFormat(kv: Kv): Promise<void> {
  const key = dataFormatKey;
  for (;;) {
    const { value, version: found } = await kv.get(key);
    const stored = value && fromBytes<StoredFormat>(value);
    if (stored && stored.format > dataFormat) {
      throw new Error(
        `KV_PATH was upgraded by Farebox ${stored.by}, which writes data that this version, ` +
          `${version}, cannot read. Start that version or a later one; or restore the backup from ` +
          "before the upgrade, which loses what came since",
      );
    }
    if (stored?.format === dataFormat) return;
    const set = { key, value: toBytes({ format: dataFormat, by: version }) };
    const write = { ...emptyWrite(), checks: [{ key, version: found }], sets: [set] };
    if ((await kv.atomic(write)) !== null) return;
  }
}
