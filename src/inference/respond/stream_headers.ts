import { corsHeaders, type HeaderList } from "../../base/response.ts";

/** Headers of a stream, which must be neither stored nor buffered on its way. */
export const streamHeaders: HeaderList = {
  ...corsHeaders,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
};
