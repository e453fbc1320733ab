/** The fixed key of development. Never stored, and accepted only from this machine. */
export const devApiKey = "sk_dev";

/**
 * The `ADMIN_KEY` of development, unless another one is set. It is publicly known: a service in
 * development listens on this machine only, and no other accepts a key as short as that.
 */
export const devAdminKey = "admin_dev";
