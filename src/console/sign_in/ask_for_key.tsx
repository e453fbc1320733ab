/** @jsxImportSource @hono/hono/jsx */
import type { Deps } from "../../deps.ts";
import { FormError, FormField } from "../../pages/form_parts.tsx";
import { type AskForKey, isMultipart } from "../guard.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { createSignInThrottle } from "./sign_in_throttle.ts";

const field = "sessionKey";

/** Creates the question for the key of a session. */
export function createAskForKey(
  { clock }: Pick<Deps, "clock">,
  { sessions, fleet, refusedKeys }: Pick<ConsoleDeps, "sessions" | "fleet" | "refusedKeys">,
): AskForKey {
  const attempts = createSignInThrottle(clock);
  fleet.join("confirmations", attempts.part);
  return async (visit, form) => {
    const { session, incoming } = visit;
    const key = form.get(field)?.trim();
    form.delete(field);
    if (session.isConfirmed) return null;
    if (key && await sessions.confirm(incoming.request, session, key)) return null;
    const isWrong = key !== undefined;
    if (isWrong) {
      const { by, projectId } = session;
      await refusedKeys.note({ action: "console.key_refused", by, projectId });
    }
    const waitMs = isWrong ? attempts.take(incoming.address()) : 0;
    const wait = `Too many attempts. Try again in ${Math.ceil(waitMs / 1000)} seconds.`;
    const wrong = waitMs > 0 ? wait : "This is not the key that you are signed in with.";
    const problem = isWrong ? wrong : null;
    const status = waitMs > 0 ? 429 : 401;
    const { search } = new URL(incoming.request.url);
    const action = visit.at(incoming.path.slice("/console".length)) + search;
    const inParts = isMultipart(incoming.request);
    const question = <Question {...{ fields: [...form], action, inParts, problem }} />;
    return visit.page("Enter your key again", question, { status });
  };
}

function Question({ fields, action, inParts, problem }: {
  fields: [name: string, value: string][];
  action: string;
  /** Whether the form is sent as one with a file is. */
  inParts: boolean;
  problem: string | null;
}) {
  return (
    <>
      <p>
        This needs the key that you are signed in with, because it was last entered more than 10
        minutes ago. Nothing has been changed yet.
      </p>
      <FormError text={problem} />
      <form method="post" action={action} enctype={inParts ? "multipart/form-data" : undefined}>
        {fields.map(([name, value]) => <input type="hidden" name={name} value={value} />)}
        <FormField
          name={field}
          label="Key"
          type="password"
          required
          more={{ autocomplete: "current-password", autofocus: "" }}
        />
        <p class="actions">
          <button type="submit" class="primary">Continue</button>
        </p>
      </form>
    </>
  );
}
