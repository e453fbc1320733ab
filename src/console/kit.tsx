/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { fromDecimal } from "../base/money.ts";
import { BarChart, Share } from "../pages/chart.tsx";
import { FormCheckbox, FormError, FormField, FormSelect } from "../pages/form_parts.tsx";
import { Icon, type IconName, iconNames } from "../pages/icons.tsx";
import {
  Badge,
  Card,
  CodeBlock,
  EmptyState,
  MoneyCell,
  Pager,
  Stats,
  Table,
  Tabs,
  TimeCell,
} from "../pages/parts.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import type { ConsoleGuard } from "./guard.tsx";

/** Every part that pages are made of, on one page; in development only. */
export function kitPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.signedIn(({ page, at }) => {
    if (!deps.config.dev) throw notFound("page");
    return page(
      "Parts of pages",
      <>
        <Messages />
        <Figures />
        <Lists href={at("/_kit")} />
        <Controls />
        <Charts />
        <Icons />
      </>,
      { note: "What pages are made of.", actions: <a class="button primary" href="#">Primary</a> },
    );
  });
}

function Messages() {
  return (
    <>
      <p class="flash">Saved.</p>
      <p class="alert">‘Amount’ must be greater than zero.</p>
      <p class="notice">Users cannot pay: no checkout is connected.</p>
    </>
  );
}

const currency = "usd";
const money = (amount: string) => <MoneyCell amount={fromDecimal(amount)} currency={currency} />;

function Figures() {
  return (
    <Stats
      figures={[
        { label: "Revenue", value: money("1204.5"), note: "▲ 12 % vs. before" },
        { label: "Small", value: money("0.0098") },
        { label: "Smaller", value: money("0.00001") },
        { label: "State", value: <Badge tone="good">active</Badge> },
        { label: "Last active", value: <TimeCell at={0} /> },
      ]}
    />
  );
}

function Lists({ href }: { href: string }) {
  return (
    <Card title="A table that stacks on a phone" note="With a note">
      <Tabs
        label="Tabs"
        tabs={["One", "Two"].map((title, at) => ({ title, href, shown: at === 0 }))}
      />
      <Table
        caption="Rows"
        columns={["User", "State", { title: "Tokens", number: true }, {
          title: "Balance",
          number: true,
          lead: true,
        }, "Share"]}
        rows={([["ada", "good"], ["bob", "late"], ["eve", "bad"]] as const).map((
          [name, tone],
          at,
        ) => [
          <a href={href}>{name}</a>,
          <Badge tone={tone}>{tone}</Badge>,
          1_200 * (at + 1),
          money(`${(at + 1) * 3.5}`),
          <Share part={(at + 1) / 3} />,
        ])}
        empty=""
      />
      <Pager older={href} newest={href} />
      <EmptyState icon="users" title="Nothing yet">
        <p>What appears here, and the next step.</p>
        <a class="button" href={href}>Next step</a>
      </EmptyState>
    </Card>
  );
}

function Controls() {
  return (
    <Card title="Controls">
      <FormError text="An error of the form." />
      <FormField name="text" label="Text" value="value" hint="A hint." />
      <FormSelect name="choice" label="Choice" value="a" options={[["a", "One"], ["b", "Two"]]} />
      <FormCheckbox name="check" label="A choice" on />
      <p class="actions">
        <button type="button" class="primary">Primary</button>
        <button type="button">Secondary</button>
        <button type="button" class="danger">Danger</button>
        <button type="button" class="plain">Plain</button>
        <button type="button" class="small">Small</button>
      </p>
      <CodeBlock id="kit-code" text="curl http://localhost:8000/healthz" />
    </Card>
  );
}

function Charts() {
  const bars = Array.from({ length: 12 }, (_, at) => ({
    label: `Step ${at + 1}`,
    tick: `${at + 1}`,
    values: [at % 5, (at * 3) % 4, at % 2],
    figures: [at % 5, (at * 3) % 4, at % 2],
  }));
  const chart = { says: "Twelve steps.", series: ["One", "Two", "Three"], bars, axis: String };
  return (
    <>
      <BarChart
        id="kit-wide"
        title="Wide, with the period before"
        {...chart}
        wide
        before={{ name: "Before", values: bars.map((_, at) => (at * 2) % 7) }}
      />
      <div class="charts">
        <BarChart id="kit-narrow" title="Narrow" {...chart} />
      </div>
    </>
  );
}

function Icons() {
  return (
    <Card title="Icons">
      <p class="actions">
        {iconNames.map((name: IconName) => (
          <span class="tag">
            <Icon name={name} /> {name}
          </span>
        ))}
      </p>
    </Card>
  );
}
