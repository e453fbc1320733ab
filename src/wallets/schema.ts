import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { z } from "zod";

const isNamed = (value: unknown) =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, "id") === "string";
const error = "must be what the browser made of the passkey, as JSON";

/** What a browser makes of `navigator.credentials.create`; the library checks what it reads. */
export const registrationSchema = z.custom<RegistrationResponseJSON>(isNamed, { error });
/** What a browser makes of `navigator.credentials.get`; the library checks what it reads. */
export const authenticationSchema = z.custom<AuthenticationResponseJSON>(isNamed, { error });
