import { csvLine, csvRecord } from "../base/csv.ts";
import type { JsonObject } from "../base/json.ts";
import type { Listing, ListingPage } from "../store/listing.ts";
import { exportColumns } from "./kinds.ts";
import type { ExportQuery } from "./schema.ts";

/**
 * Streams the records as text, page by page as the reader consumes them, so that an export of any
 * length takes the memory of one page. The first page is read at once: a bad request throws. A
 * later read that fails aborts the stream: an export without its proper end is incomplete.
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
  // A client that continues an export has the header line already.
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
