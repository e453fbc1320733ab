import type { Project } from "../projects/schema.ts";
import type { Secrets } from "../store/secrets.ts";

/** Who a link is for. */
export interface LinkSubject {
  projectId: string;
  user: string;
}

/** Makes and reads the links in paywall messages. */
export interface Links {
  /**
   * Where this user tops up: the project's own address with its placeholders filled in and
   * escaped, or the hosted page. `amount` is a decimal string that the page may suggest.
   */
  topUp(project: Project, user: string, amount?: string): Promise<string>;
  /** Whom a hosted page's token is for; null when it is forged or has expired. */
  read(token: string): Promise<LinkSubject | null>;
}

interface LinkOptions {
  baseUrl: string;
  secrets: Secrets;
  now: () => number;
}

/** An address template with `{user}`, `{project}` and `{amount}` filled in, escaped. */
export function fillTemplate(
  template: string,
  values: { user: string; project: string; amount: string },
): string {
  const filled = new Map(Object.entries(values));
  return template.replace(
    /\{(user|project|amount)\}/g,
    (_whole, name: string) => encodeURIComponent(filled.get(name) ?? ""),
  );
}

/** Long enough to come back to an old chat message, short enough that a leaked one ends. */
const lifetimeMs = 7 * 24 * 60 * 60 * 1000;
const encoder = new TextEncoder();

/** Links signed with HMAC-SHA-256, so that no one can make one for another user. */
export async function createLinks({ baseUrl, secrets, now }: LinkOptions): Promise<Links> {
  const key = await secrets.signingKey("top-up links");
  return {
    async topUp(project, user, amount = "") {
      if (project.topUpUrl !== null) {
        return fillTemplate(project.topUpUrl, { user, project: project.id, amount });
      }
      const payload = toBase64Url(
        encoder.encode(JSON.stringify([project.id, user, now() + lifetimeMs])),
      );
      const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(payload));
      return `${baseUrl}/topup/${payload}.${toBase64Url(new Uint8Array(signature))}`;
    },
    async read(token) {
      const [payload = "", signature = ""] = token.split(".");
      const [payloadBytes, signatureBytes] = [fromBase64Url(payload), fromBase64Url(signature)];
      if (!payloadBytes || !signatureBytes) return null;
      const valid = await crypto.subtle.verify(
        "HMAC",
        key,
        signatureBytes,
        encoder.encode(payload),
      );
      if (!valid) return null;
      const [projectId, user, expiresAt] = JSON.parse(new TextDecoder().decode(payloadBytes));
      return expiresAt > now() ? { projectId, user } : null;
    },
  };
}

function toBase64Url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]*$/.test(text)) return null;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
