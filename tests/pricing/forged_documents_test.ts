import assert from "node:assert/strict";
import { runAtOnce } from "../../src/base/steps.ts";
import { mediaTokens } from "../../src/pricing/media_tokens.ts";
import { createMediaWork, type MediaWork } from "../../src/pricing/media_work.ts";
import { readPdf } from "../../src/pricing/pdf_size.ts";
import { deflated, pdf, pdfStream } from "./files.ts";

type Part = string | Uint8Array;

function fileOf(...parts: readonly Part[]): Uint8Array {
  const all = ["%PDF-1.7\n", ...parts, "trailer\n<< /Root 1 0 R >>\n%%EOF\n"];
  return Uint8Array.from(
    all.flatMap((part) => [...(typeof part === "string" ? new TextEncoder().encode(part) : part)]),
  );
}

const catalogue = "1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n";
const kids = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `${from + at} 0 R`).join(" ");
const root = (list: string, more = "/Count 1") =>
  `2 0 obj\n<< /Type /Pages /Kids ${list} ${more} >>\nendobj\n`;
const leaves = (from: number, count: number, content = "/Type /Page") =>
  Array.from({ length: count }, (_, at) => `${from + at} 0 obj << ${content} >> endobj\n`);
const packed = (objects: string, numbers: string, dictionary = "") =>
  pdfStream(
    900,
    `/Type /ObjStm /N ${numbers.split(" ").length / 2} /First ${
      numbers.length + 1
    } /Filter /FlateDecode ${dictionary}`,
    deflated(`${numbers} ${objects}`),
  );

const read = (bytes: Uint8Array, work: MediaWork = createMediaWork()) =>
  runAtOnce(readPdf(bytes, work));

/** Documents of 300 pages, in forms that readers of PDF accept. */
const documents: Record<string, Uint8Array> = {
  "an indirect type": fileOf(
    ...[catalogue, root(`[${kids(10, 300)}]`), "5 0 obj /Page endobj\n"],
    ...leaves(10, 300, "/Type 5 0 R"),
  ),
  "no type": fileOf(catalogue, root(`[${kids(10, 300)}]`), ...leaves(10, 300, "")),
  "an indirect list": fileOf(
    ...[catalogue, root("7 0 R"), `7 0 obj\n[${kids(10, 300)}]\nendobj\n`],
    ...leaves(10, 300, ""),
  ),
  "a tree of nodes": fileOf(
    ...[catalogue, root("[3 0 R 4 0 R 5 0 R]")],
    ...[3, 4, 5].map((id) => `${id} 0 obj<</Kids[${kids(id * 100, 100)}]>>endobj `),
  ),
  "one node ten times, and one page thirty times": fileOf(
    ...[catalogue, root(`[${"3 0 R ".repeat(10)}]`)],
    `3 0 obj << /Kids [${"9 0 R ".repeat(30)}] >> endobj\n9 0 obj << >> endobj\n`,
  ),
  "a later version of its root": fileOf(
    ...[catalogue, root(`[${kids(10, 300)}]`), ...leaves(10, 300), root("[10 0 R]")],
  ),
  "an earlier version of its root": fileOf(
    ...[catalogue, root("[10 0 R]"), ...leaves(10, 300), root(`[${kids(10, 300)}]`)],
  ),
  "two lists in its root": fileOf(
    ...[catalogue, root("[10 0 R]", `/Kids [${kids(10, 299)}]`), ...leaves(10, 300, "")],
  ),
  "blanks that are zeros": fileOf(
    catalogue,
    `2 0 obj<</Kids [${kids(10, 300)}]>>endobj\n`.replaceAll(" ", "\0"),
  ),
  "a stated number of pages": fileOf(catalogue, root("[10 0 R]", "/Count 300"), ...leaves(10, 1)),
  "nodes in an object stream": fileOf(
    catalogue,
    ...packed(
      `<</Kids[3 0 R 4 0 R]>> <</Kids[${kids(10, 150)}]>> <</Kids[${kids(200, 150)}]>>`,
      `2 0 3 24 4 ${24 + `<</Kids[${kids(10, 150)}]>> `.length}`,
    ),
  ),
  "an object stream without a type": fileOf(
    catalogue,
    ...pdfStream(
      900,
      "/N 1 /First 4 /Filter /FlateDecode",
      deflated(`2 0 <</Kids[${kids(10, 300)}]>>`),
    ),
  ),
};
for (const [what, bytes] of Object.entries(documents)) {
  Deno.test(`forged documents: all pages count with ${what}`, () => {
    const pages = read(bytes)?.pages ?? 0;
    assert.ok(pages >= 300 && pages <= 700, `${pages}`);
    const part = {
      type: "file",
      file: { file_data: `data:application/pdf;base64,${bytes.toBase64()}` },
    };
    assert.ok(mediaTokens(part, "claude-sonnet-4-5", {}) >= 300 * 1_572);
  });
}

const list = `[${kids(10, 300)}]`;
const hidden = `<</Kids${list}>>`;

