import type { DocTag } from "../base/endpoint_doc.ts";
import type { DescribedEndpoint } from "./described.ts";

/** Operations that share a page of the reference. */
export interface DocsGroup {
  /** The last part of the page's address. */
  name: string;
  title: string;
  about: string;
  operations: readonly DescribedEndpoint[];
}

/** The pages of operations, in their order. The first that fits an operation has it. */
const groups: readonly {
  name: string;
  title: string;
  about: string;
  tag: DocTag;
  /** What the path contains; all paths of the tag where it is absent. */
  path?: RegExp;
}[] = [
  {
    name: "chat",
    title: "Chat completions",
    about: "OpenAI's chat completions and its older completions, whole or as a stream of events.",
    tag: "Chat",
    path: /\/completions/,
  },
  {
    name: "responses",
    title: "Responses",
    about: "OpenAI's responses, also those that the upstream keeps.",
    tag: "Chat",
    path: /\/responses/,
  },
  {
    name: "messages",
    title: "Messages",
    about: "Anthropic's messages.",
    tag: "Chat",
    path: /\/messages/,
  },
  {
    name: "embeddings",
    title: "Embeddings and moderations",
    about: "Vectors of texts, and whether a text is harmful.",
    tag: "Chat",
    path: /\/(embeddings|moderations)/,
  },
  {
    name: "media",
    title: "Images and audio",
    about: "Images from a text, speech from a text, and text from a recording.",
    tag: "Chat",
    path: /\/(images|audio)/,
  },
  {
    name: "models",
    title: "Models",
    about: "Which models can be called, and for what price.",
    tag: "Chat",
  },
  {
    name: "balances",
    title: "Balances",
    about: "Deposits, charges and refunds of a user, and their history.",
    tag: "Money",
  },
  {
    name: "authorization",
    title: "Shared wallets",
    about: "Whether a user allows the project to spend from their wallet.",
    tag: "Authorization",
  },
  {
    name: "webhooks",
    title: "Webhooks",
    about: "Subscriptions to events, and the log of their deliveries.",
    tag: "Webhooks",
  },
  {
    name: "projects",
    title: "Projects and keys",
    about: "For the operator: projects, their settings, their keys and their audit trail.",
    tag: "Projects",
  },
  {
    name: "users",
    title: "Users",
    about: "For the operator: a project's users and their money.",
    tag: "Users",
  },
  {
    name: "operations",
    title: "Operations",
    about: "For the operator: requests, summaries, alerts, prices, Stripe, backups, verification.",
    tag: "Operations",
  },
  {
    name: "health",
    title: "Health and metrics",
    about: "Whether the process works, for load balancers and monitoring.",
    tag: "Health",
  },
];

/** Assigns each operation to its page. Those that repeat another one come last. */
export function groupOperations(operations: readonly DescribedEndpoint[]): DocsGroup[] {
  const fits = ({ operation, path }: DescribedEndpoint) =>
    groups.find((group) => group.tag === operation.tag && (group.path?.test(path) ?? true));
  const isVariant = ({ operation: { variantOf } }: DescribedEndpoint) => variantOf !== undefined;
  return groups.map((group) => {
    const own = operations.filter((operation) => fits(operation) === group);
    return {
      name: group.name,
      title: group.title,
      about: group.about,
      operations: [...own.filter((one) => !isVariant(one)), ...own.filter(isVariant)],
    };
  });
}
