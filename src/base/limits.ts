// Bounds that several modules share, or that callers notice, with their units. Bounds that an
// operator can change are in config/.

/** Largest chat request body, in bytes; images travel inside it. */
export const chatBodyBytesMax = 20 * 1024 * 1024;
/** Largest file of sound, in bytes: OpenAI's own bound. */
export const audioFileBytesMax = 25 * 1024 * 1024;
/** Largest form with such a file, in bytes: with the texts beside it. */
export const formBodyBytesMax = audioFileBytesMax + 128 * 1024;
/** Most parts of a form. */
export const formPartsMax = 100;
/** Largest body of any other endpoint, in bytes: 16 KiB of metadata fit easily. */
export const bodyBytesMax = 128 * 1024;
/** How long a caller may take to send a body, in milliseconds. */
export const bodyDeadlineMs = 60_000;
/** How long an unauthenticated sender may take to send a form, in milliseconds. Forms are small. */
export const strangersBodyDeadlineMs = 10_000;
/** Deepest nesting of a JSON body, in levels: far above what any client sends. */
export const jsonDepthMax = 500;
/**
 * Most values of a JSON body: far above what any client sends, and 20 MiB could hold 10 million.
 */
export const jsonValuesMax = 200_000;
/** Largest `metadata` of a money operation, in bytes of its JSON. */
export const metadataBytesMax = 16 * 1024;
/** Most keys at the top level of `metadata`. */
export const metadataKeysMax = 50;
/** Longest user id, in characters of Unicode, as JSON Schema counts them. */
export const userIdCharsMax = 128;
/** Longest user id in UTF-16 code units: a character of Unicode has up to two. */
export const userIdUnitsMax = 2 * userIdCharsMax;
/** Longest name of an invalid field in an error, in characters: a model's name fits. */
export const paramCharsMax = 300;
/** Longest request id that a caller may choose, in characters. */
export const requestIdCharsMax = 128;
/** Longest idempotency key, in characters. */
export const idempotencyKeyCharsMax = 255;
/** Most holds that one account has at once; the next one is 429 `concurrency_limit`. */
export const holdsPerAccountMax = 256;
/** How long a hold is valid without renewal, in milliseconds. */
export const holdLifetimeMs = 60_000;
/** When a running call renews its hold, in milliseconds: well before it expires. */
export const holdRenewAfterMs = 20_000;
/** How long a request waits for another hold to end, in milliseconds. */
export const holdWaitMs = 2_000;
/** How long it waits in total while other holds keep ending, in milliseconds. */
export const holdWaitTotalMs = 10_000;
/** Largest list of models read from an upstream, in bytes after decompression. */
export const modelListBytesMax = 32 * 1024 * 1024;
/** How long the reader of a response may take nothing before it counts as disconnected. */
export const readerStallMs = 120_000;
/** How often a silent stream sends a keep-alive, in milliseconds. */
export const keepAliveMs = 15_000;
/** Largest response stored under an idempotency key, in bytes. */
export const chatReplayBytesMax = 60 * 1024;
/** How long it is stored, in milliseconds. */
export const chatReplayLifetimeMs = 24 * 60 * 60 * 1000;
/** How long ids of responses that an upstream keeps are known, in milliseconds: as OpenAI's. */
export const keptResponseLifetimeMs = 30 * 24 * 60 * 60 * 1000;
/** Largest turn of a conversation that is kept for an upstream that keeps none, in bytes. */
export const keptTurnBytesMax = 56 * 1024;
/** Largest conversation of such turns, in bytes: beyond it, the next turn is not kept. */
export const keptConversationBytesMax = 4 * 1024 * 1024;
/** Most bytes of such turns that are kept for one user: beyond them, the oldest are removed. */
export const keptUserBytesMax = 20 * 1024 * 1024;
/** Largest response that a project's cache keeps, in bytes: a row of the store has 64 KiB. */
export const responseCacheBytesMax = 56 * 1024;
/** Largest request that is looked up there, in bytes: its key is computed at once. */
export const responseCacheRequestBytesMax = 1024 * 1024;
/** The longest id of a response or of an item that is remembered, in characters. */
export const keptIdCharsMax = 4096;
/** Most ids that one request may refer to, and that one response is remembered by. */
export const keptReferencesMax = 512;
/** Most choices (`n`) of one chat: OpenAI's own bound. */
export const choicesMax = 128;
/** Tokens of thinking that room is made for; a larger budget counts as this one. */
export const thinkingBudgetMax = 10_000_000;
/** Rows on one page of any list, at most and by default. */
export const pageSizeMax = 100;
/** The default page size. */
export const pageSizeDefault = 20;
/** How stale cached settings and keys of another process may be, in milliseconds. */
export const settingsStaleMs = 1_000;
/** Deadline of one call to the store, in milliseconds. */
export const storeDeadlineMs = 5_000;
/** Deadline of a write: half a second is left to find out by its marker whether it has landed. */
export const writeDeadlineMs = storeDeadlineMs - 500;
/** Longest duration of one response, in milliseconds, also for a client that does not read. */
export const answerLifetimeMs = 60 * 60 * 1000;
/** How often running calls are checked, in milliseconds. */
export const runningTickMs = 5_000;
/** Most characters of output kept uncounted: more is counted and dropped. */
export const uncountedCharsMax = 64 * 1024;
/** Largest error body read from an upstream, in bytes. */
export const upstreamErrorBytesMax = 64 * 1024;
