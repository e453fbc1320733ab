/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../../base/handler.ts";
import type { RunningCallView } from "../../inference/running.ts";
import type { ConsoleGuard } from "../guard.tsx";
import { ExactMoney, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";

const shownMax = 100;

/** The calls that are running now. */
export function livePage(guard: ConsoleGuard, { running, deps }: ConsoleDeps): Handler {
  return guard.project(async ({ project, here, page }) => {
    const { shown, count } = await running.ofProject(project.id, shownMax);
    const now = deps.clock.now();
    const about = { currency: project.currency, now, users: here("/users") };
    return page(
      "Live",
      <>
        <div id="live" class="card" data-refresh="2">
          <p role="status">
            {count === 1 ? "1 response is" : `${count} responses are`} running.
            {count > shown.length ? ` The ${shown.length} longest-running ones are shown.` : null}
          </p>
          <Answers answers={shown} {...about} />
        </div>
        <p class="muted">Updates every two seconds. Without JavaScript, reload the page.</p>
      </>,
      { section: "/live" },
    );
  });
}

function Answers({ answers, currency, now, users }: {
  answers: RunningCallView[];
  currency: string;
  now: number;
  users: string;
}) {
  return (
    <Table
      caption="Longest running first"
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
      empty="Nothing is running."
    />
  );
}
