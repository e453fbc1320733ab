import { deflateSync } from "node:zlib";
import { serve, watchHealth, withUpstream } from "./abuse.ts";
import { type Figure, show } from "./figures.ts";
import { adminKey, makeFolder, type Service } from "./service.ts";

const fileBytes = 25 * 1024 * 1024;
const imageBytes = 14 * 1024 * 1024;
const textBytes = 18 * 1024 * 1024;
const postsOfEach = 5;

/** Measures how long others wait while a user without money sends files that take long to read. */
export async function benchMediaAbuse(): Promise<Figure[]> {
  await using upstream = serve(() => Response.json({}));
  using folder = makeFolder();
  await using service = await withUpstream(upstream, folder.path);
  await priceModels(service);
  const figures: Figure[] = [];
  const blank = new Uint8Array(fileBytes);
  const sound = await slowestProbe(service, () => sendSound(service, blank));
  for (const [what, file] of Object.entries(sounds())) {
    const value = await slowestProbe(service, () => sendSound(service, file));
    figures.push(figureOf(`25 MiB of ${what} to transcriptions`, value, sound));
  }
  const text = "word ".repeat(textBytes / 5);
  const chat = await slowestProbe(service, () => sendChat(service, [{ type: "text", text }]));
  for (const [what, content] of Object.entries(prompts())) {
    const value = await slowestProbe(service, () => sendChat(service, content));
    figures.push(figureOf(`chats with ${what}`, value, chat));
  }
  figures.forEach(show);
  return figures;
}

async function priceModels(service: Service): Promise<void> {
  const models = {
    m: { input: "1", output: "1" },
    hears: { input: "0", output: "0", audioMinutes: "0.006" },
  };
  await fetch(`${service.url}/v1/admin/projects/${service.projectId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ pricing: { models } }),
  });
}

/** `usual` is the slowest probe while as many bytes are sent that need no reading. */
function figureOf(what: string, value: number, usual: number): Figure {
  const name = `the slowest probe while a user without money sends ${what}`;
  return { name, value, unit: `ms, ${usual.toFixed(0)} with as many other bytes` };
}

/** The slowest probe while requests are sent, in milliseconds. */
async function slowestProbe(service: Service, send: () => Promise<Response>): Promise<number> {
  for (let warm = 0; warm < 2; warm++) await (await send()).body?.cancel();
  const health = watchHealth(service);
  for (let at = 0; at < postsOfEach; at++) await (await send()).body?.cancel();
  const { worstMs } = await health();
  return worstMs;
}

function sendSound(service: Service, file: Uint8Array<ArrayBuffer>): Promise<Response> {
  const body = new FormData();
  body.set("model", "hears");
  body.set("user", "nobody");
  body.set("file", new Blob([file]), "a.webm");
  const headers = { authorization: `Bearer ${service.key}` };
  return fetch(`${service.url}/v1/audio/transcriptions`, { method: "POST", headers, body });
}

function sendChat(service: Service, content: unknown[]): Promise<Response> {
  const body = { model: "m", user: "nobody", messages: [{ role: "user", content }] };
  return fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Files of the smallest elements that their containers have. */
function sounds(): Record<string, Uint8Array<ArrayBuffer>> {
  const unknownSize = [1, ...new Array<number>(7).fill(255)];
  const webm = [0x1a, 0x45, 0xdf, 0xa3, 0x80, 0x18, 0x53, 0x80, 0x67, ...unknownSize];
  const page = [...codes("OggS"), 0, 0, ...new Array<number>(21).fill(0)];
  const head = [...codes("OggS"), 0, 2, ...new Array<number>(20).fill(0), 1, 8];
  return {
    "WebM elements": repeated(webm, [0xec, 0x80]),
    "MP4 boxes": repeated([0, 0, 0, 8, ...codes("ftyp")], [0, 0, 0, 8, ...codes("free")]),
    "empty Ogg pages": repeated([...head, ...codes("OpusHead")], page),
    "MP3 frames": repeated([], [0xff, 0xf3, 0x18, 0, ...new Array<number>(20).fill(0)]),
  };
}

function prompts(): Record<string, unknown[]> {
  const pdf = (name: string, file: Uint8Array) => ({
    type: "file",
    file: { filename: name, file_data: `data:application/pdf;base64,${file.toBase64()}` },
  });
  const image = (file: Uint8Array) => ({
    type: "image_url",
    image_url: { url: `data:image/jpeg;base64,${file.toBase64()}` },
  });
  const bomb = document(new Uint8Array(deflateSync(new Uint8Array(8 * 1024 * 1024).fill(0x28))));
  const stream = "<< >>\nstream\nendstream ";
  const streams = new TextEncoder().encode(`%PDF-1.7\n${stream.repeat(500_000)}`);
  const blank = repeated([0xff, 0xd8], [0xff], imageBytes / 4);
  return {
    "100 PDFs that grow a thousand times": Array(100).fill(pdf("a.pdf", bomb)),
    "a PDF of 500,000 streams": [pdf("a.pdf", streams)],
    "images of 14 MiB without a size": Array(4).fill(image(blank)),
  };
}

function document(content: Uint8Array): Uint8Array {
  const parts = [
    new TextEncoder().encode("%PDF-1.7\n1 0 obj\n<< /Filter /FlateDecode >>\nstream\n"),
    content,
    new TextEncoder().encode("\nendstream\nendobj\n2 0 obj << /Kids [3 0 R] >> endobj\n"),
  ];
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function repeated(
  head: readonly number[],
  unit: readonly number[],
  length = fileBytes,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  bytes.set(head);
  let at = head.length;
  for (; at + unit.length <= length; at += unit.length) bytes.set(unit, at);
  return bytes.slice(0, at);
}

function codes(text: string): number[] {
  return Array.from(text, (char) => char.charCodeAt(0));
}
