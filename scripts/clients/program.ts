import { fileURLToPath, pathToFileURL } from "node:url";
import { readSnippets } from "../snippets.ts";

/** Where a program sends its calls, as whom, and the folder that is its own. */
export interface Place {
  /** Scheme, host and port, without `/v1`. */
  url: string;
  key: string;
  user: string;
  folder: string;
}

/** A program or library that people use, as a test drives it. */
export interface Program {
  name: string;
  /** The wire format that it speaks. */
  format: "chat" | "responses" | "messages";
  /** Whether the program cannot call the provider itself. */
  needsService?: true;
  /** Installs it below a folder, once, and returns where. Absent: it comes with deno.json. */
  install?(cache: string): Promise<string>;
  /** Starts a conversation, configured as the program's guide says. */
  begin(place: Place, installed: string): Promise<Conversation>;
}

/** One conversation with a program. */
export interface Conversation {
  /** What the program shows for a prompt. Rejects with the program's own words. */
  ask(prompt: string, options: { stream: boolean }): Promise<string>;
}

/** The tool that the libraries offer the model, and what it returns. */
export const weather = {
  name: "weather",
  description: "Tells the weather of a city",
  parameters: {
    type: "object" as const,
    properties: { city: { type: "string" as const } },
    required: ["city"],
    additionalProperties: false as const,
  },
  run: (): string => "tool-ran",
};

const guidesFolder = fileURLToPath(new URL("../../guides/", import.meta.url));

/** The configuration that a guide shows in a block marked `client`, for this place and user. */
export async function clientConfig(guide: string, language: string, at: Place): Promise<string> {
  const snippets = readSnippets(await Deno.readTextFile(`${guidesFolder}${guide}.md`));
  const [found, ...more] = snippets.filter((snippet) =>
    snippet.language === language && snippet.mark === "client"
  );
  if (!found || more.length > 0) throw new Error(`${guide}.md: one ${language} block is "client"`);
  return found.code.replaceAll("http://localhost:8000", at.url).replaceAll("sk_dev", at.key)
    .replaceAll(/\bada\b/g, at.user);
}

/** Imports what a guide's block of TypeScript exports. */
export async function importClient(guide: string, at: Place): Promise<Record<string, unknown>> {
  const file = `${at.folder}/client.ts`;
  await Deno.writeTextFile(file, await clientConfig(guide, "ts", at));
  return await import(pathToFileURL(file).href);
}
