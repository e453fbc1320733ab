import { z } from "zod";

const address = (schemes: readonly string[]) =>
  z.string().max(2048).refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    return url !== null && schemes.includes(url.protocol) && url.username === "";
  }, { error: `must be a URL that begins with ${schemes.join(" or ")}` });

// Its host becomes a part of the pages' Content-Security-Policy, where `;`, `,` and `*` mean more.
const imageAddress = address(["https:"]).refine(
  (text) => /^[\w.:[\]-]+$/.test(URL.parse(text)?.host ?? ""),
  { error: "must have a host of letters, digits, dots and hyphens" },
);

/** How a project presents itself on the pages where its users pay. */
export const brandSchema = z.strictObject({
  logoUrl: imageAddress.nullable().default(null).meta({
    description: "A square image, shown at 40 by 40 pixels. Null: the first letter of the name.",
  }),
  accent: z.string().regex(/^#[0-9a-f]{6}$/i, { error: "must be a color as #rrggbb" }).nullable()
    .default(null).meta({
      description: "The color of the main button, as `#rrggbb`. Its text is black or white, " +
        "whichever is easier to read. Null: Farebox's own.",
    }),
  supportUrl: address(["https:", "mailto:"]).nullable().default(null).meta({
    description: "Where users get help: a link below the pages.",
  }),
}).meta({
  id: "Brand",
  description: "How the project presents itself on the pages where its users pay.",
});

/** The brand of a project, as stored. */
export type ProjectBrand = z.output<typeof brandSchema>;

/** The brand of a project that has none. */
export const noBrand: ProjectBrand = brandSchema.parse({});
