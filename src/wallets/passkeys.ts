import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { fromBase64Url, toBase64Url } from "../base/base64.ts";
import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { SignedTokens } from "../store/signed_tokens.ts";
import {
  listPasskeys,
  type Passkey,
  passkeyRemoval,
  passkeysMax,
  passkeyWrite,
  readPasskey,
} from "./store.ts";
import { z } from "zod";

/** A person's way back to their wallet on another device (https://www.w3.org/TR/webauthn-3). */
export interface Passkeys {
  /** Returns what a browser needs to create a passkey. Throws 400 at the maximum number. */
  registration(personId: string): Promise<unknown>;
  /** Stores the passkey that the browser created. Throws 400 when the response is not valid. */
  register(personId: string, response: RegistrationResponseJSON): Promise<void>;
  /** Returns what a browser needs to use a passkey. */
  challenge(): Promise<unknown>;
  /**
   * Returns a grant for the person whose passkey answered the challenge, prepared before the answer
   * counted. Throws 400 when the answer is not valid, or was used before.
   */
  signIn<L>(
    response: AuthenticationResponseJSON,
    grantOf: (personId: string) => Promise<L>,
  ): Promise<L>;
  /**
   * Removes a person's passkey; one that is unknown or belongs to another person is left as it is.
   */
  remove(personId: string, credentialId: string): Promise<void>;
}

/** How long a person may take to answer a challenge. */
const challengeLifetimeMs = 5 * 60 * 1000;
/** How many answers of a passkey are remembered; it gives no more during a challenge's lifetime. */
const challengesKept = 32;

