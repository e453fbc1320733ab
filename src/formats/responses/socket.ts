import { ApiError } from "../../base/errors.ts";
import type { Handler } from "../../base/handler.ts";

const allow = "POST, OPTIONS";

/**
 * Refuses a GET of the endpoint: 426 for a WebSocket, after which clients such as Codex use POST at
 * once, else 405.
 */
export const refuseSocket: Handler = ({ request, path }) => {
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket") {
    throw new ApiError(426, {
      message: "Responses are not served over WebSockets here. Use POST, with 'stream' for events.",
      code: "websocket_not_supported",
    });
  }
  throw new ApiError(405, {
    message: `${request.method} is not allowed for ${path}. Allowed: ${allow}.`,
    code: "method_not_allowed",
    headers: { allow },
  });
};
