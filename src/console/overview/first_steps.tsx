/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { Card, CodeBlock } from "../../pages/parts.tsx";
import { topUpWayOf } from "../../payments/merchant.ts";
import { isReachedByStripe } from "../../payments/test_mode.ts";
import type { ApiKey } from "../../projects/schema.ts";
import type { Summary } from "../../summaries/summary.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import type { ProjectVisit } from "../guard.tsx";

/** A step of setting a project up. */
interface FirstStep {
  title: string;
  isDone: boolean;
  how: Child;
}

/** Returns the steps of setting a project up; null once requests have been served. */
export async function stepsOf(
  { deps, subscriptions, admin }: ConsoleDeps,
  visit: ProjectVisit,
  { totals, paywall }: Summary,
): Promise<FirstStep[] | null> {
  const { project, here } = visit;
  const isUsed = totals.calls > totals.failed + totals.canceled;
  const way = topUpWayOf(deps.config, project);
  const isReal = way !== "stripe" || (!visit.isTest && isReachedByStripe(deps.config));
  const hasWebhook = (await subscriptions.list(project.id, null)).length > 0;
  if (isUsed && way !== "none") return null;
  const hasPrices = project.pricing.catalogue || Object.keys(project.pricing.models).length > 0;
  const curl = firstRequest(deps.config.baseUrl, visit, await admin.keys(project.id));
  return [
    {
      title: "Set a price",
      isDone: hasPrices,
      how: (
        <p>
          Users pay by your prices. <a href={here("/pricing")}>Set prices</a>{" "}
          or take the catalogue’s with a markup.
        </p>
      ),
    },
    {
      title: "Send the first request",
      isDone: isUsed || paywall.saw > 0,
      how: <CodeBlock id="first-request" text={curl} />,
    },
    {
      title: "Connect payments",
      isDone: way !== "none" && isReal,
      how: (
        <p>
          {isReal
            ? "Without a checkout your users cannot top up."
            : "Stripe is connected, and takes no real payments yet."}{" "}
          <a href={here("/payments")}>
            Connect Stripe or your own checkout
          </a>.
        </p>
      ),
    },
    {
      title: "Add a webhook",
      isDone: hasWebhook,
      how: <WebhookStep href={here("/webhooks")} />,
    },
  ];
}

function WebhookStep({ href }: { href: string }) {
  return (
    <p>
      Your systems hear of each deposit, charge and refusal. <a href={href}>Add a webhook</a>.
    </p>
  );
}

/** A request to paste: with the key of development, or with the end of one that is known. */
function firstRequest(
  baseUrl: string,
  { project: { pricing }, session }: ProjectVisit,
  keys: readonly ApiKey[],
): string {
  const [model = "gpt-4o-mini"] = Object.keys(pricing.models).filter((name) => name !== "*");
  const key = keys.find(({ scopes, revokedAt }) => revokedAt === null && scopes.includes("chat"));
  const shownKey = session.by.actor.id === "dev" ? "sk_dev" : `sk_…${key?.suffix ?? ""}`;
  return [
    `curl ${baseUrl}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${shownKey}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '{"model":"${model}","user":"ada","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join("\n");
}

/** The steps of setting a project up, ticked as they are done. */
export function FirstSteps({ steps }: { steps: readonly FirstStep[] }) {
  const left = steps.filter(({ isDone }) => !isDone).length;
  return (
    <Card title="Get started" note={left === 0 ? "All done" : `${left} of ${steps.length} left`}>
      <ol class="steps">
        {steps.map(({ title, isDone, how }) => (
          <li class={isDone ? "done" : undefined}>
            <div>
              <h3>{title}</h3>
              {how}
            </div>
          </li>
        ))}
      </ol>
    </Card>
  );
}
