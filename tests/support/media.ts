import { verify } from "./verify.ts";
import type { World } from "./world.ts";

/** Calls an endpoint that takes a form. */
export async function sendForm(
  world: World,
  path: string,
  fields: Record<string, string | Blob | readonly string[]>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value instanceof Blob) form.append(name, value, "speech.wav");
    else for (const text of typeof value === "string" ? [value] : value) form.append(name, text);
  }
  const request = new Request(`http://localhost${path}`, {
    method: "POST",
    body: form,
    headers: { authorization: `Bearer ${world.apiKey}`, ...headers },
  });
  return await world.app.fetch(request);
}

/** A WAV file of silence: 8,000 samples a second, of one byte each. */
export function wav(seconds: number): Blob {
  const rate = 8_000;
  const length = Math.round(seconds * rate);
  const bytes = new Uint8Array(44 + length);
  const view = new DataView(bytes.buffer);
  const tag = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  tag(0, "RIFF");
  view.setUint32(4, 36 + length, true);
  tag(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate, true);
  view.setUint16(32, 1, true);
  view.setUint16(34, 8, true);
  tag(36, "data");
  view.setUint32(40, length, true);
  return new Blob([bytes], { type: "audio/wav" });
}

/** Bytes in pieces, one read each, as an upstream sends sound. */
export function sound(pieces: readonly Uint8Array[], type = "audio/mpeg"): Response {
  const left = [...pieces];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = left.shift();
      if (piece) controller.enqueue(piece);
      else controller.close();
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": type } });
}

/** The faults that the verification of a world reports a minute later. */
export async function faultsOf(world: World): Promise<string[]> {
  await world.clock.advance(61_000);
  return (await verify(world)).faults;
}
