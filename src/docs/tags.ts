import type { DocTag } from "../base/endpoint_doc.ts";

const about: Record<DocTag, string> = {
  Chat: "What OpenAI clients call: metered, and paid by the user's balance.",
  Money: "A user's balance: what goes in, what goes out, and why.",
  Authorization: "In the shared mode: whether a user allows the project to charge their wallet.",
  Webhooks: "Who is told of which events, and what became of it.",
  Projects: "For the operator: projects, their prices and their keys.",
  Users: "For the operator: a project's users and their money.",
  Operations: "For the operator: deliveries, secrets, backups and the books.",
  Health: "For whoever watches the process.",
};

/** The chapters of the document, in their order. */
export const docTags = Object.entries(about).map(([name, description]) => ({ name, description }));
