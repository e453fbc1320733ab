/** @jsxImportSource @hono/hono/jsx */
import { ownMember } from "../../base/json.ts";
import type { Child } from "@hono/hono/jsx";
import type { Project } from "../../projects/schema.ts";
import { type ModelRoute, type UpstreamSettings, urlOf } from "../../projects/upstream_schema.ts";
import { readSummary, type TargetTotals } from "../../summaries/summary.ts";
import type { TargetView } from "../../upstreams/target_health.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { Badge, MoneyCell, Table, TimeCell } from "../../pages/parts.tsx";

/** The section of the navigation. */
export const upstreamsSection = "/upstreams";
const dayMs = 24 * 60 * 60 * 1000;

/** The upstreams of a project, where its models go, and how they fared in the last day. */
export function upstreamsPage(guard: ConsoleGuard, { deps, targetHealth }: ConsoleDeps) {
  return guard.project(async (visit) => {
    const to = deps.clock.now() + 1;
    const { targets } = await readSummary(deps.kv, visit.project.id, { from: to - dayMs, to });
    const serverUrl = deps.config.upstream?.url ?? null;
    const view = { visit, targets, health: targetHealth.view(), serverUrl };
    return visit.page("Upstreams", <UpstreamsView {...view} />, { section: upstreamsSection });
  });
}

interface Shown {
  visit: ProjectVisit;
  targets: readonly TargetTotals[];
  health: readonly TargetView[];
  /** The URL of the server's own upstream; null where it has none. */
  serverUrl: string | null;
}

function UpstreamsView(shown: Shown) {
  const { visit: { project, session, here } } = shown;
  const isOperator = session.projectId === null;
  const form = (path: string, text: string) =>
    isOperator
      ? (
        <p class="actions">
          <a class="button" href={here(`${upstreamsSection}${path}`)}>{text}</a>
        </p>
      )
      : null;
  return (
    <>
      <p>
        A route decides which upstream serves a model, and which one is next when it fails.
        {isOperator ? null : " Only the operator of this instance can change them."}
      </p>
      <Usual {...shown} isOperator={isOperator} />
      <Named visit={shown.visit} isOperator={isOperator} />
      {form("/one", "Add an upstream")}
      <Routes project={project} link={linkTo(shown.visit, "/route?model=")} />
      {form("/route", "Add a route")}
      <Traffic {...shown} />
    </>
  );
}

type Link = (name: string) => Child;

function linkTo({ session, here }: ProjectVisit, path: string): Link {
  return (name) =>
    session.projectId === null
      ? <a href={here(`${upstreamsSection}${path}${encodeURIComponent(name)}`)}>{name}</a>
      : name;
}

interface UpstreamsShown {
  visit: ProjectVisit;
  isOperator: boolean;
}

/** Where models without a route go: the project's own upstream, else that of the server. */
function Usual({ visit: { project, here }, isOperator, serverUrl }: UpstreamsShown & {
  serverUrl: Shown["serverUrl"];
}) {
  const { upstream } = project;
  const forward = Object.hasOwn(project.routes, "*") ? "none: the route * has them" : "usual";
  return (
    <>
      <h2>The usual upstream</h2>
      <Table
        caption="Where models without a route go"
        columns={["Upstream", "URL", "Provider", "Key", "Models without a route", "Actions"]}
        rows={[[
          upstream !== null ? "of this project" : serverUrl === null ? "none" : "of this server",
          upstream !== null
            ? <code>{urlOf(upstream)}</code>
            : isOperator && serverUrl !== null
            ? <code>{serverUrl}</code>
            : "",
          upstream?.provider ?? "",
          upstream === null ? "" : <KeyState of={upstream} />,
          forward === "usual" ? "all" : forward,
          isOperator
            ? (
              <>
                <a href={here(`${upstreamsSection}/usual`)}>Change</a>{" "}
                <a href={here(`${upstreamsSection}/test`)}>Test</a>
              </>
            )
            : "",
        ]]}
        empty=""
      />
    </>
  );
}

function KeyState({ of: { apiKey } }: { of: UpstreamSettings }) {
  return apiKey ? <>set</> : <span class="muted">none</span>;
}

