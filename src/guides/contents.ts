/** The guides in reading order, by the names of their files in `guides/`. */
export const guideContents: readonly { title: string; guides: readonly string[] }[] = [
  { title: "Start", guides: ["first-five-minutes", "going-live"] },
  {
    title: "Clients",
    guides: [
      "curl",
      "openai-sdk",
      "anthropic-sdk",
      "vercel-ai-sdk",
      "agents-sdk",
      "langchain",
      "codex",
      "claude-code",
      "n8n",
      "open-webui",
      "no-code",
      "errors",
    ],
  },
  {
    title: "Money",
    guides: ["prices", "usage", "stripe", "refunds", "taxes", "shared-wallets", "limits", "fields"],
  },
  { title: "Upstreams", guides: ["routing", "response-cache"] },
  { title: "Your own systems", guides: ["events", "webhooks", "alerts"] },
  { title: "Operating", guides: ["console", "cli", "operations", "scale", "privacy", "upgrading"] },
  {
    title: "Hosting",
    guides: [
      "container",
      "systemd",
      "binary",
      "nginx",
      "postgres",
      "denokv",
      "deno-deploy",
    ],
  },
];
