import { fileURLToPath } from "node:url";
import { eventually } from "./process.ts";
import { textOf } from "./snippets.ts";

const fixtures = fileURLToPath(new URL("../fixtures/tls", import.meta.url));

/** An nginx for a test, configured as in the guide. */
interface Nginx extends AsyncDisposable {
  /** With TLS, for the name `localhost`. */
  url: string;
  /** The output of `nginx -t` about the configuration. */
  check(): Promise<string>;
}

/**
 * Starts `nginx` in a folder with the guide's server, in front of the service at `host`: its port,
 * certificate and paths are the test's, and everything else is as in the guide. Without a host, the
 * configuration already names the test's.
 */
export async function startNginx(
  nginx: string,
  { guide, folder, host = "" }: { guide: string; folder: string; host?: string },
): Promise<Nginx> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const server = guide.replace("127.0.0.1:8000", host || "127.0.0.1:8000")
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace("farebox.example;", "localhost;")
    .replace(/\/etc\/letsencrypt\S+fullchain\.pem/, `${fixtures}/server.pem`)
    .replace(/\/etc\/letsencrypt\S+privkey\.pem/, `${fixtures}/server.key`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`).join(" ");
  const config = `${folder}/nginx.conf`;
  await Deno.writeTextFile(
    config,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events {}
http { access_log off; ${temporary}
${server} }`,
  );
  const at = ["-p", folder, "-c", config, "-e", `${folder}/nginx.log`];
  const child = new Deno.Command(nginx, { args: at, stdout: "null", stderr: "null" }).spawn();
  const listens = () =>
    Deno.connect({ hostname: "127.0.0.1", port }).then((socket) => {
      socket.close();
      return true;
    }, () => false);
  await eventually(listens, { withinMs: 10_000, what: "nginx" });
  return {
    url: `https://localhost:${port}`,
    check: async () => textOf(await new Deno.Command(nginx, { args: ["-t", ...at] }).output()),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
    },
  };
}
