/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { badRequest } from "../../base/errors.ts";
import { fromDecimal, typedDecimal } from "../../base/money.ts";
import { checkUserId } from "../../base/user_id.ts";
import { FormError, FormField, FormSection, Hidden } from "../../pages/form_parts.tsx";
import { Card, MoneyCell, Table } from "../../pages/parts.tsx";
import type { Project } from "../../projects/schema.ts";
import { ownLimitsOf, userLimitNames, userLimitsOf } from "../../projects/user_limits.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { orShowFormAgain, submittedText } from "../submitted_fields.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { fingerprintAfter, fingerprintOf, saveSettings, type SettingsPart } from "../save.ts";
import { addressOf } from "./user_link.tsx";

type LimitName = typeof userLimitNames[number];

/** What the limits of a user are called. */
export const userLimitLabels: Readonly<Record<LimitName, string>> = {
  requestsPerMinute: "Requests per minute",
  tokensPerMinute: "Tokens per minute",
  concurrent: "Concurrent responses",
  spendPerDay: "Spending per day",
  spendPerMonth: "Spending per month",
};

const isMoney = (name: LimitName) => name === "spendPerDay" || name === "spendPerMonth";

/** The limits that hold for a user, and which of them are the user's own. */
export function UserLimitsCard({ visit, user }: { visit: ProjectVisit; user: string }) {
  const { project, here } = visit;
  const limits = userLimitsOf(project, user);
  const own = ownLimitsOf(project, user) ?? {};
  const edit = here(`/users/limits?${new URLSearchParams({ user })}`);
  const shown = userLimitNames.filter((name) => limits[name] !== null || name in own);
  return (
    <Card title="Limits" note={<a href={edit}>Change</a>}>
      <Table
        caption="Days and months are in UTC"
        columns={["Limit", "Set for", { title: "At most", number: true, lead: true }]}
        rows={shown.map((name) => [
          userLimitLabels[name],
          name in own ? "this user" : <a href={here("/limits")}>every user</a>,
          <LimitValue name={name} value={limits[name]} project={project} />,
        ])}
        empty="No limits: neither for this user nor for every user."
      />
    </Card>
  );
}

function LimitValue({ name, value, project: { currency } }: {
  name: LimitName;
  value: string | number | null;
  project: Project;
}): Child {
  if (value === null) return "no limit";
  if (!isMoney(name)) return value.toLocaleString("en-US");
  return <MoneyCell amount={fromDecimal(String(value))} currency={currency} />;
}

/** The form of a user's own limits. */
export function userLimitPages(guard: ConsoleGuard, services: ConsoleDeps) {
  function page(visit: ProjectVisit, view: Omit<UserLimitsView, "visit">): Response {
    const { user, problem } = view;
    return visit.page(`Limits of ${user}`, <UserLimitsForm visit={visit} {...view} />, {
      section: "/users",
      note: "They replace the limits of every user. Days and months are in UTC.",
      heading: (
        <>
          Limits of <bdi>{user}</bdi>
        </>
      ),
      problem,
    });
  }

  return {
    show: guard.project((visit) => {
      const user = checkUserId(visit.incoming.query("user"), "user");
      const own = ownLimitsOf(visit.project, user) ?? {};
      const values = (name: string) => String(new Map(Object.entries(own)).get(name) ?? "");
      const seen = fingerprintOf(partOf(user), visit.project);
      return page(visit, { user, values, seen, problem: null });
    }),
    save: guard.project(async (visit) => {
      const form = await visit.form();
      const user = checkUserId(form.get("user"), "user");
      const section = `/users/one?${new URLSearchParams({ user })}`;
      return await orShowFormAgain(
        () =>
          saveSettings(services, visit, {
            section,
            part: partOf(user),
            form,
            changes: ({ limits }) => ({ limits: withOwn(limits, user, readOwnLimits(form)) }),
          }),
        (problem, error) =>
          page(visit, {
            user,
            values: (name) => form.get(name) ?? "",
            seen: fingerprintAfter(form, error),
            problem,
          }),
        Object.fromEntries(
          userLimitNames.map((name) => [`limits.users.${user}.${name}`, userLimitLabels[name]]),
        ),
      );
    }),
  };
}

const partOf = (user: string): SettingsPart => (project) => ownLimitsOf(project, user);

function withOwn(limits: Project["limits"], user: string, own: object): object {
  const { [user]: _, ...others } = limits.users ?? {};
  const users = Object.keys(own).length === 0 ? others : { ...others, [user]: own };
  return { ...limits, users };
}

/** Throws 400 for what is neither a number nor `unlimited`. */
function readOwnLimits(form: URLSearchParams): object {
  const given = userLimitNames.flatMap((name): [string, string | number][] => {
    const text = submittedText(form, name)?.toLowerCase() ?? null;
    if (text === null) return [];
    if (text === "unlimited") return [[name, text]];
    if (isMoney(name)) return [[name, typedDecimal(text)]];
    if (/^[1-9]\d{0,9}$/.test(text)) return [[name, Number(text)]];
    throw badRequest(
      name,
      `‘${userLimitLabels[name]}’ must be a whole number of at least 1, or “unlimited”.`,
    );
  });
  return Object.fromEntries(given);
}

interface UserLimitsView {
  visit: ProjectVisit;
  user: string;
  /** Returns what a field of the form shows. */
  values: (name: string) => string;
  seen: string;
  problem: string | null;
}

function UserLimitsForm({ visit, user, values, seen, problem }: UserLimitsView) {
  const { project, here } = visit;
  const usual = project.limits.user;
  const unit = project.currency.toUpperCase();
  return (
    <>
      <FormError text={problem} />
      <form method="post" action={here("/users/limits")}>
        <Hidden fields={{ seen, user }} />
        <FormSection
          title="This user"
          says="Empty: the limit of every user. “unlimited”: no limit."
        >
          <div class="fields">
            {userLimitNames.map((name) => (
              <FormField
                name={name}
                label={isMoney(name) ? `${userLimitLabels[name]}, ${unit}` : userLimitLabels[name]}
                value={values(name)}
                more={{ placeholder: `${usual[name] ?? "No limit"} (every user)` }}
              />
            ))}
          </div>
        </FormSection>
        <p class="actions">
          <button type="submit" class="primary">Save</button>
          <a class="button" href={addressOf(visit, user)}>Cancel</a>
        </p>
      </form>
    </>
  );
}
