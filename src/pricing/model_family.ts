/**
 * A model's name in small letters, without the makers and regions in front of it:
 * `openai/gpt-4o`, `ft:gpt-4o:…` and `us.anthropic.claude-…` begin with the name that they mean.
 */
export function bareModelName(model: string): string {
  const name = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  return name.replace(/^ft:/, "").replace(/^([a-z]{2,6}\.)?[a-z]+\.(?=[a-z])/, "");
}

/** The major and minor version in a name such as `claude-opus-4-7-20260416`; null without one. */
export function modelVersion(name: string): { major: number; minor: number } | null {
  // A date is no version.
  const found = /(?<![a-z0-9.])v?(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.])/.exec(name);
  return found && { major: Number(found[1]), minor: Number(found[2] ?? 0) };
}
