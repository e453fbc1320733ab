// deno-lint-ignore no-explicit-any -- what a test reads of an answer, it asserts
export type Body = Record<string, any>;
