/** @jsxImportSource @hono/hono/jsx */
import { messageFor, standardMessages } from "../paywall/messages.ts";
import { type MessageReason, messageReasons, type Project } from "../projects/schema.ts";
import type { ConsoleGuard, ProjectVisit } from "./guard.tsx";
import { type FieldLabels, orShowFormAgain, submittedText } from "./fields.ts";
import { FormError, FormField, Hidden } from "./form.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "./save.ts";

const section = "/messages";
const firstLanguage = "en";

const occasions: Record<MessageReason, string> = {
  insufficient_funds: "The credit is used up",
  authorization_required: "A wallet’s owner has not allowed it",
  limit_reached: "The daily limit of a wallet’s owner is reached",
  spend_limit: "The project’s limit for a day or a month is reached",
  rate_limit: "Too many messages in a minute",
  busy: "Answers that still run hold the rest of the credit",
  cut: "After an answer that the credit ended",
  low_balance: "After an answer, when the credit runs low",
};
const tagLabel = "Tag of the language";

function labelsIn(language: string): FieldLabels {
  const ofWords = messageReasons.map((
    reason,
  ) => [`messages.${language}.${reason}`, occasions[reason]]);
  return { ...Object.fromEntries(ofWords), [`messages.${language}`]: tagLabel };
}

const ofWallets: readonly MessageReason[] = ["authorization_required", "limit_reached"];

/** What users read in the chat instead of an answer, or below it, in the owner's own words. */
export function messagePages(door: ConsoleGuard, services: ConsoleDeps) {
  const page = (visit: ProjectVisit, shown: Shown, fault: string | null) =>
    visit.page("Messages", <Messages {...{ visit, shown, fault }} />, {
      section,
      fault,
    });
  return {
    show: door.project((visit) => {
      const language = visit.incoming.query("language")?.trim().toLowerCase() || firstLanguage;
      const words = wordsIn(visit.project, language);
      const seen = fingerprintOf(partOf(language), visit.project);
      return page(visit, { language, words: (reason) => words[reason] ?? "", seen }, null);
    }),
    save: door.project(async (visit) => {
      const form = await visit.form();
      const language = submittedText(form, "language") ?? firstLanguage;
      const words = (reason: MessageReason) => form.get(reason) ?? "";
      return await orShowFormAgain(
        () =>
          saveSettings(services, visit, {
            section: addressOf(language),
            part: partOf(language),
            form,
            changes: (project) => ({ messages: withWords(project, language, form) }),
          }),
        (fault, error) =>
          page(visit, { language, words, seen: fingerprintAfter(form, error) }, fault),
        labelsIn(language),
      );
    }),
  };
}

/** A language, and what its fields show. */
interface Shown {
  language: string;
  words: (reason: MessageReason) => string;
  seen: string;
}

const partOf = (language: string): SettingsPart => (project) => wordsIn(project, language);

function wordsIn({ messages }: Project, language: string): Partial<Record<MessageReason, string>> {
  return Object.hasOwn(messages, language) ? messages[language] ?? {} : {};
}

/** All languages, with what was filled in for one of them; a language without words is none. */
function withWords(
  { messages }: Project,
  language: string,
  form: URLSearchParams,
): Project["messages"] {
  const filled = messageReasons.flatMap((reason) => {
    const text = submittedText(form, reason);
    return text === null ? [] : [[reason, text] as const];
  });
  const others = Object.entries(messages).filter(([other]) => other !== language);
  const own = [language, Object.fromEntries(filled)] as const;
  return Object.fromEntries(filled.length > 0 ? [...others, own] : others);
}

const addressOf = (language: string) => `${section}?language=${encodeURIComponent(language)}`;

function Messages({ visit: { project, here }, shown: { language, words, seen }, fault }: {
  visit: ProjectVisit;
  shown: Shown;
  fault: string | null;
}) {
  const isShared = project.mode === "shared";
  const reasons = messageReasons.filter((reason) =>
    isShared || !ofWallets.includes(reason) || words(reason) !== ""
  );
  return (
    <>
      <p>
        What your users read in the chat. Where you fill in nothing they read English, yours or
        ours. <code>{"{{url}}"}</code> becomes the link, and has to be there;{" "}
        <code>{"{{name}}"}</code> becomes the project’s name, <code>{"{{balance}}"}</code>{" "}
        what the user has.
      </p>
      <Languages {...{ project, here, language }} />
      <h2>{nameOf(language)}</h2>
      <FormError text={fault} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ seen, language }} />
        {reasons.map((reason) => <Message {...{ project, reason }} text={words(reason)} />)}
        <button type="submit" class="primary">Save</button>
      </form>
      <OtherLanguage action={here(section)} />
    </>
  );
}

function Message({ project, reason, text }: {
  project: Project;
  reason: MessageReason;
  text: string;
}) {
  return (
    <div class="field">
      <label for={reason}>{occasions[reason]}</label>
      <textarea id={reason} name={reason} rows={2} aria-describedby={`${reason}-hint`}>
        {text}
      </textarea>
      <span class="hint" id={`${reason}-hint`}>
        {text === ""
          ? `Otherwise: ${wordsIn(project, firstLanguage)[reason] ?? standardMessages[reason]}`
          : `Reads: ${sampleOf(project, text)}`}
      </span>
    </div>
  );
}

/** How a text of the owner's reads, with values that stand for a user's. */
function sampleOf(project: Project, text: string): string {
  const messages = { [firstLanguage]: { busy: text } };
  const url = "https://…";
  const context = { url, balance: "1.25", languages: null };
  return messageFor({ ...project, messages }, "busy", context);
}

function Languages({ project, here, language }: {
  project: Project;
  here: ProjectVisit["here"];
  language: string;
}) {
  const known = [...new Set([firstLanguage, ...Object.keys(project.messages)])];
  return (
    <>
      <p>
        Whoever sends <code>Accept-Language</code>{" "}
        gets the language that suits best, everybody else English.
      </p>
      <ul>
        {known.map((one) => (
          <li>
            <a href={here(addressOf(one))} aria-current={one === language ? "true" : undefined}>
              {nameOf(one)}
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function OtherLanguage({ action }: { action: string }) {
  return (
    <>
      <h2>Another language</h2>
      <form method="get" action={action}>
        <FormField
          name="language"
          label={tagLabel}
          hint="For example de or pt-br."
          required
          more={{ pattern: "[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", maxlength: "35" }}
        />
        <button type="submit">Open</button>
      </form>
    </>
  );
}

const names = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** A language in words; what is no language tag stands for itself. */
function nameOf(language: string): string {
  try {
    return `${names.of(language) ?? language} (${language})`;
  } catch {
    return language;
  }
}
