/** The fixed key of development. Never stored, and accepted only from this machine. */
export const devApiKey = "sk_dev";

/**
 * The `ADMIN_KEY` of development, unless another one is set, or a provider's real key is. It is
 * publicly known, and like `devApiKey` accepted only from this machine. No service outside
 * development accepts a key as short as that.
 */
export const devAdminKey = "admin_dev";

/** Where a service in development leaves a random `ADMIN_KEY` to the commands of this machine. */
export const devAdminKeyPath = (kvPath: string) => `${kvPath}.admin-key`;

/** The database of development. */
export const devKvPath = "data/dev.kv";
