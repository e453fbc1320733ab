// Sends one e-mail by the settings of the environment, and ends with 1 where that fails: which
// authorities a process trusts is decided when it starts.
import { readConfig } from "../../src/config/config.ts";
import { openMailer } from "../../src/platform/mailer.ts";

const send = openMailer(
  readConfig(Deno.env.toObject(), { dev: true }),
  () => Promise.resolve(["127.0.0.1"]),
);
try {
  await send?.({ id: "alr_1", to: ["ada@my.app"], subject: "x", text: "x", html: "<p>x</p>" });
} catch (error) {
  console.error(String(error));
  Deno.exit(1);
}
Deno.exit(0);
