import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { SMTPServer } from "smtp-server";
import { readConfig } from "../../src/config/config.ts";
import { openMailer } from "../../src/platform/mailer.ts";

interface Received {
  from: string;
  to: string[];
  text: string;
  isEncrypted: boolean;
}

/** A mail server on this machine, which knows one user. */
async function mailServer(
  options: { authOptional: boolean; hideSTARTTLS?: boolean; key?: string; cert?: string },
) {
  const received: Received[] = [];
  const server = new SMTPServer({
    ...options,
    onAuth({ username, password }, _session, done) {
      const isKnown = username === "farebox" && password === "p@ss word";
      done(isKnown ? null : new Error("535 unknown user"), { user: username });
    },
    onData(stream, { envelope, secure }, done) {
      let text = "";
      stream.on("data", (part: Uint8Array) => text += new TextDecoder().decode(part));
      stream.on("end", () => {
        const from = envelope.mailFrom ? envelope.mailFrom.address : "";
        const to = envelope.rcptTo.map(({ address }) => address);
        received.push({ from, to, text, isEncrypted: secure });
        done();
      });
    },
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    received,
    port: address.port,
    close: () => new Promise<void>((end) => server.close(end)),
  };
}

function mailerTo(port: number, credentials: string) {
  const config = readConfig({
    SMTP_URL: `smtp://${credentials}127.0.0.1:${port}`,
    SMTP_FROM: "Farebox <alerts@my.app>",
  }, { dev: true });
  const send = openMailer(config, () => Promise.resolve(["127.0.0.1"]));
  assert.ok(send);
  return send;
}

const mail = {
  id: "alr_1.0.1",
  to: ["ada@my.app", "bob@my.app"],
  subject: "acme: Grüße",
  text: "A webhook is failing.",
  html: "<p>A webhook is failing.</p>",
};

Deno.test("mailer: an e-mail arrives with both forms, its id, and the user's password", async () => {
  const server = await mailServer({ authOptional: false, hideSTARTTLS: true });
  await mailerTo(server.port, "farebox:p%40ss%20word@")(mail);
  await server.close();
  const [{ from, to, text } = { from: "", to: [], text: "" }] = server.received;
  assert.equal(from, "alerts@my.app");
  assert.deepEqual(to, mail.to);
  assert.match(text, /^From: Farebox <alerts@my\.app>/m);
  assert.match(text, /^Message-ID: <alr_1\.0\.1@my\.app>/m);
  assert.match(text, /^Auto-Submitted: auto-generated/m);
  assert.match(text, /text\/plain[^]*A webhook is failing\.[^]*text\/html[^]*<p>A webhook/);
});

Deno.test("mailer: a password that is wrong, and a server that is away, are errors without the password", async () => {
  const server = await mailServer({ authOptional: false, hideSTARTTLS: true });
  await assert.rejects(mailerTo(server.port, "farebox:wrong-one@")(mail), (error: Error) => {
    assert.match(error.message, /535/);
    assert.doesNotMatch(error.message, /wrong-one/);
    return true;
  });
  await server.close();
  await assert.rejects(mailerTo(server.port, "")(mail), /ECONNREFUSED/);
});

Deno.test("mailer: without a user nothing is signed in, and a certificate of nobody known is refused", async () => {
  const server = await mailServer({ authOptional: true });
  // The certificate is of no authority: STARTTLS fails, and nothing is sent in the clear.
  await assert.rejects(mailerTo(server.port, "")(mail), /certificate/i);
  await server.close();
  assert.deepEqual(server.received, []);
});

Deno.test("mailer: STARTTLS with a certificate of an authority that the environment names", async () => {
  const pem = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url));
  const program = fileURLToPath(new URL("../support/mail_program.ts", import.meta.url));
  const lock = fileURLToPath(new URL("../../deno.lock", import.meta.url));
  const [key = "", cert = ""] = await Promise.all(
    ["server.key", "server.pem"].map((name) => Deno.readTextFile(pem(name))),
  );
  const server = await mailServer({ authOptional: true, key, cert });
  for (const variable of ["DENO_CERT", "NODE_EXTRA_CA_CERTS", "UNUSED"]) {
    const { code } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", `--lock=${lock}`, "--frozen", program],
      env: {
        SMTP_URL: `smtp://localhost:${server.port}`,
        SMTP_FROM: "Farebox <alerts@my.app>",
        [variable]: pem("ca.pem"),
      },
    }).output();
    assert.equal(code, variable === "UNUSED" ? 1 : 0, variable);
  }
  await server.close();
  assert.deepEqual(server.received.map(({ isEncrypted }) => isEncrypted), [true, true]);
});
