import type { Config } from "../config/config.ts";
import { devApiKey } from "../base/dev_keys.ts";

const usualUrl = "http://localhost:8000";
/** The guide that starts a service in development. It always uses `usualUrl`. */
const ofDevelopment = "first-five-minutes";

/**
 * Returns the guides as this server shows them: with its own URL, and outside development with a
 * placeholder for the key, since the key of development is not valid there.
 */
export function ownGuides(
  guides: ReadonlyMap<string, string>,
  { dev, baseUrl }: Pick<Config, "dev" | "baseUrl">,
): ReadonlyMap<string, string> {
  const own = [...guides].map(([name, text]): [string, string] => {
    if (dev) return [name, text.replaceAll(usualUrl, baseUrl)];
    if (name === ofDevelopment) return [name, text];
    return [name, withOwnKey(text.replaceAll(usualUrl, baseUrl))];
  });
  return new Map(own);
}

/** In blocks of code alone: the text may speak of development. */
function withOwnKey(text: string): string {
  return text.replace(/^```.*?^```$/gms, (code) => code.replaceAll(devApiKey, "YOUR_API_KEY"));
}
