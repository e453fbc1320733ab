import assert from "node:assert/strict";
import { makeFolder, startFarebox } from "../support/process.ts";
import { findCommand, testWith } from "../support/toolchains.ts";

const javac = await findCommand("javac");
const java = "path" in javac ? await findCommand("java") : javac;

/** As the guide says: its default version asks plain http servers for HTTP/2. */
const program = `
import java.net.URI;
import java.net.http.*;
public class Client {
  public static void main(String[] args) throws Exception {
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    for (int at = 0; at < 2; at++) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(args[0]))
        .header("Content-Type", "application/json").header("Authorization", "Bearer sk_dev")
        .POST(HttpRequest.BodyPublishers.ofString("{\\"user\\":\\"ada\\",\\"amount\\":\\"1\\"}")).build();
      System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
  }
}
`;

testWith(
  java,
  "java: a client with HTTP_1_1 is answered over plain http, also with a body",
  async (java) => {
    await using folder = await makeFolder();
    await using farebox = await startFarebox({ folder: folder.path, dev: true });
    const file = `${folder.path}/Client.java`;
    await Deno.writeTextFile(file, program);
    const args = [file, `${farebox.url}/v1/user/balance/deposit`];
    const { stdout, stderr } = await new Deno.Command(java, { args }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    assert.equal(text(stdout), "200\n200\n", text(stderr));
    const guide = await Deno.readTextFile(new URL("../../guides/going-live.md", import.meta.url));
    assert.match(guide, /\.version\(HttpClient\.Version\.HTTP_1_1\)/);
  },
);
