/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config/config.ts";
import type { Deps } from "../deps.ts";
import { asPage, pageResponse } from "../pages/response.tsx";
import { guideContents } from "./contents.ts";
import { type Guide, renderGuide } from "./markdown.ts";
import { GuideIndexPage, GuidePage } from "./page.tsx";

/** The guides as pages: public, without a key. */
export function guideRoutes(
  { config, guides }: Pick<Deps, "config" | "guides">,
): { contents: Handler; guide: Handler } {
  const base = publicPath(config, "");
  const path = `${base}/docs/guides`;
  const rendered = new Map<string, Guide>();
  const open = (name: string): Guide => {
    const markdown = guides.get(name);
    if (markdown === undefined) {
      throw new ApiError(404, {
        message: `No guide is called '${name}'. All guides are at ${path}.`,
      });
    }
    const guide = rendered.get(name) ?? renderGuide(markdown, path);
    rendered.set(name, guide);
    return guide;
  };
  const reference = { href: publicPath(config, "/docs"), title: "Every operation and event" };
  const sections = () => [
    ...guideContents.map(({ title, guides: names }) => ({
      title,
      links: names.filter((name) => guides.has(name))
        .map((name) => ({ href: `${path}/${name}`, title: open(name).title })),
    })),
    { title: "The API", links: [reference] },
  ];
  return {
    contents: ({ requestId }) => {
      const page = <GuideIndexPage sections={sections()} base={base} />;
      return pageResponse(200, String(page), { requestId });
    },
    guide: asPage(
      ({ param, requestId }) => {
        const name = param("name");
        const frame = { sections: sections(), here: `${path}/${name}`, base };
        const page = <GuidePage {...open(name)} {...frame} />;
        return pageResponse(200, String(page), { requestId });
      },
      config,
      "This guide does not exist",
    ),
  };
}
