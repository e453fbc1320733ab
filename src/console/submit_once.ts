import { createHash } from "node:crypto";
import type { Deps } from "../deps.ts";
import type { AlongsideWrite } from "../projects/admin.ts";
import { consoleFormKey } from "../store/keys.ts";
import type { ConsoleVisit } from "./guard.tsx";
import { formIdOf } from "./submitted_fields.ts";
import { putSubmittedForm, readSubmittedForm } from "./store.ts";

/** What a form created, with the secret that is shown to its sender. */
interface SubmittedOnce {
  id: string;
  secret: string;
}

/** How long a browser may repeat a double click, or someone may reload the page. */
const shownAgainMs = 5 * 60 * 1000;

/**
 * Creates something with a secret, once for each form. The same form sent again in the session,
 * also during the first one, returns the same result for a few minutes: a browser shows only the
 * response to its last click. Null after that time, or when the form was for something else. Throws
 * the error of `make`; then nothing was created.
 */
export async function submitOnce(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  { visit, form }: { visit: ConsoleVisit; form: URLSearchParams },
  make: (alongside: AlongsideWrite) => Promise<unknown>,
): Promise<SubmittedOnce | null> {
  const { session, incoming: { path } } = visit;
  const { hash } = session;
  const place = { hash, formId: formIdOf(form) };
  const key = consoleFormKey(hash, place.formId);
  const submission = createHash("sha256").update(`${path}?${form}`).digest("base64url");
  const sealer = await session.sealer();

  if (await readSubmittedForm(kv, place) === null) {
    await make(async (write, { id, secret }) => {
      if (await readSubmittedForm(kv, place)) throw new Error("this form was sent concurrently");
      const { sealed } = await sealer.seal(JSON.stringify([submission, id, secret]), key);
      putSubmittedForm(write, { ...place, made: { sealed, at: clock.now() } });
    }).catch(async (error) => {
      // The action and its form are one write, which has landed.
      if (await readSubmittedForm(kv, place) === null) throw error;
    });
  }
  const made = (await readSubmittedForm(kv, place))?.made;
  if (!made || clock.now() - made.at > shownAgainMs) return null;
  const [madeFor, id, secret] = JSON.parse(await sealer.open(made, key));
  return madeFor === submission ? { id, secret } : null;
}
