import { ApiError } from "../base/errors.ts";

const disconnected = { message: "The client closed the connection." };

/** The reason of an abort after the client disconnected. No client reads it. */
export const callerDisconnected = new ApiError(499, disconnected);

/**
 * The reason of an abort where the client disconnected before anything was sent upstream, so that
 * nothing is due.
 */
export const callerDisconnectedEarly = new ApiError(499, disconnected);
