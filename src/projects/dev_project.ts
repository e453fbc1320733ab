import { createProjectSchema } from "./schema.ts";

/** The project of development: the simulated model, dear enough that its cost is seen. */
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
        description: "Simulated model of development: says what it was told",
      },
    },
  },
});
