/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Project } from "../../projects/schema.ts";
import { submittedText } from "../submitted_fields.ts";
import { FormCheckbox, FormSection } from "../../pages/form_parts.tsx";
import { type FormValues, Lines, type NamedSetting } from "./named_form.tsx";
import { upstreamsSection } from "./upstreams.tsx";

const strategies = [
  ["order", "in this order"],
  ["weight", "by chance, by their weights"],
  ["cheapest", "the cheapest first"],
  ["fastest", "the fastest first"],
] as const;

/** The form for one route. */
export const routeForm: NamedSetting = {
  setting: "routes",
  what: "a route",
  section: upstreamsSection,
  path: `${upstreamsSection}/route`,
  field: {
    name: "model",
    label: "Model",
    hint: "The name that callers ask for: a model, a name of your own, or * for all others.",
  },
  valuesOf,
  read: readRoute,
  saved: () => "saved",
  Fields: RouteFields,
};

function valuesOf({ routes }: Project, known: string | null): FormValues {
  const route = known === null ? undefined : routes[known];
  const targets = (route?.targets ?? []).map(({ upstream, model, weight }) =>
    [upstream, model ?? (weight === 1 ? null : "="), weight === 1 ? null : weight]
      .filter((part) => part !== null).join(" ")
  );
  const values: Record<string, string> = {
    strategy: route?.strategy ?? "order",
    sticky: route?.sticky ?? true ? "on" : "",
    targets: targets.join("\n"),
  };
  return (name) => values[name] ?? "";
}

function readRoute(form: URLSearchParams): JsonObject {
  const lines = (submittedText(form, "targets") ?? "").split("\n").map((line) => line.trim());
  return {
    strategy: submittedText(form, "strategy") ?? "order",
    sticky: form.has("sticky"),
    targets: lines.filter(Boolean).map(targetIn),
  };
}

/** Reads `upstream model weight`; a model of `=` is the name that was asked for. Throws 400. */
function targetIn(line: string): JsonObject {
  const [upstream = "", model, weight, ...more] = line.split(/\s+/);
  const isNumber = weight === undefined || /^\d+(\.\d+)?$/.test(weight);
  if (more.length > 0 || !isNumber) {
    throw badRequest("targets", `‘${line}’ is not a target such as ‘main gpt-4o 3’.`);
  }
  return {
    upstream,
    ...(model === undefined || model === "=" ? {} : { model }),
    ...(weight === undefined ? {} : { weight: Number(weight) }),
  };
}

function RouteFields({ values }: Parameters<NamedSetting["Fields"]>[0]) {
  return (
    <>
      <FormSection title="Targets" says="Models of upstreams that can answer a request.">
        <Lines
          name="targets"
          label="Targets"
          value={values("targets")}
          hint="One per line: upstream, its model, weight, such as “main gpt-4o 3”. “=” is the model of the request."
        />
      </FormSection>
      <FormSection title="Order" says="Which target is asked first.">
        {strategies.map(([name, label]) => (
          <FormCheckbox
            type="radio"
            name="strategy"
            value={name}
            label={label}
            on={values("strategy") === name}
          />
        ))}
        <FormCheckbox
          name="sticky"
          label="By weight, a conversation stays with its target"
          on={values("sticky") !== ""}
        />
      </FormSection>
    </>
  );
}
