import { Unreachable } from "./failure.ts";

/** How many connections in a row may break without a single line. */
const attemptsMax = 5;
const pauseMs = 1_000;

/** A response of lines, each of which contains its position. */
interface ContinuedLines {
  /** What the lines are, in the plural. */
  what: string;
  /** Requests the lines after a position; undefined is the start. */
  read(after: string | undefined): Promise<Response>;
  positionOf(line: string): string;
  note(text: string): void;
}

/** Yields lines as they arrive, and continues after the last one when the connection breaks. */
export async function* readLinesAfter(
  { what, read, positionOf, note }: ContinuedLines,
): AsyncGenerator<string[]> {
  let after: string | undefined;
  let count = 0;
  for (let attempt = 1;;) {
    try {
      for await (const lines of readLines(await read(after))) {
        const last = lines.at(-1);
        if (last === undefined) continue;
        yield lines;
        after = positionOf(last);
        count += lines.length;
        attempt = 1;
      }
      return;
    } catch (error) {
      if (!(error instanceof Unreachable) || attempt >= attemptsMax) throw error;
      note(`${error.message} Continuing after ${count.toLocaleString("en-US")} ${what}.`);
      attempt++;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** Yields complete lines as they arrive. Throws `Unreachable` where they end early. */
async function* readLines({ body, url }: Response): AsyncGenerator<string[]> {
  let rest = "";
  const reader = (body ?? new Blob().stream()).pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw new Unreachable(
        `The connection to ${new URL(url).origin} closed early: ${error.message}.`,
      );
    });
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    yield lines;
  }
}
