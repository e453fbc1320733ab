/** An endpoint that calls models. */
export interface ModelEndpoint {
  /** The name of its wire format, as settings, events and metrics have it. */
  readonly name: string;
  /** Its path below `/v1`, below `/v1/{user}` and below an upstream's base URL. */
  readonly path: string;
  /** Azure has it for each deployment. Absent: a body names the deployment there. */
  readonly ofDeployments?: true;
}

/** Every endpoint that calls models. How each is served is in `formats/served_endpoints.ts`. */
export const endpoints = {
  chat: { name: "chat", path: "/chat/completions", ofDeployments: true },
  completions: { name: "completions", path: "/completions", ofDeployments: true },
  responses: { name: "responses", path: "/responses" },
  responsesCount: { name: "responses", path: "/responses/input_tokens" },
  messages: { name: "messages", path: "/messages" },
  messagesCount: { name: "messages", path: "/messages/count_tokens" },
  embeddings: { name: "embeddings", path: "/embeddings", ofDeployments: true },
  moderations: { name: "moderations", path: "/moderations" },
  images: { name: "images", path: "/images/generations", ofDeployments: true },
  speech: { name: "speech", path: "/audio/speech", ofDeployments: true },
  transcriptions: { name: "transcriptions", path: "/audio/transcriptions", ofDeployments: true },
  translations: { name: "transcriptions", path: "/audio/translations", ofDeployments: true },
} as const satisfies Readonly<Record<string, ModelEndpoint>>;

/** A row of the table. */
export type EndpointName = keyof typeof endpoints;
/** A wire format's name. */
export type FormatName = typeof endpoints[EndpointName]["name"];
/** The wire formats. */
export const formatNames: readonly FormatName[] = [
  ...new Set(Object.values(endpoints).map(({ name }) => name)),
];
