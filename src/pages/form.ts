import type { BodyBudget } from "../base/body_budget.ts";
import { readBytes } from "../base/body.ts";
import { ApiError } from "../base/errors.ts";
import type { Config } from "../config.ts";

const formBytesMax = 4096;

/** The fields of a form of ours. Throws 403 when another site sent it, 413 when it is too large. */
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

/**
 * A page of another site must not send our forms. Browsers say where a form came from. Throws 403.
 */
export function requireSameOrigin(request: Request, { baseUrl }: Pick<Config, "baseUrl">): void {
  const site = request.headers.get("sec-fetch-site");
  const isOurs = site === null
    ? isOwnOrigin(request, baseUrl)
    : site === "same-origin" || site === "none";
  if (isOurs) return;
  throw new ApiError(403, { message: "This form was sent by another site." });
}

/**
 * Over plain HTTP, and in old browsers, `Origin` alone says it. Ours is that of `BASE_URL`, or the
 * host that was asked, which no page of another can choose. Programs send none.
 */
function isOwnOrigin(request: Request, baseUrl: string): boolean {
  const origin = request.headers.get("origin");
  if (origin === null || origin === new URL(baseUrl).origin) return true;
  return URL.parse(origin)?.host === new URL(request.url).host;
}
