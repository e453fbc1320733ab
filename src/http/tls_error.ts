/** How messages of Deno's TLS library are explained. The first match counts. */
const explanations: readonly (readonly [RegExp, string])[] = [
  [/certificate expired/i, "the certificate has expired"],
  [/certificate not valid yet/i, "the certificate is not valid yet"],
  [/not valid for name|NotValidForName/i, "the certificate is for another name"],
  [/CaUsedAsEndEntity/, "the certificate is self-signed, or that of an authority"],
  [
    /UnknownIssuer/,
    "the certificate is from an unknown authority, or an intermediate certificate is missing",
  ],
  [/invalid peer certificate: Revoked|CertRevoked/, "the certificate has been revoked"],
  [/extended key usage|InvalidPurpose/i, "the certificate is not meant for a server"],
  [/UnsupportedCertVersion/, "the certificate is of an obsolete version of X.509"],
  [
    /UnsupportedSignatureAlgorithm|UnsupportedSignatureAlgorithmContext/,
    "the certificate has an obsolete signature or key",
  ],
  [/BadSignature|invalid peer certificate: BadEncoding/, "the certificate is damaged"],
  [/invalid peer certificate/, "the certificate is not valid"],
  [/alert: (CertificateRequired|BadCertificate)/, "the receiver wants a client certificate"],
  [/alert: ProtocolVersion/, noCommon("version")],
  [/alert: (HandshakeFailure|InsufficientSecurity)/, noCommon("version or cipher")],
  [/alert: NoApplicationProtocol/, "no common protocol: HTTP/1.1 is required"],
  [/alert: UnrecognisedName/, "the receiver does not know the host name"],
  [/peer is incompatible|peer misbehaved.*(Version|Cipher)/i, noCommon("version or cipher")],
  [/InvalidContentType|corrupt message/i, "the receiver does not speak TLS on this port"],
  [/unexpected end of file|EOF|reset|broken pipe/i, "the connection closed during the handshake"],
];

function noCommon(what: string): string {
  return `no common TLS ${what}: TLS 1.2 or 1.3 is required`;
}

/** Whether an error, also of a read or a write, comes from TLS and not from the network. */
export function isTlsError(error: unknown): boolean {
  return /peer certificate|received fatal alert|corrupt message|peer is incompatible|peer misbehaved/
    .test(messageOf(error));
}

/** Explains why no TLS connection could be established. */
export function explainTlsError(error: unknown): string {
  const message = messageOf(error);
  const explanation = explanations.find(([pattern]) => pattern.test(message))?.[1];
  if (!explanation) return "no secure connection could be established";
  const names = [...message.matchAll(/DnsName\("([^"]{1,100})"\)/g)].map(([, name]) => name);
  if (names.length === 0 || !message.includes("only valid for")) return explanation;
  const more = names.length > namesMax ? ", …" : "";
  return `${explanation} (${names.slice(0, namesMax).join(", ")}${more})`;
}

const namesMax = 3;

/** Whether a closer look at the certificate could tell more: who has issued it. */
export function isUnknownIssuer(error: unknown): boolean {
  return /UnknownIssuer|CaUsedAsEndEntity/.test(messageOf(error));
}

/** Whether the handshake failed for a reason that the receiver does not tell. */
export function isHandshakeFailure(error: unknown): boolean {
  return /alert: HandshakeFailure/.test(messageOf(error));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}
