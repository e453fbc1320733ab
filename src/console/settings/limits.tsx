/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { holdWaitMs } from "../../base/limits.ts";
import type { Project } from "../../projects/schema.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { decimalText, integerText, orShowFormAgain, submittedText } from "../submitted_fields.ts";
import {
  FormCheckbox,
  FormError,
  FormField,
  FormSection,
  Hidden,
} from "../../pages/form_parts.tsx";
import { Card, Table } from "../../pages/parts.tsx";
import { userLimitNames } from "../../projects/user_limits.ts";
import { UserLink } from "../users/user_link.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { userLimitLabels } from "../users/user_limits.tsx";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "../save.ts";

const section = "/limits";
const part: SettingsPart = ({ limits: { users: _, ...limits } }) => limits;

const labelled = <Name extends keyof typeof userLimitLabels>(...names: readonly Name[]) =>
  names.map((name) => [name, userLimitLabels[name]] as const);
const rates = labelled("requestsPerMinute", "tokensPerMinute", "concurrent");
const spending = labelled("spendPerDay", "spendPerMonth");
const heldWaitLabel = "Wait for running requests, in milliseconds";
const labels = Object.fromEntries([
  ...[...rates, ...spending].map(([name, label]) => [`limits.user.${name}`, label]),
  ...rates.map(([name, label]) => [`limits.key.${name}`, label]),
  ["limits.heldWaitMs", heldWaitLabel],
]);

/** The limits of a project's users and keys. */
export function limitPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const page = (visit: ProjectVisit, view: Omit<LimitsView, "visit">) =>
    visit.page("Limits", <Limits visit={visit} {...view} />, {
      section,
      problem: view.problem,
    });
  return {
    show: guard.project((visit) => {
      const { project } = visit;
      return page(visit, {
        values: valuesOf(project),
        seen: fingerprintOf(part, project),
        problem: null,
      });
    }),
    save: guard.project(async (visit) => {
      const form = await visit.form();
      const values: Values = (name) => form.get(name) ?? "";
      return await orShowFormAgain(
        () =>
          saveSettings(services, visit, {
            section,
            part,
            form,
            changes: (now) => readLimits(form, now),
          }),
        (problem, error) => page(visit, { values, seen: fingerprintAfter(form, error), problem }),
        labels,
      );
    }),
  };
}

interface LimitsView {
  visit: ProjectVisit;
  values: Values;
  seen: string;
  problem: string | null;
}

/** Returns what a field of the form shows. */
type Values = (name: string) => string;

function valuesOf({ limits: { user, key, reply, heldWaitMs } }: Project): Values {
  const values = new Map<string, string | number | null>([
    ...Object.entries(user).map(([name, value]) => [`user.${name}`, value] as const),
    ...Object.entries(key).map(([name, value]) => [`key.${name}`, value] as const),
    ["reply", reply],
    ["heldWaitMs", heldWaitMs ?? null],
  ]);
  return (name) => String(values.get(name) ?? "");
}

function readLimits(
  form: URLSearchParams,
  { limits: { users } }: Project,
): { limits: Record<string, unknown> } {
  const ratesOf = (whose: "user" | "key") =>
    Object.fromEntries(
      rates.map(([name, label]) => [name, rateOf(form, `${whose}.${name}`, label)]),
    );
  const spend = spending.map(([name]) => [name, decimalText(form, `user.${name}`)]);
  const user = { ...ratesOf("user"), ...Object.fromEntries(spend) };
  const reply = submittedText(form, "reply") ?? "error";
  const heldWaitMs = integerText(form, "heldWaitMs", heldWaitLabel);
  const wait = heldWaitMs === null ? {} : { heldWaitMs };
  // Users' own limits are edited on the users' pages.
  return { limits: { user, key: ratesOf("key"), reply, ...wait, ...(users ? { users } : {}) } };
}

/** Returns null for an empty field. Throws 400 for zero, which many write for no limit. */
function rateOf(form: URLSearchParams, name: string, label: string): number | null {
  const rate = integerText(form, name, label);
  if (rate !== 0) return rate;
  throw badRequest(name, `‘${label}’ must be at least 1. An empty field is no limit.`);
}

function Limits({ visit, values, seen, problem }: LimitsView) {
  const { project, here } = visit;
  const currency = project.currency.toUpperCase();
  const number = (name: string, label: string) => (
    <FormField
      name={name}
      label={label}
      value={values(name)}
      more={{ inputmode: "numeric", placeholder: "No limit" }}
    />
  );
  return (
    <>
      <p>Leave a field empty for no limit. Days and months are in UTC.</p>
      <FormError text={problem} />
      <form method="post" action={here(section)}>
        <Hidden fields={{ seen }} />
        <FormSection
          title="Each user"
          says="What one user may use, with any key. A new project allows 64 concurrent responses."
        >
          <div class="fields">
            {rates.map(([name, label]) => number(`user.${name}`, label))}
            {spending.map(([name, label]) => (
              <FormField
                name={`user.${name}`}
                label={`${label}, ${currency}`}
                value={values(`user.${name}`)}
                more={{ inputmode: "decimal", placeholder: "No limit" }}
              />
            ))}
          </div>
        </FormSection>
        <FormSection title="Each key" says="What one API key may use, over all its users.">
          <div class="fields">{rates.map(([name, label]) => number(`key.${name}`, label))}</div>
        </FormSection>
        <FormSection
          title="Response"
          says="What a user over a rate limit gets. A spending limit always leads to a message."
        >
          <FormCheckbox
            type="radio"
            name="reply"
            value="error"
            label="Error 429, as OpenAI’s clients expect"
            on={values("reply") !== "message"}
          />
          <FormCheckbox
            type="radio"
            name="reply"
            value="message"
            label="An assistant message"
            on={values("reply") === "message"}
          />
        </FormSection>
        <HeldWait value={values("heldWaitMs")} />
        <button type="submit" class="primary">Save</button>
      </form>
      <OwnLimits visit={visit} />
    </>
  );
}

/** How long a request waits for the user's others. */
function HeldWait({ value }: { value: string }) {
  return (
    <FormSection
      title="Requests at once"
      says="While a user’s running requests hold the balance, another one waits this long."
    >
      <div class="fields">
        <FormField
          name="heldWaitMs"
          label={heldWaitLabel}
          value={value}
          more={{ inputmode: "numeric", placeholder: String(holdWaitMs) }}
        />
      </div>
    </FormSection>
  );
}

/** The users who have limits of their own. */
function OwnLimits({ visit }: { visit: ProjectVisit }) {
  const users = Object.entries(visit.project.limits.users ?? {});
  return (
    <Card title="Users with their own limits">
      <Table
        caption="Set on the page of the user"
        columns={["User", "Limits"]}
        rows={users.map(([user, own]) => [
          <UserLink visit={visit} user={user} />,
          userLimitNames.filter((name) => name in own)
            .map((name) => `${userLimitLabels[name].toLowerCase()}: ${own[name]}`).join(", "),
        ])}
        empty="None. Open a user to set their own limits."
      />
    </Card>
  );
}
