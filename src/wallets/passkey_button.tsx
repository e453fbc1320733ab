/** @jsxImportSource @hono/hono/jsx */
import { scriptHash } from "../pages/hash.ts";

/**
 * The only script of these pages. It creates and uses passkeys, which browsers offer to scripts
 * alone.
 */
export const walletScript = `
const send = async (path, body) => {
  const answer = await fetch(document.documentElement.dataset.base + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error.message);
  return said;
};
const offer = (id, work) => {
  const button = document.getElementById(id);
  if (!button || !window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await work(window.PublicKeyCredential, navigator.credentials);
      location.reload();
    } catch (error) {
      document.getElementById("said").textContent = error.message;
    }
  });
};
offer("add-passkey", async (format, credentials) => {
  const options = await send("/wallet/passkeys/options", {});
  const publicKey = format.parseCreationOptionsFromJSON(options);
  await send("/wallet/passkeys", (await credentials.create({ publicKey })).toJSON());
});
offer("use-passkey", async (format, credentials) => {
  const options = await send("/wallet/sign-in/options", {});
  const publicKey = format.parseRequestOptionsFromJSON(options);
  await send("/wallet/sign-in", (await credentials.get({ publicKey })).toJSON());
});
`;

/** The script's hash for the Content-Security-Policy. */
export const walletScriptHash = scriptHash(walletScript);

/** The button that opens the wallet of a passkey. */
export function UsePasskeyButton({ label }: { label: string }) {
  return (
    <>
      <button type="button" id="use-passkey" class="wide" hidden>{label}</button>
      <p id="said" role="alert"></p>
    </>
  );
}

/** The button that creates a passkey for this wallet; hidden where the browser has none. */
export function AddPasskeyButton({ label }: { label: string }) {
  return <button type="button" id="add-passkey" class="wide" hidden>{label}</button>;
}
