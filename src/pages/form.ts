import type { BodyBudget } from "../base/body_budget.ts";
import { readBytes } from "../base/body.ts";
import { ApiError } from "../base/errors.ts";
import type { Config } from "../config/config.ts";

const formBytesMax = 4096;

/**
 * Reads the fields of one of our forms. Throws 403 when another site sent it, 413 when it is too
 * large.
 */
export async function readForm(
  request: Request,
  site: Pick<Config, "baseUrl">,
  { bytesMax = formBytesMax, bodies }: { bytesMax?: number; bodies?: BodyBudget } = {},
): Promise<URLSearchParams> {
  requireSameOrigin(request, site);
  const tooLarge = () => new ApiError(413, { message: "The form is too large." });
  const bytes = await readBytes(request, { bytesMax, tooLarge, bodies });
  return new URLSearchParams(new TextDecoder().decode(bytes));
}

/** Throws 403 for a form sent by a page of another site. Browsers state where a form came from. */
export function requireSameOrigin(request: Request, { baseUrl }: Pick<Config, "baseUrl">): void {
  const site = request.headers.get("sec-fetch-site");
  const isOurs = site === null
    ? isOwnOrigin(request, baseUrl)
    : site === "same-origin" || site === "none";
  if (isOurs) return;
  throw new ApiError(403, { message: "This form was sent by another site." });
}

/**
 * Over plain HTTP, and in old browsers, only `Origin` states it. It must equal that of `BASE_URL`,
 * with its scheme: a page of the same host without TLS may be anyone's. Or it must equal the origin
 * of another requested host, which no page of another site can choose. Programs send none.
 */
function isOwnOrigin(request: Request, baseUrl: string): boolean {
  const origin = request.headers.get("origin");
  const own = new URL(baseUrl);
  if (origin === null || origin === own.origin) return true;
  const sent = URL.parse(origin);
  if (!sent || sent.host === own.host) return false;
  const asked = new URL(request.url);
  // A proxy in front may add TLS to what arrives here by plain HTTP.
  return sent.host === asked.host && [asked.protocol, own.protocol].includes(sent.protocol);
}
