/** What to use in place of an endpoint of another API that is not served. */
export interface UnservedEndpoint {
  /** Its path below `/v1`. `*` stands for an id. The paths below it are not served either. */
  path: string;
  /** What is not served, and what to use in its place: whole sentences. */
  advice: string;
  /** Whose API it is of; of paths that two have, OpenAI's. */
  api: "openai" | "anthropic" | "other";
}

type Rows = readonly { paths: readonly string[]; advice: string }[];

const openai: Rows = [
  {
    paths: ["files", "uploads"],
    advice: "Nothing is stored here. Send files inline, as base64 data in the messages of a chat.",
  },
  {
    paths: ["batches"],
    advice: "There are no batches. Send the requests one by one.",
  },
  {
    paths: ["fine_tuning", "fine-tunes"],
    advice:
      "Models cannot be trained here. Train them at the provider, and call them by their name.",
  },
  {
    paths: ["vector_stores"],
    advice:
      "There is no vector store. Create embeddings with /v1/embeddings, and keep them yourself.",
  },
  {
    paths: ["assistants", "threads", "chatkit"],
    advice:
      "Assistants and threads are not stored here. Use /v1/responses or /v1/chat/completions.",
  },
  {
    paths: ["agents", "vaults"],
    advice:
      "Agents do not run here. Run the agent in your own program, and let it call the models.",
  },
  {
    paths: ["skills"],
    advice: "Skills are not stored here. Put the instructions into the messages.",
  },
  {
    paths: ["conversations"],
    advice: "Conversations are not stored here. Send the earlier messages with each request.",
  },
  {
    paths: ["responses/compact"],
    advice:
      "Requests are not compacted here. Leave older items out of the input, or summarize them.",
  },
  {
    paths: ["chat/completions/*"],
    advice: "Chat completions are not stored here. Keep the response of the request.",
  },
  {
    paths: ["realtime", "live/sessions"],
    advice: "There is no realtime connection. Use /v1/chat/completions or the endpoints for audio.",
  },
  {
    paths: ["audio/voices", "audio/voice_consents"],
    advice: "Voices cannot be created here. Use a voice that the model has.",
  },
  {
    paths: ["images/edits", "images/variations"],
    advice: "Images are not edited here. Use /v1/images/generations to make new ones.",
  },
  {
    paths: ["videos"],
    advice: "Videos are not made here. Call the provider directly.",
  },
  {
    paths: ["containers"],
    advice: "Containers are not served here. Run code in your own program, as a function tool.",
  },
  {
    paths: ["evals", "decisions"],
    advice: "Evaluations are not run here. Call the models yourself, and compare what they answer.",
  },
  {
    paths: ["organization"],
    advice:
      "The provider's organization is not managed here. Projects, keys and limits of this service " +
      "are at /v1/admin, usage is at /v1/user/activities.",
  },
  {
    paths: ["webhook_endpoints", "webhook_event_types"],
    advice: "The provider's webhooks are not served here. Subscribe to this service's events at " +
      "/v1/webhooks/subscriptions.",
  },
  {
    paths: ["content_provenance_checks"],
    advice: "Content is not checked for its origin here. Call the provider directly.",
  },
  {
    paths: ["edits", "answers", "classifications", "search"],
    advice: "This endpoint is retired. Use /v1/chat/completions with the field 'model'.",
  },
  {
    paths: ["engines"],
    advice: "Engines are retired. Use /v1/completions or /v1/embeddings with the field 'model'.",
  },
];

const anthropic: Rows = [
  {
    paths: ["messages/batches"],
    advice: "There are no batches. Send the requests to /v1/messages one by one.",
  },
  {
    paths: ["complete"],
    advice: "This endpoint is retired. Use /v1/messages.",
  },
  {
    paths: ["organizations", "user_profiles", "compliance", "tunnels"],
    advice:
      "The provider's organization is not managed here. Projects, keys and limits of this service " +
      "are at /v1/admin.",
  },
  {
    paths: [
      "sessions",
      "environments",
      "deployments",
      "deployment_runs",
      "dreams",
      "memory_stores",
    ],
    advice: "Agents do not run here. Run the agent in your own program, and call /v1/messages.",
  },
];

const openAiProvider = "Choose 'OpenAI compatible' as the provider, with a base URL that ends in " +
  "/v1.";

const other: Rows = [
  {
    paths: [
      "api/blobs",
      "api/chat",
      "api/copy",
      "api/create",
      "api/delete",
      "api/embed",
      "api/generate",
      "api/ps",
      "api/pull",
      "api/push",
      "api/show",
      "api/tags",
      "api/version",
    ],
    advice: `Ollama's API is not served. ${openAiProvider}`,
  },
  {
    paths: ["openai/deployments"],
    advice: `Azure's API is not served. ${openAiProvider}`,
  },
  {
    paths: ["v1beta"],
    advice: `Gemini's API is not served. ${openAiProvider}`,
  },
  {
    paths: ["rerank", "score", "classify", "pooling"],
    advice:
      "Documents are not ranked here. Compare embeddings of /v1/embeddings, or ask a model in a chat.",
  },
  {
    paths: ["tokenize", "detokenize", "apply-template"],
    advice: "Tokens are not counted here. The response of a model says how many it used.",
  },
  {
    paths: ["completion", "infill"],
    advice: "This endpoint of llama.cpp is not served. Use /v1/completions.",
  },
  {
    paths: ["credits", "generation"],
    advice: "A key's money is in the user's balance: use /v1/user/balance and /v1/user/activities.",
  },
];

/** Every endpoint of another API that clients are known to call and that is not served. */
export const unservedEndpoints: readonly UnservedEndpoint[] = [
  ...endpoints("openai", openai),
  ...endpoints("anthropic", anthropic),
  ...endpoints("other", other),
];

function endpoints(api: UnservedEndpoint["api"], rows: Rows): UnservedEndpoint[] {
  return rows.flatMap(({ paths, advice }) => paths.map((path) => ({ path, advice, api })));
}

/** Words of these paths. None of them is a secret. */
export const unservedWords: readonly string[] = [
  ...new Set(unservedEndpoints.flatMap(({ path }) => path.split("/"))),
].filter((word) => word !== "*");

const byFirstWord = Map.groupBy(unservedEndpoints, ({ path }) => path.split("/")[0] ?? "");

/**
 * Finds the endpoint that a path means, with and without `/v1`, also twice, and with a user after
 * it. Null for all other paths. A word that paths of this service begin with, one of `served`, is
 * neither a user nor an id: some clients append a path to another.
 */
export function unservedEndpointAt(
  path: string,
  served: ReadonlySet<string>,
): UnservedEndpoint | null {
  const segments = path.split("/").slice(1);
  const start = segments.lastIndexOf("v1") + 1;
  const hasUser = start > 0 && !served.has(segments[start] ?? "");
  return endpointOf(segments.slice(start), served) ??
    (hasUser ? endpointOf(segments.slice(start + 1), served) : null);
}

function endpointOf(
  segments: readonly string[],
  served: ReadonlySet<string>,
): UnservedEndpoint | null {
  const rows = byFirstWord.get(segments[0] ?? "") ?? [];
  return rows.find(({ path }) =>
    path.split("/").every((word, index) => {
      const segment = segments[index];
      return word === "*" ? segment !== undefined && !served.has(segment) : segment === word;
    })
  ) ?? null;
}
