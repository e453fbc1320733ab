import { scriptHash } from "./hash.ts";

/** How an app presents itself on the pages where its users pay. */
interface BrandSettings {
  /** An image with an https URL; null for the first letter of the name. */
  logoUrl: string | null;
  /** The color of the main button, as `#rrggbb`; null for Farebox's own. */
  accent: string | null;
  /** Where users get help: an https or mailto URL. */
  supportUrl: string | null;
}

/** A brand as pages show it. */
export interface Brand extends BrandSettings {
  name: string;
  /** CSS that sets its colors; undefined where there are none. */
  look: string | undefined;
  /** What the Content-Security-Policy allows for it. */
  allowed: { style: string; image: string };
}

/** Prepares the brand of an app for its pages. */
export function brandOf(name: string, settings: BrandSettings): Brand {
  const { logoUrl, accent } = settings;
  const look = accent === null
    ? undefined
    : `:root{--brand:${accent};--on-brand:${textColorOn(accent)}}`;
  return {
    name,
    ...settings,
    look,
    allowed: {
      style: look === undefined ? "" : scriptHash(look),
      image: logoUrl === null ? "" : policySource(logoUrl),
    },
  };
}

/**
 * The origin of a URL as a source of a Content-Security-Policy; "" where its host has characters
 * that mean something else there, as `;` and `*` do.
 */
function policySource(url: string): string {
  const origin = URL.parse(url)?.origin ?? "";
  return /^https?:\/\/[\w.:[\]-]+$/.test(origin) ? origin : "";
}

/** Returns black or white, whichever has the higher contrast on a color `#rrggbb` (WCAG 2). */
function textColorOn(color: string): "#000" | "#fff" {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? "#fff" : "#000";
}
