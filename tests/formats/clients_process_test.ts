// The SDKs that come with deno.json against a real service, as `deno task clients` runs them.
import { clientCases } from "../../scripts/clients/cases.ts";
import { programs } from "../../scripts/clients/programs.ts";
import { startClientsService } from "../../scripts/clients/service.ts";
import { createWorld } from "../support/world.ts";

using world = await createWorld();
const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

for (const program of programs.filter(({ install }) => !install)) {
  const isServed = Object.hasOwn(world.app.routes, paths[program.format]);
  Deno.test({
    name: `clients: ${program.name} works as its guide says${isServed ? "" : " (not served yet)"}`,
    ignore: !isServed,
    async fn(test) {
      await using service = await startClientsService();
      for (const { name, run } of clientCases) {
        await test.step(name, () => run({ service, program, installed: "", direct: false }));
      }
    },
  });
}
