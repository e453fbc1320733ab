/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { type Json, type JsonObject, ownMember } from "../../base/json.ts";
import { providers, upstreamFormats } from "../../projects/providers.ts";
import type { Project } from "../../projects/schema.ts";
import { isSameHost } from "../../projects/seal_settings.ts";
import type { UpstreamSettings } from "../../projects/upstream_schema.ts";
import { integerText, submittedText } from "../submitted_fields.ts";
import { FormCheckbox, FormField, FormSection, FormSelect } from "../../pages/form_parts.tsx";
import { type FormValues, Lines, type NamedSetting } from "./named_form.tsx";
import { routesTo, upstreamsSection } from "./upstreams.tsx";

const timeouts = [
  ["connectMs", "Connect within, ms"],
  ["firstByteMs", "First byte within, ms"],
  ["totalMs", "Whole response within, ms"],
] as const;

/** The form for one upstream. */
export const upstreamForm: NamedSetting = {
  setting: "upstreams",
  what: "an upstream",
  section: upstreamsSection,
  path: `${upstreamsSection}/one`,
  field: {
    name: "name",
    label: "Name",
    hint: "By which routes and headers name it: a-z, 0-9, _ and -.",
  },
  valuesOf,
  read: readUpstream,
  saved: ({ before, after, name }) => {
    if (losesKey(settingsOf(before, name), settingsOf(after, name))) return "upstream-key-removed";
    return routesTo(after, name).length > 0 ? "saved" : "upstream-unused";
  },
  Fields: ({ project, known, values }) => (
    <UpstreamFields stored={settingsOf(project, known)} values={values} />
  ),
};

function settingsOf({ upstreams }: Project, known: string | null): UpstreamSettings | null {
  return known === null ? null : ownMember(upstreams, known) ?? null;
}

function valuesOf(project: Project, known: string | null): FormValues {
  return upstreamValues(settingsOf(project, known));
}

/** Whether an upstream has lost its key because it has moved to another host. */
export function losesKey(before: UpstreamSettings | null, after: UpstreamSettings | null): boolean {
  if (!before?.apiKey || !after || after.apiKey) return false;
  return !isSameHost(before, after);
}

/** What the fields of an upstream show; with null, of a new one. */
export function upstreamValues(settings: UpstreamSettings | null): FormValues {
  if (!settings) return () => "";
  const { url = "", provider = "", apiVersion = "", models, headers = {}, formats } = settings;
  const values: Record<string, string> = {
    ...{ url, provider, apiVersion },
    onAbort: settings.onAbort ?? "",
    models: models === "upstream" ? "upstream" : (models ?? []).join("\n"),
    headers: Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join("\n"),
    ...Object.fromEntries((formats ?? []).map((format) => [format, "on"])),
    ...Object.fromEntries(
      timeouts.map(([name]) => [name, String(settings.timeouts?.[name] ?? "")]),
    ),
  };
  return (name) => values[name] ?? "";
}

/** The settings as a merge patch has them: null for what is empty. Throws 400. */
export function readUpstream(form: URLSearchParams): JsonObject {
  const text = (name: string) => submittedText(form, name);
  const models = text("models");
  const formats = upstreamFormats.filter((format) => form.has(format));
  const key = text("apiKey");
  const within: Record<string, Json> = Object.fromEntries(
    timeouts.map(([name, label]) => [name, integerText(form, name, label)]),
  );
  const hasTimeouts = Object.values(within).some((value) => value !== null);
  const headers = headersIn(text("headers") ?? "");
  return {
    url: text("url"),
    provider: text("provider"),
    apiVersion: text("apiVersion"),
    onAbort: text("onAbort"),
    models: models === null || models === "upstream" ? models : models.split(/[\s,]+/),
    formats: formats.length > 0 ? [...formats] : null,
    headers: Object.keys(headers).length > 0 ? headers : null,
    timeouts: hasTimeouts ? within : null,
    ...(form.has("removeKey") ? { apiKey: null } : key === null ? {} : { apiKey: key }),
  };
}

/** Throws 400 for a line that is no header. */
function headersIn(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const colon = line.indexOf(":");
    if (colon < 1) throw badRequest("headers", `‘${line}’ is not a header such as ‘Name: value’.`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  }));
}

/** The fields of an upstream; the usual one serves all models, and is not asked which. */
export function UpstreamFields({ stored, values, isUsual = false }: {
  stored: UpstreamSettings | null;
  values: FormValues;
  isUsual?: boolean;
}) {
  const hasKey = Boolean(stored?.apiKey);
  return (
    <>
      <FormSection
        title="Upstream"
        says="A provider, or any server that speaks one of the formats."
      >
        <Provider value={values("provider")} />
        <FormField
          name="url"
          label="URL"
          type="url"
          value={values("url")}
          hint="Empty for the provider’s own."
        />
        <FormField
          name="apiKey"
          label="API key"
          type="password"
          hint={hasKey
            ? "Empty to keep the stored key. It is removed when the URL moves to another host."
            : "Stored encrypted, and never shown."}
        />
        {hasKey ? <FormCheckbox name="removeKey" label="Remove the stored key" on={false} /> : null}
      </FormSection>
      <Details values={values} isUsual={isUsual} />
    </>
  );
}

function Provider({ value }: { value: string }) {
  const names = Object.keys(providers);
  const isOther = value !== "" && !names.includes(value);
  return (
    <div class="field">
      <label for="provider">Provider</label>
      <select id="provider" name="provider">
        <option value="">Another one, by its URL</option>
        {[...names, ...(isOther ? [value] : [])].map((name) => (
          <option value={name} selected={name === value}>{name}</option>
        ))}
      </select>
    </div>
  );
}

function Details({ values, isUsual }: { values: FormValues; isUsual: boolean }) {
  return (
    <>
      <FormSection title="Formats" says="None: the provider’s. Requests in others are translated.">
        {upstreamFormats.map((format) => (
          <FormCheckbox name={format} label={format} on={values(format) !== ""} />
        ))}
      </FormSection>
      <FormSection title="Timeouts" says="In milliseconds. Empty: those of the instance.">
        <div class="fields">
          {timeouts.map(([name, label]) => (
            <FormField
              name={name}
              label={label}
              value={values(name)}
              more={{ inputmode: "numeric" }}
            />
          ))}
        </div>
      </FormSection>
      <FormSection title="More" says="Optional.">
        {isUsual ? null : (
          <Lines
            name="models"
            label="Models"
            value={values("models")}
            hint="One per line. gpt-* allows all that begin with gpt-. “upstream”: those that it lists. Empty: any."
          />
        )}
        <FormSelect
          name="onAbort"
          label="When a caller disconnects"
          value={values("onAbort")}
          options={[
            ["", "As usual"],
            ["estimate", "End the stream, and estimate what it cost"],
            ["drain", "Read the stream to its end"],
          ]}
        />
        <Lines
          name="headers"
          label="Headers"
          value={values("headers")}
          hint="One per line, as “Name: value”. They are shown here: not for secrets."
        />
        <FormField
          name="apiVersion"
          label="API version"
          value={values("apiVersion")}
          hint="Azure’s dated API only."
        />
      </FormSection>
    </>
  );
}
