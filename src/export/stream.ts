import { csvLine, csvRecord } from "../base/csv.ts";
import type { JsonObject } from "../base/json.ts";
import type { Listing, ListingPage } from "../store/listing.ts";
import { exportColumns } from "./kinds.ts";
import type { ExportQuery } from "./schema.ts";

/**
 * The records as text, read page by page as the reader asks for them, so that an export of any
 * length takes the memory of one page. The first page is read at once: what is wrong with the
 * question is thrown. A later read that fails breaks the stream off: without its proper end an
 * export is not whole.
 */
export async function exportStream(
  listing: Listing,
  { what, format, after, ...range }: ExportQuery,
  onFault: (error: unknown) => void,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const columns = exportColumns[what];
  const lineOf = (record: JsonObject) =>
    format === "csv" ? csvRecord(record, columns) : JSON.stringify(record) + "\n";
  const { from = null, to = null } = range;
  const read = (place: string | null) => listing({ after: place, from, to });

  let page: ListingPage = await read(after ?? null);
  // Whoever goes on has the head already.
  let head = format === "csv" && after === undefined ? csvLine(columns) : "";
  return new ReadableStream({
    async pull(controller) {
      let text = head;
      head = "";
      for (;;) {
        text += page.records.map(lineOf).join("");
        if (text !== "" || page.next === null) break;
        page = await readOn(page.next);
      }
      if (text !== "") controller.enqueue(encoder.encode(text));
      if (page.next === null) return controller.close();
      page = await readOn(page.next);
    },
  }, { highWaterMark: 0 });

  async function readOn(place: string): Promise<ListingPage> {
    try {
      return await read(place);
    } catch (error) {
      onFault(error);
      throw error;
    }
  }
}
