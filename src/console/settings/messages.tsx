/** @jsxImportSource @hono/hono/jsx */
import { messageFor, standardMessages } from "../../paywall/messages.ts";
import { type MessageReason, messageReasons, type Project } from "../../projects/schema.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { type FieldLabels, orShowFormAgain, submittedText } from "../submitted_fields.ts";
import { FormError, FormField, Hidden } from "../../pages/form_parts.tsx";
import { Card, Tabs } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "../save.ts";

const section = "/messages";
const firstLanguage = "en";

const occasions: Record<MessageReason, string> = {
  insufficient_funds: "The user has run out of credit",
  authorization_required: "The wallet’s owner has not authorized it",
  limit_reached: "The daily limit of the wallet’s owner is reached",
  spend_limit: "The project’s daily or monthly limit is reached",
  rate_limit: "Too many messages in a minute",
  busy: "Running requests hold the rest of the credit",
  cut: "After a response that the balance cut short",
  low_balance: "After a response, when the credit runs low",
};
const tagLabel = "Language tag";

function labelsIn(language: string): FieldLabels {
  const ofWords = messageReasons.map((
    reason,
  ) => [`messages.${language}.${reason}`, occasions[reason]]);
  return { ...Object.fromEntries(ofWords), [`messages.${language}`]: tagLabel };
}

const ofWallets: readonly MessageReason[] = ["authorization_required", "limit_reached"];

/** The owner's own texts that users see in the chat, in place of a response or below it. */
export function messagePages(guard: ConsoleGuard, services: ConsoleDeps) {
  const page = (visit: ProjectVisit, shown: Shown, problem: string | null) =>
    visit.page("Messages", <Messages {...{ visit, shown, problem }} />, {
      section,
      problem,
    });
  return {
    show: guard.project((visit) => {
      const language = visit.incoming.query("language")?.trim().toLowerCase() || firstLanguage;
      const words = wordsIn(visit.project, language);
      const seen = fingerprintOf(partOf(language), visit.project);
      return page(visit, { language, words: (reason) => words[reason] ?? "", seen }, null);
    }),
    save: guard.project(async (visit) => {
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
        (problem, error) =>
          page(visit, { language, words, seen: fingerprintAfter(form, error) }, problem),
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

/** Returns all languages, with the submitted texts of one; a language without texts is dropped. */
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

function Messages({ visit: { project, here }, shown: { language, words, seen }, problem }: {
  visit: ProjectVisit;
  shown: Shown;
  problem: string | null;
}) {
  const isShared = project.mode === "shared";
  const reasons = messageReasons.filter((reason) =>
    isShared || !ofWallets.includes(reason) || words(reason) !== ""
  );
  return (
    <>
      <Languages {...{ project, here, language }} />
      <Card title={nameOf(language)} note="What your users see in the chat">
        <p class="muted">
          Where you leave a field empty, they see the English text, yours or ours.{" "}
          <code>{"{{url}}"}</code> is replaced by the link, and is required;{" "}
          <code>{"{{name}}"}</code> by the project’s name, <code>{"{{balance}}"}</code>{" "}
          by the user’s balance.
        </p>
        <FormError text={problem} />
        <form method="post" action={here(section)}>
          <Hidden fields={{ seen, language }} />
          {reasons.map((reason) => <Message {...{ project, reason }} text={words(reason)} />)}
          <button type="submit" class="primary">Save</button>
        </form>
      </Card>
      <OtherLanguage action={here(section)} />
    </>
  );
}

function Message({ project, reason, text }: {
  project: Project;
  reason: MessageReason;
  text: string;
}) {
  const usual = wordsIn(project, firstLanguage)[reason] ?? standardMessages[reason];
  return (
    <div class="message">
      <div class="field">
        <label for={reason}>{occasions[reason]}</label>
        <textarea
          id={reason}
          name={reason}
          rows={3}
          placeholder={usual}
          aria-describedby={`${reason}-hint`}
        >
          {text}
        </textarea>
      </div>
      <div class="bubbles" id={`${reason}-hint`}>
        <span class="hint">{text === "" ? "Default" : "Preview"}</span>
        <p class="bubble">{sampleOf(project, text === "" ? usual : text)}</p>
      </div>
    </div>
  );
}

/** Returns the owner's text with example values. */
function sampleOf(project: Project, text: string): string {
  const messages = { [firstLanguage]: { busy: text } };
  const url = "https://pay.example.com/t/8Fk2QwZ1nXb7Lr4pV";
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
        Users whose client sends <code>Accept-Language</code>{" "}
        get the language that fits best; everyone else gets English.
      </p>
      <Tabs
        label="Language"
        tabs={known.map((one) => ({
          title: nameOf(one),
          href: here(addressOf(one)),
          shown: one === language,
        }))}
      />
    </>
  );
}

function OtherLanguage({ action }: { action: string }) {
  return (
    <Card title="Add a language">
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
    </Card>
  );
}

const names = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** Returns a language's name; an invalid tag is shown as it is. */
function nameOf(language: string): string {
  try {
    return `${names.of(language) ?? language} (${language})`;
  } catch {
    return language;
  }
}
