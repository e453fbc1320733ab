import { z } from "zod";
import { errorSchema } from "../../base/errors.ts";
import { callHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { transcriptionTextsSchema } from "./transcription_request.ts";

const formSchema = transcriptionTextsSchema.extend({
  file: z.string().meta({
    description: "The sound, at most 25 MiB.",
    override: { type: "string", contentMediaType: "application/octet-stream" },
  }),
});
const transcriptionSchema = formSchema.meta({ id: "TranscriptionRequest" });
const translationSchema = formSchema.meta({ id: "TranslationRequest" });
const transcriptSchema = z.looseObject({ text: z.string().optional() })
  .meta({ id: "Transcript", description: "The upstream's own response." });

const form = { model: "whisper-1", file: "@speech.mp3", user: "ada" };
const transcript = { text: "Welcome aboard.", usage: { type: "duration", seconds: 2 } };
const plain = { schema: z.string(), examples: { text: "Welcome aboard." } };

const answers = {
  200: {
    description: "The transcript.",
    content: {
      "application/json": { schema: transcriptSchema, examples: { transcript } },
      "text/plain": plain,
      "text/vtt": plain,
      "text/srt": plain,
      "application/x-subrip": plain,
      "text/event-stream": {
        schema: z.union([z.looseObject({ type: z.string() }), errorSchema]),
        examples: { delta: { type: "transcript.text.delta", delta: "Welcome" } },
      },
    },
    headers: callHeaders,
  },
};
const description = "Charged by the length of the sound, or by tokens, as the price says. The " +
  "response passes on as the upstream sent it. A user who must top up gets 402 with the message " +
  "and the link.";

/** The document of `POST /v1/audio/transcriptions`. */
export const transcriptionsDoc: CallDoc = {
  operationId: "createTranscription",
  summary: "Create a transcription",
  description,
  body: { schema: transcriptionSchema, type: "multipart/form-data", examples: { form } },
  answers,
};

/** The document of `POST /v1/audio/translations`. */
export const translationsDoc: CallDoc = {
  operationId: "createTranslation",
  summary: "Create a translation",
  description,
  body: { schema: translationSchema, type: "multipart/form-data", examples: { form } },
  answers,
};
