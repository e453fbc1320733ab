/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../../base/handler.ts";
import type { RunningCallView, RunningOfProject } from "../../inference/running.ts";
import type { ConsoleGuard } from "../guard.tsx";
import { ExactMoney, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";

const shownMax = 100;

/** The calls that are running now. */
export function livePage(guard: ConsoleGuard, { running, deps }: ConsoleDeps): Handler {
  return guard.project(async ({ project, here, page }) => {
    const { shown, here: own, elsewhere, models } = await running.ofProject(project.id, shownMax);
    const count = own + elsewhere;
    const now = deps.clock.now();
    const about = { currency: project.currency, now, users: here("/users") };
    return page(
      "Live",
      <>
        <div id="live" class="card" data-refresh="2">
          <p role="status">
            {count === 1 ? "1 response is" : `${count} responses are`} running.
            {elsewhere > 0
              ? ` ${elsewhere} of them in other processes, of which only the number is known here.`
              : null}
            {own > shown.length ? ` The ${shown.length} longest-running ones are shown.` : null}
          </p>
          {elsewhere > 0 ? <Models models={models} /> : null}
          <Answers answers={shown} isAll={elsewhere === 0} {...about} />
        </div>
        <p class="muted">Updates every two seconds. Without JavaScript, reload the page.</p>
      </>,
      { section: "/live" },
    );
  });
}

/** How many run of each model, in all processes. */
function Models({ models }: { models: RunningOfProject["models"] }) {
  return (
    <Table
      caption="In all processes"
      columns={["Model", { title: "Responses", number: true }]}
      rows={models.map(([model, count]) => [model, count])}
      empty={null}
    />
  );
}

function Answers({ answers, isAll, currency, now, users }: {
  answers: RunningCallView[];
  /** Whether no other process has any. */
  isAll: boolean;
  currency: string;
  now: number;
  users: string;
}) {
  return (
    <Table
      caption={isAll ? "Longest running first" : "In this process, longest running first"}
      columns={[
        "Model",
        "User",
        "Since",
        { title: "Seconds", number: true },
        { title: "Input", number: true },
        { title: "Output", number: true },
        { title: "Cost so far", number: true },
      ]}
      rows={answers.map(({ model, user, startedAt, used }) => [
        model,
        <a href={`${users}/one?user=${encodeURIComponent(user)}`}>
          <bdi>{user}</bdi>
        </a>,
        <TimeCell at={startedAt} />,
        Math.floor((now - startedAt) / 1000),
        used.input.toLocaleString("en-US"),
        used.output.toLocaleString("en-US"),
        <ExactMoney amount={used.cost} currency={currency} />,
      ])}
      empty={isAll ? "Nothing is running." : "Nothing is running in this process."}
    />
  );
}
