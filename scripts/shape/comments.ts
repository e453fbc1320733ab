import type { FileRule } from "./source.ts";

const COMMENT_COLUMNS_MAX = 100;

/** A comment line fits the width that the formatter gives code. A line with a URL may be longer. */
export const commentLength: FileRule = ({ path, text }) =>
  text.split("\n").flatMap((line, at) => {
    const isComment = /^\s*(\/\/|\/\*\*|\*)/.test(line);
    if (!isComment || line.length <= COMMENT_COLUMNS_MAX || line.includes("https://")) return [];
    const message = `a comment line of ${line.length} characters, at most ${COMMENT_COLUMNS_MAX}`;
    return [{ path, line: at + 1, rule: "comment", message }];
  });
