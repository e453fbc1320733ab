import { encodeUtf8 } from "../base/utf8.ts";
import { badRequest } from "../base/errors.ts";
import { canonicalJson, fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type AuditActor, auditRow } from "../projects/audit.ts";
import type { ListPrice } from "../projects/price_schema.ts";
import { catalogueHeadKey, cataloguePartKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Catalogue } from "./catalogue.ts";
import type { CataloguePrices } from "./catalogue_file.ts";

/** A price that a refresh changes; null where there is none. */
export interface PriceChange {
  provider: string;
  model: string;
  before: ListPrice | null;
  after: ListPrice | null;
}

/** What a refresh did to a model's prices of tokens, per million; null where there was none. */
interface RefreshedModel {
  provider: string;
  model: string;
  before: { input: string; output: string } | null;
  after: { input: string; output: string } | null;
}

/** The last refresh of the catalogue. */
export interface LastRefresh {
  date: string;
  /** How many models' prices have changed. */
  changed: number;
  /** The first of them, at most 100. */
  models: readonly RefreshedModel[];
}

/** Refreshed prices of the catalogue, which are stored and reach every process. */
export interface CatalogueRefresh {
  /**
   * The prices that would change, by provider and model. What only the last refresh had is as it
   * came with Farebox again, or has no price. Compares with what is stored, by whatever process.
   */
  diff(prices: CataloguePrices): Promise<PriceChange[]>;
  /**
   * Stores the prices in place of those of the last refresh, with a row in the audit trail; they
   * apply to the next request. Returns what has changed.
   */
  refresh(prices: CataloguePrices, by: AuditActor): Promise<PriceChange[]>;
  /** Reads what another process has stored. */
  load(): Promise<void>;
  /** What the last refresh changed; null where there was none. */
  last(): LastRefresh | null;
}

/** The stored prices: how many parts they have, their day, and what they changed. */
interface Head {
  id: string;
  date: string;
  parts: number;
  changed: number;
  models: RefreshedModel[];
}

const partBytesMax = 48 * 1024;
const partsMax = 10;
/** With the longest names some 55 KiB. */
const modelsMax = 100;

/** Creates the refreshing of a catalogue. */
export function createCatalogueRefresh(
  deps: Pick<Deps, "kv" | "clock" | "id">,
  catalogue: Catalogue,
): CatalogueRefresh {
  const { kv, clock, id } = deps;
  let loaded: Head | null = null;

  function apply(head: Head, prices: CataloguePrices["prices"]): void {
    const byProvider = Object.entries(prices).map(([provider, models]) =>
      [provider, new Map(Object.entries(models))] as const
    );
    catalogue.replace(new Map(byProvider), head.date);
    loaded = head;
  }

  async function load(): Promise<void> {
    const { value } = await kv.get(catalogueHeadKey);
    const head = value && fromBytes<Head>(value);
    if (!head || head.id === loaded?.id) return;
    const keys = Array.from({ length: head.parts }, (_, at) => cataloguePartKey(head.id, at));
    const rows = await kv.getMany(keys);
    const bytes = rows.flatMap((row) => row.value ?? []);
    // A newer refresh has removed a part: the next load finds that one.
    if (bytes.length < head.parts) return;
    const text = bytes.map((part) => new TextDecoder().decode(part)).join("");
    apply(head, JSON.parse(text));
  }

  async function diff({ prices }: CataloguePrices): Promise<PriceChange[]> {
    await load();
    const at = clock.now();
    const changes: PriceChange[] = [];
    const compare = (provider: string, model: string, after: ListPrice | null) => {
      const before = catalogue.findOf(provider, model, at);
      if (canonicalJson({ ...before }) === canonicalJson({ ...after })) return;
      changes.push({ provider, model, before, after });
    };
    for (const [provider, models] of Object.entries(prices)) {
      for (const [model, after] of Object.entries(models)) compare(provider, model, after);
    }
    for (const [provider, models] of catalogue.refreshed) {
      for (const model of models.keys()) {
        if (Object.hasOwn(prices[provider] ?? {}, model)) continue;
        compare(provider, model, catalogue.packaged(provider, model, at));
      }
    }
    return changes;
  }

  return {
    diff,
    async refresh({ date, prices }, by) {
      const parts = partsOf(prices);
      const changes = await diff({ date, prices });
      const models = changes.slice(0, modelsMax).map(asRefreshed);
      const head: Head = {
        id: id("cat"),
        date,
        parts: parts.length,
        changed: changes.length,
        models,
      };
      const row = await kv.get(catalogueHeadKey);
      const before = row.value && fromBytes<Head>(row.value);
      const write = emptyWrite();
      write.checks.push({ key: catalogueHeadKey, version: row.version });
      write.sets.push({ key: catalogueHeadKey, value: toBytes(head) });
      const detail = { date, changed: changes.length };
      const auditAction = { by, action: "catalogue.refreshed", target: head.id, detail } as const;
      write.sets.push(auditRow(deps, null, auditAction));
      parts.forEach((value, at) => write.sets.push({ key: cataloguePartKey(head.id, at), value }));
      for (let at = 0; before && at < before.parts; at++) {
        write.deletes.push(cataloguePartKey(before.id, at));
      }
      if (await kv.atomic(write) === null) {
        throw badRequest(null, "Another refresh was stored at the same time. Try again.");
      }
      apply(head, prices);
      return changes;
    },
    load,
    last() {
      if (!loaded) return null;
      const { date, changed, models } = loaded;
      return { date, changed, models };
    },
  };
}

function asRefreshed({ provider, model, before, after }: PriceChange): RefreshedModel {
  const tokens = (price: ListPrice | null) => price && { input: price.input, output: price.output };
  return { provider, model, before: tokens(before), after: tokens(after) };
}

/** The prices as values that the store can hold. Throws 400 where they are too many. */
function partsOf(prices: CataloguePrices["prices"]): Uint8Array[] {
  const text = JSON.stringify(prices).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const parts: Uint8Array[] = [];
  for (let at = 0; at < text.length; at += partBytesMax) {
    parts.push(encodeUtf8(text.slice(at, at + partBytesMax)));
  }
  if (parts.length <= partsMax) return parts;
  throw badRequest("prices", `The prices exceed ${partBytesMax * partsMax} bytes of JSON.`);
}
