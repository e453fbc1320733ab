/** @jsxImportSource @hono/hono/jsx */
import { FormField, FormSelect, Hidden } from "../../pages/form_parts.tsx";
import { Tabs } from "../../pages/parts.tsx";
import type { ApiKey } from "../../projects/schema.ts";
import type { ProjectVisit } from "../guard.tsx";
import { nameOfKey } from "../developers/key_name.ts";
import { type Period, usualPeriods } from "../shown_period.ts";
import { TimeFields } from "../times.tsx";

/** What the overview is narrowed to: a model, an API key's id or a user. Empty: all. */
export interface OverviewFilter {
  model: string;
  key: string;
  user: string;
}

/** Reads the filter from the query. */
export function readOverviewFilter({ incoming: { query } }: ProjectVisit): OverviewFilter {
  const text = (name: string) => query(name)?.trim() ?? "";
  return { model: text("model"), key: text("key"), user: text("user") };
}

/** The usual periods, and a form for other dates, one model, one key or one user. */
export function OverviewFilters({ visit, period, keys, filter }: {
  visit: ProjectVisit;
  period: Period;
  keys: readonly ApiKey[];
  filter: OverviewFilter;
}) {
  const { here, incoming } = visit;
  const { model, key } = filter;
  const kept = new URLSearchParams({ ...(model ? { model } : {}), ...(key ? { key } : {}) });
  const tabs = usualPeriods.map(({ days, title }) => ({
    title,
    href: here(`?days=${days}${kept.size > 0 ? `&${kept}` : ""}`),
    shown: period.days === days,
  }));
  return (
    <>
      <Tabs label="Time" tabs={tabs} />
      <details class="range" open={period.days === null || kept.size > 0}>
        <summary>Filter</summary>
        <form method="get" action={here("")} class="filters">
          {period.days === null ? null : <Hidden fields={{ days: String(period.days) }} />}
          <TimeFields query={incoming.query} />
          <FormField name="model" label="Model" value={model} />
          <FormSelect
            name="key"
            label="Key"
            value={key}
            options={[["", "All"], ...keys.map((each) => [each.id, nameOfKey(each)] as const)]}
          />
          <FormField name="user" label="User" />
          <button type="submit">Show</button>
          {period.days === null || kept.size > 0
            ? <a class="button plain" href={here("")}>Clear</a>
            : null}
        </form>
      </details>
    </>
  );
}
