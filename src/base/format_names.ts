/** The wire formats, as settings, events and metrics name them. */
export const formatNames = [
  "chat",
  "completions",
  "responses",
  "messages",
  "embeddings",
  "moderations",
  "images",
  "speech",
  "transcriptions",
] as const;
/** A wire format's name. */
export type FormatName = typeof formatNames[number];
