import { Buffer } from "node:buffer";
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";

/** The prefix of an Ed25519 key, up to its 32 bytes (RFC 8410). */
const pkcs8Start = Buffer.from("302e020100300506032b657004220420", "hex");
/** Present, verified, and synchronized to other devices (WebAuthn 3, 6.1). */
const flags = 0x1d;
const verified = 0x04;
const withCredential = 0x40;

interface Options {
  /** The origin of the page. */
  origin: string;
  /** The relying party: its own host, or one above that. */
  site?: string;
  /** How much each use adds to the counter: synchronized passkeys add none. */
  step?: 0 | 1;
  /** Whether the user is verified, by a fingerprint or a PIN. */
  isVerified?: boolean;
}

/**
 * A passkey, with the browser and the devices that it is on: the same key gives the same responses.
 */
export class SoftPasskey {
  readonly id: string;
  readonly #origin: string;
  readonly #site: string;
  readonly #key: KeyObject;
  readonly #step: 0 | 1;
  readonly #flags: number;
  #counter = 0;

  constructor(
    seed: Uint8Array,
    { origin, site = new URL(origin).hostname, step = 0, isVerified = true }: Options,
  ) {
    this.#origin = origin;
    this.#site = site;
    this.#step = step;
    this.#flags = isVerified ? flags : flags & ~verified;
    this.id = sha256(seed).toString("base64url");
    const key = Buffer.concat([pkcs8Start, seed]);
    this.#key = createPrivateKey({ key, format: "der", type: "pkcs8" });
  }

  /** The browser's result of `navigator.credentials.create`. */
  created(challenge: string): RegistrationResponseJSON {
    const { x = "" } = createPublicKey(this.#key).export({ format: "jwk" });
    const id = Buffer.from(this.id, "base64url");
    // In CBOR (RFC 8949), as COSE has it (RFC 9053): an EdDSA key on Ed25519.
    const publicKey = [hex("a401010327200621 5820"), Buffer.from(x, "base64url")];
    const data = Buffer.concat([
      this.#data(this.#flags | withCredential),
      Buffer.alloc(16),
      Buffer.from([0, id.length]),
      id,
      ...publicKey,
    ]);
    const attestation = [
      hex("a3 63 666d74 64 6e6f6e65 67 61747453746d74 a0 68 6175746844617461 58"),
      Buffer.from([data.length]),
      data,
    ];
    return {
      ...this.#named(),
      response: {
        clientDataJSON: this.#client("webauthn.create", challenge).toString("base64url"),
        attestationObject: Buffer.concat(attestation).toString("base64url"),
        transports: ["internal", "hybrid"],
      },
    };
  }

  /** The browser's result of `navigator.credentials.get`. */
  answered(challenge: string): AuthenticationResponseJSON {
    this.#counter += this.#step;
    const data = this.#data(this.#flags);
    const client = this.#client("webauthn.get", challenge);
    const signature = sign(null, Buffer.concat([data, sha256(client)]), this.#key);
    return {
      ...this.#named(),
      response: {
        clientDataJSON: client.toString("base64url"),
        authenticatorData: data.toString("base64url"),
        signature: signature.toString("base64url"),
      },
    };
  }

  #named() {
    const { id } = this;
    return { id, rawId: id, type: "public-key" as const, clientExtensionResults: {} };
  }

  #client(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin }));
  }

  #data(flags: number): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.#counter);
    return Buffer.concat([sha256(this.#site), Buffer.from([flags]), counter]);
  }
}

function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(" ", ""), "hex");
}
