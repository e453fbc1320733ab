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
