/** What an attempt to deliver a webhook failed of, where no complete response arrived. */
type DeliveryFault =
  | "connection_refused"
  | "tls_error"
  | "connection_error"
  | "invalid_response";

interface DeliveryErrorOptions {
  cause?: unknown;
  /** The start of the body that arrived. */
  bodyHead?: string | null;
  /** Whether a kept connection was used, and closed before any byte of a response. */
  isStale?: boolean;
}

/**
 * No complete response has arrived. The message explains it to the owner of the subscription, so it
 * contains no IP address.
 */
export class DeliveryError extends Error {
  override name = "DeliveryError";
  readonly fault: DeliveryFault;
  readonly bodyHead: string | null;
  readonly isStale: boolean;

  constructor(
    fault: DeliveryFault,
    message: string,
    { cause, bodyHead = null, isStale = false }: DeliveryErrorOptions = {},
  ) {
    super(message, { cause });
    this.fault = fault;
    this.bodyHead = bodyHead;
    this.isStale = isStale;
  }
}
