import { z } from "zod";
import { errorSchema } from "../../base/errors.ts";
import { callHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { speechRequestSchema } from "./speech_request.ts";

const request = { model: "tts-1", input: "Welcome aboard.", voice: "alloy", user: "ada" };
const sound = { schema: z.string(), examples: { sound: "RIFF…" } };
const soundTypes = [
  ...["audio/mpeg", "audio/wav", "audio/opus", "audio/ogg", "audio/aac", "audio/flac"],
  ...["audio/pcm", "application/octet-stream"],
];

/** The document of `POST /v1/audio/speech`. */
export const speechDoc: CallDoc = {
  operationId: "createSpeech",
  summary: "Create speech",
  description:
    "Charged by the characters of `input`, as Unicode code points, or by tokens, as the " +
    "price says. The sound passes on as it arrives, with the upstream's content type. A user who " +
    "must top up gets 402 with the message and the link.",
  body: { schema: speechRequestSchema, examples: { whole: request } },
  answers: {
    200: {
      description: "The sound.",
      content: {
        ...Object.fromEntries(soundTypes.map((type) => [type, sound])),
        "application/json": { schema: z.looseObject({}), examples: { other: {} } },
        "text/event-stream": {
          schema: z.union([z.looseObject({ type: z.string() }), errorSchema]),
          examples: { delta: { type: "speech.audio.delta", audio: "UklGRg==" } },
        },
      },
      headers: callHeaders,
    },
  },
};