/** The models whose routes lead to a named upstream. */
export function routesTo({ routes }: Project, name: string): string[] {
  return Object.entries(routes)
    .filter(([, { targets }]) => targets.some(({ upstream }) => upstream === name))
    .map(([model]) => model);
}

function RoutesTo({ project, name }: { project: Project; name: string }) {
  const models = routesTo(project, name);
  return models.length > 0
    ? <span class="wrap">{models.join(", ")}</span>
    : <Badge tone="late">none: it is not used</Badge>;
}

function Named({ visit, isOperator }: UpstreamsShown) {
  const { project, here } = visit;
  const link = linkTo(visit, "/one?name=");
  const upstreams = Object.entries(project.upstreams);
  return (
    <>
      <h2>More upstreams</h2>
      <Table
        caption="They serve only what a route leads to them"
        columns={["Name", "URL", "Provider", "Key", "Models", "Routes", "Actions"]}
        rows={upstreams.map(([name, settings]) => [
          link(name),
          <code>{urlOf(settings)}</code>,
          settings.provider ?? "",
          <KeyState of={settings} />,
          modelsOf(settings),
          <RoutesTo project={project} name={name} />,
          isOperator ? <a href={here(`${upstreamsSection}/test?name=${name}`)}>Test</a> : "",
        ])}
        empty="None."
      />
    </>
  );
}

function modelsOf({ models }: UpstreamSettings): string {
  if (models === undefined) return "any";
  return models === "upstream" ? "those that it lists" : models.join(", ");
}

function Routes({ project, link }: { project: Project; link: Link }) {
  return (
    <>
      <h2>Routes</h2>
      <Table
        caption="Routes of this project"
        columns={["Model", "Strategy", "Targets"]}
        rows={Object.entries(project.routes).map(([model, route]) => [
          link(model),
          route.strategy,
          <span class="wrap">{targetsText(route)}</span>,
        ])}
        empty="None yet."
      />
    </>
  );
}

function targetsText({ strategy, targets }: ModelRoute): string {
  return targets.map(({ upstream, model, weight }) =>
    [upstream, model, strategy === "weight" ? `× ${weight}` : null].filter(Boolean).join(" ")
  ).join(strategy === "order" ? " → " : ", ");
}

function Traffic({ visit: { project }, targets, health }: Shown) {
  const { currency } = project;
  const all = targets.reduce((sum, { answers }) => sum + answers, 0);
  const percent = (part: number, whole: number) =>
    whole === 0 ? "" : `${Math.round((part / whole) * 100)} %`;
  const number = (title: string) => ({ title, number: true }) as const;
  return (
    <>
      <h2>Last 24 hours</h2>
      <Table
        caption="Attempts by target in the last 24 hours"
        columns={[
          ...["Target", "State"],
          ...["Share", "Attempts", "Failed", "First token", "Charged", "Cost"].map(number),
        ]}
        rows={targets.map((target) => [
          `${target.upstream} ${target.model}`,
          <State of={target} project={project} health={health} />,
          percent(target.answers, all),
          String(target.attempts),
          percent(target.attempts - target.answers, target.attempts),
          target.answers === 0 ? "" : `${target.firstTokenMs} ms`,
          <MoneyCell amount={target.cost} currency={currency} />,
          <MoneyCell amount={target.upstreamCost} currency={currency} />,
        ])}
        empty="No routed calls."
      />
    </>
  );
}

/** Whether a target's breaker is open, as far as this process knows. */
function State({ of: { upstream, model }, project, health }: {
  of: TargetTotals;
  project: Project;
  health: readonly TargetView[];
}) {
  const settings = ownMember(project.upstreams, upstream);
  const host = settings && new URL(urlOf(settings)).host;
  const known = health.find((one) =>
    one.upstream === upstream && one.model === model && new URL(one.url).host === host
  );
  if (!known || known.state === "closed") return <Badge tone="good">asked as usual</Badge>;
  return (
    <>
      <Badge tone="late">asked last</Badge> until <TimeCell at={known.openUntil} />
    </>
  );
}
