import type { EndpointName } from "../base/endpoints.ts";
import type { ServedEndpoint } from "../inference/served_endpoint.ts";
import { speechDoc } from "./audio/speech_api_doc.ts";
import { speechFormat } from "./audio/speech_format.ts";
import { transcriptionsDoc, translationsDoc } from "./audio/transcriptions_api_doc.ts";
import { transcriptionsFormat, translationsFormat } from "./audio/transcriptions_format.ts";
import { chatDoc } from "./chat/api_doc.ts";
import { chatFormat } from "./chat/chat_format.ts";
import { completionsDoc } from "./completions/api_doc.ts";
import { completionsFormat } from "./completions/completions_format.ts";
import { embeddingsDoc } from "./embeddings/api_doc.ts";
import { embeddingsFormat } from "./embeddings/embeddings_format.ts";
import { imagesDoc } from "./images/api_doc.ts";
import { imagesFormat } from "./images/images_format.ts";
import { messagesCountDoc, messagesDoc } from "./messages/api_doc.ts";
import { messagesCount } from "./messages/count_tokens.ts";
import { messagesFormat } from "./messages/messages_format.ts";
import { moderationsDoc } from "./moderations/api_doc.ts";
import { moderationsFormat } from "./moderations/moderations_format.ts";
import { responsesCountDoc, responsesDoc } from "./responses/api_doc.ts";
import { responsesCount } from "./responses/count_tokens.ts";
import { responsesFormat } from "./responses/responses_format.ts";

/** How each endpoint is served that calls models, in the order of the API document. */
export const servedEndpoints: Readonly<Record<EndpointName, ServedEndpoint>> = {
  chat: { format: chatFormat, doc: chatDoc },
  completions: { format: completionsFormat, doc: completionsDoc },
  embeddings: { format: embeddingsFormat, doc: embeddingsDoc },
  responses: { format: responsesFormat, doc: responsesDoc },
  responsesCount: { format: responsesCount, doc: responsesCountDoc },
  images: { format: imagesFormat, doc: imagesDoc },
  speech: { format: speechFormat, doc: speechDoc },
  transcriptions: { format: transcriptionsFormat, doc: transcriptionsDoc },
  translations: { format: translationsFormat, doc: translationsDoc },
  moderations: { format: moderationsFormat, doc: moderationsDoc },
  messages: { format: messagesFormat, doc: messagesDoc, clientsAddV1: true },
  messagesCount: { format: messagesCount, doc: messagesCountDoc, clientsAddV1: true },
};
