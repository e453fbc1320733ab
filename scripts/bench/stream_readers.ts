// Reads many streams of chats at once, to their ends. Its arguments: address, key, how many.
const [url = "", key = "", count = "1"] = Deno.args;

async function read(): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      user: "ada",
      stream: true,
      max_tokens: 50,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  for await (const _ of response.body ?? []);
}

await Promise.all(Array.from({ length: Number(count) }, read));
