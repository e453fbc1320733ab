import type { Command } from "commander";
import type { Context } from "./context.ts";

/** `farebox secrets …` */
export function addSecrets(program: Command, open: () => Context): void {
  const secrets = program.command("secrets").description(
    "manage the secrets that the service stores",
  );
  secrets.command("reseal")
    .description(
      "encrypt all secrets with the first key of SECRETS_KEY, so that the others can be removed",
    )
    .action(async () => {
      const { api, print, progress } = open();
      let resealed = 0;
      for (let cursor: string | undefined, more = true; more;) {
        const page = await api.json("/v1/admin/secrets/reseal", {
          method: "POST",
          query: { cursor },
        });
        resealed += page.resealed;
        cursor = page.nextCursor ?? undefined;
        more = cursor !== undefined;
        progress(() => `${resealed} secrets so far`);
      }
      const one = resealed === 1;
      print(
        { resealed },
        `${resealed} ${one ? "secret was" : "secrets were"} encrypted with another key.`,
      );
    });
}
