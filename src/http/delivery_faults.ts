import { DeliveryError } from "../base/delivery_error.ts";
import { AllAddressesFailed } from "./connect_first.ts";
import { ProtocolError } from "./head.ts";
import { explainTlsError, isTlsError } from "./tls_error.ts";
import { ProxyError } from "./tunnel.ts";

/** Why one address could not be connected to. */
export interface ConnectFailure {
  address: string;
  /** Whether TCP failed, or the TLS handshake after it. */
  stage: "tcp" | "tls";
  isByProxy: boolean;
  error: unknown;
}

/** The failure of one address, as the race over all addresses collects it. */
export class AddressError extends Error {
  override name = "AddressError";
  constructor(readonly failure: ConnectFailure) {
    super("an address could not be connected to", { cause: failure.error });
  }
}

/** What a fault tells about the receiver: the first is the most telling. */
const telling = ["tls_error", "invalid_response", "connection_error", "connection_refused"];

/**
 * Makes the error of a delivery out of those of all its addresses: the most telling one, and how
 * many others failed otherwise. `explain` may find out more about a failed handshake.
 */
export async function addressesFailed(
  { errors }: AllAddressesFailed,
  explain: (failure: ConnectFailure) => Promise<string | null>,
): Promise<DeliveryError> {
  const found = errors.flatMap((error) => {
    if (!(error instanceof AddressError)) return [];
    return [{ failure: error.failure, fault: faultOf(error.failure) }];
  }).sort((a, b) => telling.indexOf(a.fault.fault) - telling.indexOf(b.fault.fault));
  const [main] = found;
  if (!main) throw errors[0];
  const message = await explain(main.failure) ?? main.fault.message;
  const others = new Set(
    found.map(({ fault }) => fault.message).filter((text) => text !== main.fault.message),
  );
  const rest = [...others].map((text) => `; another of its addresses: ${text}`).join("");
  return new DeliveryError(main.fault.fault, message + rest, { cause: main.failure.error });
}

function faultOf(
  { stage, isByProxy, error }: ConnectFailure,
): Pick<DeliveryError, "fault" | "message"> {
  if (stage === "tls") return { fault: "tls_error", message: explainTlsError(error) };
  if (isByProxy) return { fault: "connection_error", message: proxyFaultOf(error) };
  const code = error instanceof Error ? `${Reflect.get(error, "code") ?? ""} ${error.message}` : "";
  if (/refused/i.test(code)) {
    return { fault: "connection_refused", message: "nothing is listening there" };
  }
  const message = /UNREACH|EADDRNOTAVAIL|No route/i.test(code)
    ? "there is no route to the host"
    : "no connection could be established";
  return { fault: "connection_error", message };
}

/** Leaves out the address that the proxy was asked for. */
function proxyFaultOf(error: unknown): string {
  if (error instanceof ProtocolError) return visible(`the proxy's response: ${error.message}`);
  if (!(error instanceof ProxyError)) return "the proxy could not be reached";
  return error.status === null
    ? error.message
    : `the proxy refused the connection (status ${error.status})`;
}

interface ResponseProgress {
  status: number | null;
  bodyHead: string | null;
  /** A kept connection was used, and no byte of a response arrived. */
  isStale: boolean;
  /** Something has arrived. */
  isPartial: boolean;
}

/** Makes the error of a delivery whose request was sent, and got no complete response. */
export function responseFailed(error: unknown, progress: ResponseProgress): DeliveryError {
  const { status, bodyHead, isStale } = progress;
  const options = { cause: error, bodyHead, isStale };
  const prefix = status === null ? "" : `status ${status}, but `;
  if (error instanceof ProtocolError) {
    return new DeliveryError("invalid_response", prefix + visible(error.message), options);
  }
  // In TLS 1.3 a server rejects a missing client certificate after the handshake.
  if (isTlsError(error) && status === null) {
    return new DeliveryError("tls_error", explainTlsError(error), { ...options, isStale: false });
  }
  return new DeliveryError("connection_error", prefix + placeOf(progress), options);
}

function placeOf({ status, isStale, isPartial }: ResponseProgress): string {
  if (status !== null) return "the connection closed in the middle of the body";
  if (isStale) return "the reused connection closed before a response";
  return isPartial
    ? "the connection closed in the middle of the response's head"
    : "the connection closed before a response";
}

function visible(text: string): string {
  // deno-lint-ignore no-control-regex -- they must not reach a log or a page
  return text.replace(/[\x00-\x1f\x7f-\x9f]/g, "\ufffd");
}
