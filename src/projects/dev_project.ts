import { devApiKey } from "../base/dev_keys.ts";
import { createProjectSchema } from "./schema.ts";

/** The project of development. The simulated model is expensive enough that its cost is visible. */
export const devProject = createProjectSchema.parse({
  name: "Development",
  pricing: {
    catalogue: true,
    models: {
      "sandbox/echo": {
        input: "50",
        cachedInput: "25",
        output: "200",
        maxOutputTokens: 4096,
        mediaTokens: { image_url: 1000 },
        displayName: "Sandbox echo",
        description: "Simulated model of development: repeats what it receives",
      },
    },
  },
});

/** A first request of development, as a command to paste. */
export function devRequest(url: string): string {
  return `curl ${url}/v1/chat/completions -H "Authorization: Bearer ${devApiKey}" \\
  -H "Content-Type: application/json" \\
  -d '{"model":"sandbox/echo","user":"ada","messages":[{"role":"user","content":"Hello"}]}'`;
}
