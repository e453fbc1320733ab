import { deflateSync } from "node:zlib";

/** A request whose body costs much to look at. */
export interface HostileBody {
  name: string;
  path: string;
  type?: string;
  headers?: Record<string, string>;
  body: Uint8Array<ArrayBuffer>;
}

const mebibyte = 1024 * 1024;
const chatPath = "/v1/chat/completions";
const encoder = new TextEncoder();

const json = (value: unknown) => encoder.encode(JSON.stringify(value));
const said = (content: unknown) => [{ role: "user", content }];
const chat = (more: Record<string, unknown>) =>
  json({ model: "m", user: "nobody", messages: said("Hi"), ...more });

/** A pattern of bytes, repeated up to a length. */
function repeated(pattern: readonly number[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += pattern.length) bytes.set(pattern.slice(0, length - at), at);
  return bytes;
}

/** A file of WebM with very many small elements. */
function webm(length: number): Uint8Array<ArrayBuffer> {
  const bytes = repeated([0xec, 0x81, 0x00], length);
  bytes.set([0x1a, 0x45, 0xdf, 0xa3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x01, ...Array(7).fill(0xff)]);
  return bytes;
}

/** Files of MP4 with very many small boxes, and of Ogg with very many empty pages. */
const boxes = (length: number) => repeated([0, 0, 0, 8, ...encoder.encode("free")], length);
const oggPages = (length: number) =>
  repeated([...encoder.encode("OggS"), ...Array(23).fill(0)], length);

/** A PDF file of about 10 KB whose stream inflates to 8 MB. */
function packedPdf(): Uint8Array<ArrayBuffer> {
  const packed = deflateSync(new Uint8Array(8 * mebibyte));
  const head = encoder.encode(
    `%PDF-1.7\n1 0 obj\n<< /Type /ObjStm /N 1 /First 4 /Filter /FlateDecode ` +
      `/Length ${packed.length} >>\nstream\r\n`,
  );
  const end = encoder.encode("\nendstream\nendobj\n%%EOF\n");
  const file = new Uint8Array(head.length + packed.length + end.length);
  file.set(head);
  file.set(packed, head.length);
  file.set(end, head.length + packed.length);
  return file;
}

const boundary = "bench-boundary";

function form(model: string, file: Uint8Array): Uint8Array<ArrayBuffer> {
  const part = (name: string, more: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const head = encoder.encode(
    `${part("model", "")}${model}\r\n${part("user", "")}nobody\r\n` +
      part("file", '; filename="a.webm"\r\ncontent-type: audio/webm'),
  );
  const end = encoder.encode(`\r\n--${boundary}--\r\n`);
  const body = new Uint8Array(head.length + file.length + end.length);
  body.set(head);
  body.set(file, head.length);
  body.set(end, head.length + file.length);
  return body;
}

function transcription(what: string, file: Uint8Array): HostileBody {
  return {
    name: `a transcription of 24 MiB of ${what}`,
    path: "/v1/audio/transcriptions",
    type: `multipart/form-data; boundary=${boundary}`,
    body: form("sound", file),
  };
}

function sound(what: string, file: Uint8Array): HostileBody {
  const part = { type: "input_audio", input_audio: { data: file.toBase64(), format: "wav" } };
  return {
    name: `a chat with 12 MiB of ${what}`,
    path: chatPath,
    body: chat({ messages: said([part]) }),
  };
}

const image = (length: number) => `data:image/jpeg;base64,${boxes(length).toBase64()}`;

/** What a user without money may send. */
export function hostileBodies(): HostileBody[] {
  return [...mediaBodies(), ...chatBodies(), ...otherBodies()];
}

const times = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));
const words = "word ".repeat(mebibyte);

function mediaBodies(): HostileBody[] {
  const pdf = `data:application/pdf;base64,${packedPdf().toBase64()}`;
  const file = { type: "file", file: { filename: "a.pdf", file_data: pdf } };
  return [
    transcription("WebM elements", webm(24 * mebibyte)),
    transcription("Ogg pages", oggPages(24 * mebibyte)),
    sound("WebM elements", webm(12 * mebibyte)),
    sound("MP4 boxes", boxes(12 * mebibyte)),
    { name: "a chat with a PDF of 10 KB", path: chatPath, body: chat({ messages: said([file]) }) },
    {
      name: "a chat with 200 such PDFs",
      path: chatPath,
      body: chat({ messages: said(times(200, () => file)) }),
    },
    {
      name: "a chat with an image of 10 MiB",
      path: chatPath,
      body: chat({
        messages: said([{ type: "image_url", image_url: { url: image(10 * mebibyte) } }]),
      }),
    },
  ];
}

function chatBodies(): HostileBody[] {
  const tool = (at: number) => ({
    type: "function",
    function: { name: `f${at}`, parameters: { type: "object", properties: {} } },
  });
  const deep = encoder.encode(
    `{"model":"m","user":"nobody","messages":[{"role":"user","content":"Hi"}],` +
      `"metadata":${"[".repeat(490)}${"]".repeat(490)},"x":"${"x".repeat(mebibyte)}"}`,
  );
  return [
    {
      name: "199,000 long numbers",
      path: chatPath,
      body: encoder.encode(
        `{"model":"m","user":"nobody","messages":[{"role":"user","content":"Hi"}],` +
          `"metadata":[${Array(199_000).fill("0.12345678901234567").join(",")}]}`,
      ),
    },
    { name: "a chat of 5 MiB of text", path: chatPath, body: chat({ messages: said(words) }) },
    {
      name: "the same with an idempotency key",
      path: chatPath,
      headers: { "idempotency-key": "bench" },
      body: chat({ messages: said(words) }),
    },
    {
      name: "a chat of 60,000 messages",
      path: chatPath,
      body: chat({ messages: times(60_000, () => ({ role: "user", content: "Hi" })) }),
    },
    {
      name: "a chat with 20,000 tools",
      path: chatPath,
      body: chat({ tools: times(20_000, tool) }),
    },
    { name: "a chat nested 490 deep", path: chatPath, body: deep },
    {
      name: "a chat with 190,000 members",
      path: chatPath,
      body: chat({ metadata: Object.fromEntries(times(190_000, (at) => [`k${at}`, 1])) }),
    },
  ];
}

function otherBodies(): HostileBody[] {
  return [
    {
      name: "a response of 40,000 items",
      path: "/v1/responses",
      body: json({
        model: "m",
        user: "nobody",
        input: times(40_000, () => ({ type: "message", role: "user", content: "Hi" })),
      }),
    },
    {
      name: "a message of 60,000 blocks",
      path: "/v1/messages",
      headers: { "x-service-user": "nobody" },
      body: json({
        model: "m",
        max_tokens: 10,
        messages: said(times(60_000, () => ({ type: "text", text: "Hi" }))),
      }),
    },
    {
      name: "embeddings of 190,000 token ids",
      path: "/v1/embeddings",
      body: json({ model: "m", user: "nobody", input: times(190_000, (at) => at) }),
    },
    {
      name: "speech of 100,000 characters",
      path: "/v1/audio/speech",
      body: json({ model: "speech", user: "nobody", voice: "a", input: words.slice(0, 100_000) }),
    },
    {
      name: "an image for 5 MiB of text",
      path: "/v1/images/generations",
      body: json({ model: "image", user: "nobody", prompt: words }),
    },
  ];
}
