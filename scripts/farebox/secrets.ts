import type { Command } from "commander";
import type { Context } from "./context.ts";
import { refused } from "./failure.ts";

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
      const unreadable: string[] = [];
      for (let cursor: string | undefined, more = true; more;) {
        const page = await api.json("/v1/admin/secrets/reseal", {
          method: "POST",
          query: { cursor },
        });
        resealed += page.resealed;
        unreadable.push(...page.unreadable);
        cursor = page.nextCursor ?? undefined;
        more = cursor !== undefined;
        progress(() => `${resealed} secrets so far`);
      }
      const one = resealed === 1;
      print(
        { resealed, unreadable },
        `${resealed} ${one ? "secret was" : "secrets were"} encrypted with another key.`,
      );
      if (unreadable.length === 0) return;
      throw refused(
        `No key of SECRETS_KEY decrypts secrets of ${unreadable.join(", ")}. Start the service ` +
          "with the key that does as well, or enter them again; then reseal again.",
      );
    });
}
