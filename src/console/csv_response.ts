import { csvLine } from "../base/csv.ts";

/** One page of a download: its lines, and how many they are. */
interface CsvPage {
  text: string;
  count: number;
  /** Where the next page starts; null at the end. */
  nextCursor: string | null;
}

/** What a download consists of. */
interface CsvSource {
  columns: readonly string[];
  /** The first page's cursor. */
  cursor: string | undefined;
  read(cursor: string | undefined): Promise<CsvPage>;
  /** The last line, which counts the rows. By default the count alone. */
  total?(count: number): string;
}

/**
 * A file of comma-separated values for download, of any length: pages are read as the client takes
 * them. The last line tells how many rows there are. A read that fails breaks the download off, so
 * that a part is never taken for the whole.
 */
export async function csvDownload(
  { columns, cursor, read, total = countLine }: CsvSource,
  name: string,
  requestId: string,
): Promise<Response> {
  const encoder = new TextEncoder();
  // A bad filter is an error page, and no broken file.
  let page = await read(cursor);
  let text = csvLine(columns);
  let count = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      text += page.text;
      count += page.count;
      if (page.nextCursor === null) {
        controller.enqueue(encoder.encode(text + total(count)));
        return controller.close();
      }
      if (text !== "") controller.enqueue(encoder.encode(text));
      text = "";
      page = await read(page.nextCursor);
    },
  }, { highWaterMark: 0 });
  return new Response(body, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name}.csv"`,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": requestId,
    },
  });
}

const countLine = (count: number) => csvLine(["total", `${count} rows`]);
