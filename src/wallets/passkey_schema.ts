import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { z } from "zod";

/** Whether it is a credential's id: at most 1,023 bytes (WebAuthn 3, 4), in base64url. */
export function isCredentialId(id: unknown): id is string {
  return typeof id === "string" && /^[\w-]{1,1364}$/.test(id);
}

const isNamed = (value: unknown) =>
  typeof value === "object" && value !== null && isCredentialId(Reflect.get(value, "id"));
const error = "must be what the browser made of the passkey, as JSON";

/** What a browser makes of `navigator.credentials.create`; the library checks what it reads. */
export const registrationSchema = z.custom<RegistrationResponseJSON>(isNamed, { error });
/** What a browser makes of `navigator.credentials.get`; the library checks what it reads. */
export const authenticationSchema = z.custom<AuthenticationResponseJSON>(isNamed, { error });
