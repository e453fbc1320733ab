/** @jsxImportSource @hono/hono/jsx */
import { badRequest, notFound } from "../../base/errors.ts";
import { modelName } from "../../base/fields.ts";
import { parseWith } from "../../base/request.ts";
import { recordAction } from "../../projects/audit.ts";
import { usualUpstream } from "../../projects/instance_upstreams.ts";
import { type TriedCall, tryCall } from "../../upstreams/try_call.ts";
import { FormError, FormField, Hidden } from "../../pages/form_parts.tsx";
import { Badge, Card, DetailList } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { orShowFormAgain, submittedText } from "../submitted_fields.ts";
import { requireOperatorOfUpstreams } from "./named_form.tsx";
import { upstreamsSection as section } from "./upstreams.tsx";

const path = `${section}/test`;

/** A call that the operator makes through an upstream, to see whether it answers. */
export function upstreamTestPages(guard: ConsoleGuard, { deps, upstreams }: ConsoleDeps) {
  function page(visit: ProjectVisit, view: Omit<TestView, "visit">): Response {
    const { name, problem } = view;
    return visit.page(
      name === null ? "Test the usual upstream" : `Test ${name}`,
      <TestForm visit={visit} {...view} />,
      {
        section,
        problem,
        note: "One short request. It is in no user’s entries, and the provider may charge for it.",
      },
    );
  }

  return {
    show: guard.project((visit) => {
      requireOperatorOfUpstreams(visit);
      const name = visit.incoming.query("name") ?? null;
      requireNamed(visit, name);
      return page(visit, { name, model: modelFor(visit, name), tried: null, problem: null });
    }),
    send: guard.project(async (visit) => {
      requireOperatorOfUpstreams(visit);
      const form = await visit.form();
      const name = submittedText(form, "name");
      requireNamed(visit, name);
      const model = submittedText(form, "model") ?? "";
      return await orShowFormAgain(async () => {
        if (model === "") throw badRequest("model", "‘Model’ must not be empty.");
        parseWith(modelName, model, ["model"]);
        const upstream = await upstreams.findUpstreamNamed(visit.project, name);
        if (!upstream) {
          throw badRequest(null, "Neither the project nor the server has an upstream.");
        }
        const { session: { by }, project: { id } } = visit;
        const target = name ?? usualUpstream;
        await recordAction(deps, id, { by, action: "upstream.tested", target, detail: { model } });
        const tried = await tryCall(deps, upstream, { model, id: visit.incoming.requestId });
        return page(visit, { name, model, tried, problem: null });
      }, (problem) => page(visit, { name, model, tried: null, problem }));
    }),
  };
}

/** Throws 404 for a name that is no upstream of the project. */
function requireNamed({ project }: ProjectVisit, name: string | null): void {
  if (name !== null && !Object.hasOwn(project.upstreams, name)) throw notFound("upstream");
}

/** A model that an upstream probably serves; empty where none is known. */
function modelFor({ project: { upstreams, routes, pricing } }: ProjectVisit, name: string | null) {
  const priced = Object.keys(pricing.models).find((model) => model !== "*") ?? "";
  if (name === null) return priced;
  for (const [model, { targets }] of Object.entries(routes)) {
    const target = targets.find(({ upstream }) => upstream === name);
    if (target?.model !== undefined) return target.model;
    if (target && model !== "*") return model;
  }
  const { models } = upstreams[name] ?? {};
  const named = Array.isArray(models) ? models.find((model) => !model.endsWith("*")) : undefined;
  return named ?? priced;
}

interface TestView {
  visit: ProjectVisit;
  /** The name of the upstream; null is the usual one. */
  name: string | null;
  model: string;
  tried: TriedCall | null;
  problem: string | null;
}

function TestForm({ visit: { here }, name, model, tried, problem }: TestView) {
  return (
    <>
      <FormError text={problem} />
      {tried === null ? null : <Result tried={tried} />}
      <form method="post" action={here(path)}>
        {name === null ? null : <Hidden fields={{ name }} />}
        <FormField
          name="model"
          label="Model"
          value={model}
          hint="The name that the upstream gives it."
          required
        />
        <p class="actions">
          <button type="submit" class="primary">Send a test request</button>
          <a class="button" href={here(section)}>Back to the upstreams</a>
        </p>
      </form>
    </>
  );
}

function Result({ tried: { isAnswered, status, format, text, tookMs } }: { tried: TriedCall }) {
  return (
    <Card title="Result">
      <DetailList
        rows={[
          [
            "State",
            isAnswered ? <Badge tone="good">answered</Badge> : <Badge tone="bad">failed</Badge>,
          ],
          ["Status", status === null ? "no response" : String(status)],
          ["Format", <code>{format}</code>],
          ["Time", `${tookMs.toLocaleString("en-US")} ms`],
          [isAnswered ? "Text" : "Error", <bdi>{text === "" ? "empty" : text}</bdi>],
        ]}
      />
    </Card>
  );
}