/** Creates passkeys with the library. Challenges are signed, so none has to be stored. */
export function createPasskeys(
  { kv, committer, clock, config }: Pick<Deps, "kv" | "committer" | "clock" | "config">,
  tokens: SignedTokens,
): Passkeys {
  const { hostname: rpID, origin } = new URL(config.baseUrl);

  /** For one person, or to find out who the person is. */
  async function makeChallenge(personId: string | null): Promise<Uint8Array<ArrayBuffer>> {
    return new TextEncoder().encode(await tokens.make([personId, clock.now()]));
  }

  /** Returns when a challenge was created; null when it is forged or expired. */
  async function readChallenge(text: string, personId: string | null): Promise<number | null> {
    const bytes = fromBase64Url(text);
    const value = bytes && (await tokens.read(new TextDecoder().decode(bytes)));
    if (!Array.isArray(value) || value[0] !== personId) return null;
    return isFresh(value[1]) ? value[1] : null;
  }

  /** The clock may be behind the one by which the challenge was created. */
  function isFresh(challengedAt: number): boolean {
    return Math.abs(clock.now() - challengedAt) < challengeLifetimeMs;
  }

  /**
   * Adds an answered challenge; null when it was answered before, or when too many had to be
   * dropped.
   */
  function withAnswer(answered: readonly number[], challengedAt: number): number[] | null {
    // Order cannot tell: a clock may be set back, and a person has several devices.
    if (answered.includes(challengedAt)) return null;
    if (answered.slice(0, 1 - challengesKept).some(isFresh)) return null;
    return [...answered, challengedAt].slice(-challengesKept);
  }

  /**
   * Verifies, and returns when the challenge was created. What the library throws is the caller's
   * error.
   */
  async function checked<T extends { verified: boolean }>(
    personId: string | null,
    verify: (expectedChallenge: (challenge: string) => Promise<boolean>) => Promise<T>,
  ): Promise<{ result: T; challengedAt: number }> {
    let challengedAt: number | null = null;
    const result = await verify(async (challenge) => {
      challengedAt = await readChallenge(challenge, personId);
      return challengedAt !== null;
    }).catch((cause) => {
      throw invalidPasskey(cause);
    });
    if (!result.verified || challengedAt === null) throw invalidPasskey();
    return { result, challengedAt };
  }

  return {
    async registration(personId) {
      const { generateRegistrationOptions } = await library();
      const known = await listPasskeys(kv, personId);
      if (known.length >= passkeysMax) throw tooManyPasskeys();
      return await generateRegistrationOptions({
        rpName: "Wallet",
        rpID,
        userName: "Wallet",
        userID: new TextEncoder().encode(personId),
        challenge: await makeChallenge(personId),
        excludeCredentials: known.map(({ id }) => ({ id })),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
      });
    },
    async register(personId, response) {
      const { verifyRegistrationResponse } = await library();
      const { result } = await checked(personId, (expectedChallenge) =>
        verifyRegistrationResponse({
          response,
          expectedChallenge,
          expectedOrigin: origin,
          expectedRPID: rpID,
        }));
      const { credential } = result.registrationInfo ?? {};
      if (!credential || !isCredentialId(credential.id)) throw invalidPasskey();
      const passkey: Passkey = {
        personId,
        publicKey: toBase64Url(credential.publicKey),
        counter: credential.counter,
        createdAt: clock.now(),
        answered: [],
      };
      const committed = await committer.commit(passkeyWrite(credential.id, passkey, null));
      if (committed === null) throw invalidPasskey("it is already registered");
    },
    async challenge() {
      const { generateAuthenticationOptions } = await library();
      const challenge = await makeChallenge(null);
      return await generateAuthenticationOptions({ rpID, challenge, userVerification: "required" });
    },
    async signIn(response, grantOf) {
      const { verifyAuthenticationResponse } = await library();
      const credentialId = response.id;
      const found = await readPasskey(kv, credentialId);
      if (!found) throw invalidPasskey("unknown passkey");
      const { passkey, version } = found;
      const { result, challengedAt } = await checked(
        null,
        (expectedChallenge) =>
          verifyAuthenticationResponse({
            response,
            expectedChallenge,
            expectedOrigin: origin,
            expectedRPID: rpID,
            credential: {
              id: credentialId,
              publicKey: fromBase64Url(passkey.publicKey) ?? new Uint8Array(),
              counter: passkey.counter,
            },
          }),
      );
      const answered = withAnswer(passkey.answered, challengedAt);
      if (!answered) throw invalidPasskey("used before");
      // If others are signed out, or this passkey is removed, in the meantime, this sign-in fails
      // too.
      const grant = await grantOf(passkey.personId);
      const { newCounter: counter } = result.authenticationInfo;
      const used = { ...passkey, counter, answered };
      const committed = await committer.commit(passkeyWrite(credentialId, used, version));
      if (committed === null) throw invalidPasskey("used before");
      return grant;
    },
    async remove(personId, credentialId) {
      for (;;) {
        const found = await readPasskey(kv, credentialId);
        if (found?.passkey.personId !== personId) return;
        const write = passkeyRemoval(credentialId, personId, found.version);
        if ((await committer.commit(write)) !== null) return;
      }
    },
  };
}

/** Loaded at first use: most servers have no wallets. */
function library() {
  return import("@simplewebauthn/server");
}

function tooManyPasskeys(): ApiError {
  return new ApiError(400, {
    message: `You have ${passkeysMax} passkeys. Remove one first.`,
    code: "too_many_passkeys",
  });
}

function invalidPasskey(cause?: unknown): ApiError {
  return new ApiError(400, {
    message: "This passkey could not be used. Try again.",
    code: "invalid_passkey",
    cause,
  });
}

/** Whether it is a credential id: at most 1,023 bytes (WebAuthn 3, 4), in base64url. */
export function isCredentialId(id: unknown): id is string {
  return typeof id === "string" && /^[\w-]{1,1364}$/.test(id);
}

const isNamed = (value: unknown) =>
  typeof value === "object" && value !== null && isCredentialId(Reflect.get(value, "id"));
const error = "must be the browser's passkey response, as JSON";

/** The result of `navigator.credentials.create`; the library checks the fields that it reads. */
export const registrationSchema = z.custom<RegistrationResponseJSON>(isNamed, { error });
/** The result of `navigator.credentials.get`; the library checks the fields that it reads. */
export const authenticationSchema = z.custom<AuthenticationResponseJSON>(isNamed, { error });
