import { guideContents } from "./contents.ts";
import { anchorOf } from "./markdown.ts";

/** A section of a guide: what stands below one heading. */
interface GuidePassage {
  title: string;
  /** The guide's title. */
  guide: string;
  href: string;
  /** The words in code that rows of its tables begin with. */
  explains: string;
  text: string;
}

/** Returns the sections of all guides; their pages are below `path`. */
export function guidePassages(guides: ReadonlyMap<string, string>, path: string): GuidePassage[] {
  return guideContents.flatMap(({ guides: names }) => names).flatMap((name) => {
    const markdown = guides.get(name) ?? "";
    const passages: GuidePassage[] = [];
    let isCode = false;
    for (const line of markdown.split("\n")) {
      if (line.startsWith("```")) isCode = !isCode;
      const heading = isCode ? null : /^(#{1,4}) (.+)$/.exec(line);
      if (heading) {
        const title = (heading[2] ?? "").replaceAll("`", "");
        const anchor = heading[1] === "#" ? "" : `#${anchorOf(heading[2] ?? "")}`;
        const guide = passages[0]?.title ?? title;
        passages.push({ title, guide, href: `${path}/${name}${anchor}`, explains: "", text: "" });
        continue;
      }
      const last = passages.at(-1);
      if (!last) continue;
      last.text += `${line}\n`;
      const [, word] = /^\| `([\w.]+)` /.exec(line) ?? [];
      if (word) last.explains += ` ${word}`;
    }
    return passages;
  });
}