/** Documents that a reader of PDF may understand otherwise. */
const unclear: Record<string, Uint8Array> = {
  "is encrypted": fileOf(catalogue, root(list), "trailer << /Encrypt 9 0 R >>"),
  "is encrypted by a name in disguise": fileOf(
    catalogue,
    root(list),
    "trailer << /Encr#79pt 9 0 R >>",
  ),
  "has a comment where an object begins": fileOf(
    catalogue,
    root("[10 0 R]"),
    `2 0 %\nobj ${hidden} endobj`,
  ),
  "has a comment in a list": fileOf(catalogue, root(`[10 0 R %]\n${kids(11, 200)}]`)),
  "has a comment before a list": fileOf(catalogue, root(`%\n${list}`)),
  "has a name in disguise": fileOf(catalogue, `2 0 obj <</K#69ds${list}>> endobj`),
  "has a tree that has itself": fileOf(catalogue, root("[2 0 R]")),
  "has no page": fileOf(catalogue),
  "packs objects twice": fileOf(
    catalogue,
    root("[10 0 R]"),
    ...pdfStream(
      900,
      "/Type /ObjStm /N 1 /First 4 /Filter [/FlateDecode /FlateDecode]",
      deflated("x"),
    ),
  ),
  "has a filter elsewhere": fileOf(
    catalogue,
    root("[10 0 R]"),
    ...pdfStream(900, "/Type /ObjStm /N 1 /First 4 /Filter 8 0 R", deflated(`2 0 ${hidden}`)),
  ),
  "has objects that are predicted": fileOf(
    catalogue,
    root("[10 0 R]"),
    ...packed(hidden, "2 0", "/DecodeParms << /Predictor 12 >>"),
  ),
  "has damaged objects": fileOf(
    catalogue,
    root("[10 0 R]"),
    ...pdfStream(900, "/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", new Uint8Array(99)),
  ),
  "has a stream without an end": fileOf(catalogue, root("[10 0 R]"), "<< >>\nstream\n"),
  "has an end without a stream": fileOf(catalogue, root("[10 0 R]"), "endstream"),
};
for (const [what, bytes] of Object.entries(unclear)) {
  Deno.test(`forged documents: one that ${what} counts by its bytes`, () => {
    assert.equal(read(bytes), null);
  });
}

Deno.test("forged documents: text that is called an image counts, where a page shows it", () => {
  const text = pdfStream(
    20,
    "/Subtype /Image /Filter /FlateDecode",
    deflated("(word) ".repeat(20_000)),
  );
  const page = (contents: string) => `10 0 obj << /Type /Page /Contents ${contents} >> endobj\n`;
  const tokens = (...parts: readonly Part[]) => read(fileOf(catalogue, root("[10 0 R]"), ...parts));
  const list = "21 0 obj [20 0 R] endobj\n";
  for (const contents of ["20 0 R", "[20 0 R]", "21 0 R"]) {
    assert.ok((tokens(page(contents), list, ...text)?.textBytes ?? 0) >= 20_000 * 5, contents);
    assert.ok((tokens(...text, page(contents), list)?.textBytes ?? 0) >= 20_000 * 5, contents);
  }
  assert.equal(tokens(page("22 0 R"), list, ...text)?.textBytes, 0);
});

Deno.test("forged documents: decompression ends at twenty times the document, and half a mebibyte", () => {
  const bomb = deflated("(".repeat(8_000_000));
  const bytes = fileOf(catalogue, root("[10 0 R]"), ...pdfStream(20, "/Filter /FlateDecode", bomb));
  const work = createMediaWork();
  const before = work.inflatedBytes;
  const size = read(bytes, work);
  assert.ok(before - work.inflatedBytes <= 20 * bytes.length + 512 * 1024);
  // What was not read may be as much as flate allows.
  assert.ok((size?.textBytes ?? 0) >= 8_000_000, `${size?.textBytes}`);
});

Deno.test("forged documents: documents of one request share what may be read", () => {
  const work = createMediaWork();
  const stream = pdfStream(20, "/Filter /FlateDecode", deflated("(word) ".repeat(200_000)));
  const bytes = fileOf(catalogue, root("[10 0 R]"), ...stream);
  for (let at = 0; at < 30; at++) read(bytes, work);
  assert.ok(work.inflatedBytes >= 0 && work.growth >= 0);
  assert.ok(8 * 1024 * 1024 - work.inflatedBytes <= 30 * 20 * bytes.length + 512 * 1024);
});

Deno.test("forged documents: work is done in short steps", () => {
  const content = deflated("(word) ".repeat(100_000));
  const many = Array.from(
    { length: 8 },
    (_, at) => pdfStream(100 + at, "/Filter /FlateDecode", content),
  ).flat();
  const objects = Array.from({ length: 5_000 }, (_, at) => `${at + 1_000} 0 obj <<>> endobj\n`);
  const bytes = fileOf(catalogue, root(list), ...objects, ...many);
  const work = createMediaWork();
  let [steps, before, most] = [0, work.inflatedBytes, 0];
  for (const _ of readPdf(bytes, work)) {
    steps++;
    most = Math.max(most, before - work.inflatedBytes);
    before = work.inflatedBytes;
  }
  assert.ok(steps > 70, `${steps}`);
  assert.ok(most <= 2 * 1024 * 1024, `${most}`);
});

Deno.test("forged documents: what writers of PDF usually make is understood", () => {
  for (const inStreams of [false, true]) {
    const size = read(pdf({ pages: 12, text: "Hello", inStreams, imageBytes: 1_000 }));
    assert.equal(size?.pages, 12);
    assert.equal(size?.textBytes, 12 * 6);
  }
  const table = `xref\n0 20000\n${"0000000016 00000 n \n".repeat(20_000)}`;
  const large = fileOf(catalogue, root(list, "/Count 300"), ...leaves(10, 300), table);
  assert.equal(read(large)?.pages, 300);
});
