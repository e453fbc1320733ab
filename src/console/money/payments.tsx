/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../../base/errors.ts";
import { fromDecimal } from "../../base/money.ts";
import { listProjectActivities, type ProjectActivity } from "../../ledger/project_activities.ts";
import { stripeWebhookUrl } from "../../payments/connect_stripe.ts";
import { checkoutKindOf, topUpWayOf } from "../../payments/merchant.ts";
import { isReachedByStripe, takesTestMoney } from "../../payments/test_mode.ts";
import { merchantIdOf, unbookedOfProject } from "../../payments/unbooked.ts";
import { readUnverified } from "../../payments/unverified.ts";
import type { Project } from "../../projects/schema.ts";
import { FormError, FormField } from "../../pages/form_parts.tsx";
import { Badge, Card, CodeBlock, MoneyCell, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { orShowFormAgain, submittedText } from "../submitted_fields.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { UnbookedPayments } from "./unbooked.tsx";
import { UnverifiedNote } from "./unverified.tsx";
import { UserLink } from "../users/user_link.tsx";

const section = "/payments";
const depositsShown = 10;
const labels = { secretKey: "Stripe secret key", "stripe.secretKey": "Stripe secret key" };

const states = {
  "own page": <Badge tone="good">Your own page</Badge>,
  test: <Badge tone="late">Stripe is connected, in test mode</Badge>,
  stripe: <Badge tone="good">Stripe is connected</Badge>,
  own: <Badge tone="good">Your own checkout</Badge>,
  sandbox: <Badge tone="late">Development: payments are not real</Badge>,
  none: <Badge tone="bad">Users cannot pay</Badge>,
};

/** Where a project's users pay, and connecting Stripe by its key alone. */
export function paymentPages(guard: ConsoleGuard, services: ConsoleDeps) {
  const { deps, connectStripe } = services;
  async function page(visit: ProjectVisit, problem: string | null): Promise<Response> {
    const { project } = visit;
    const query = { limit: depositsShown, kind: "deposit", from: null, to: null };
    const [{ activities }, unbooked, unverified] = await Promise.all([
      listProjectActivities(deps.kv, project, query),
      unbookedOfProject(deps.kv, project),
      readUnverified(deps.kv, merchantIdOf(project)),
    ]);
    return visit.page(
      "Payments",
      <>
        <UnbookedPayments payments={unbooked} />
        <UnverifiedNote events={unverified} now={deps.clock.now()} />
        <Payments
          visit={visit}
          way={topUpWayOf(deps.config, project)}
          isUnreached={checkoutKindOf(deps.config, project) === "stripe" &&
            !isReachedByStripe(deps.config)}
          webhookUrl={stripeWebhookUrl(deps.config, project.id)}
          problem={problem}
        />
        <Deposits visit={visit} deposits={activities} />
      </>,
      { section, problem, note: "How users pay, and what they paid." },
    );
  }

  return {
    show: guard.project((visit) => page(visit, null)),
    connect: guard.project(async (visit) => {
      const { project, session, here, go } = visit;
      const form = await visit.form();
      return await orShowFormAgain(
        async () => {
          const secretKey = submittedText(form, "secretKey");
          if (secretKey === null) throw badRequest("secretKey", "Enter a secret key of Stripe.");
          await connectStripe(project, secretKey, session.by);
          const { project: now } = await services.projectCache.refresh(project.id);
          const isReal = isReachedByStripe(deps.config) && !await takesTestMoney(services, now);
          return go(here(section), isReal ? "stripe-connected" : "stripe-unready");
        },
        (problem) => page(visit, problem),
        labels,
      );
    }),
  };
}

/** What keeps payments from being real, while it is so. */
function UnrealNotes({ isTest, isUnreached }: { isTest: boolean; isUnreached: boolean }) {
  return (
    <>
      {isTest
        ? (
          <p class="notice">
            Stripe is in test mode: payments move no real money, and what they add to balances is
            spent at the upstream. Connect a live key before users pay.
          </p>
        )
        : null}
      {isUnreached
        ? (
          <p class="notice">
            Stripe cannot reach this server, so payments are not booked: set <code>BASE_URL</code>
            {" "}
            to its public https URL, and connect Stripe again.
          </p>
        )
        : null}
    </>
  );
}

function Payments({ visit, way, isUnreached, webhookUrl, problem }: {
  visit: ProjectVisit;
  way: ReturnType<typeof topUpWayOf>;
  /** Whether users pay at Stripe, which cannot report it to this server. */
  isUnreached: boolean;
  webhookUrl: string;
  problem: string | null;
}) {
  const { project, here, isTest } = visit;
  const { topUpUrl, topUp: { checkoutUrl } } = project;
  return (
    <>
      <UnrealNotes {...{ isTest, isUnreached }} />
      <Card title="Top-up page" actions={states[isTest && way === "stripe" ? "test" : way]}>
        <p>
          {topUpUrl !== null
            ? (
              <>
                Links lead to your own page: <code>{topUpUrl}</code>.
              </>
            )
            : checkoutUrl !== null
            ? (
              <>
                The top-up page leads to your own checkout: <code>{checkoutUrl}</code>.
              </>
            )
            : way === "none"
            ? "Users cannot pay yet. Connect Stripe, or set your own checkout."
            : "Links lead to the top-up page of this server."}{"  "}
          <a href={here("/settings")}>Change the addresses and the amounts</a>
        </p>
      </Card>
      {project.mode === "shared"
        ? (
          <p class="notice">
            Users pay into wallets, by this server’s own Stripe account: set{" "}
            <code>STRIPE_SECRET_KEY</code>.
          </p>
        )
        : <StripeCard project={project} {...{ here, webhookUrl, problem }} />}
    </>
  );
}

function Deposits({ visit, deposits }: {
  visit: ProjectVisit;
  deposits: readonly ProjectActivity[];
}) {
  const { here, project: { currency } } = visit;
  return (
    <Card title="Last deposits" note={<a href={here("/activity?kind=deposit")}>All</a>}>
      <Table
        caption="Payments, and deposits by you"
        columns={["Time", "User", { title: "Amount", number: true, lead: true }]}
        rows={deposits.map(({ entry: { createdAt, user, delta } }) => [
          <TimeCell at={createdAt} as="stamp" />,
          <UserLink visit={visit} user={user} />,
          <MoneyCell amount={fromDecimal(delta)} currency={currency} />,
        ])}
        empty="No deposits yet."
      />
    </Card>
  );
}

function StripeCard({ project, here, webhookUrl, problem }: {
  project: Project;
  here: ProjectVisit["here"];
  webhookUrl: string;
  problem: string | null;
}) {
  const isConnected = project.stripe !== null;
  const form = (
    <>
      <p>
        Enter the secret key. Farebox creates the webhook at Stripe itself. The key and the
        webhook’s signing secret are stored encrypted.
      </p>
      <FormError text={problem} />
      <form method="post" action={here(section)}>
        <FormField
          name="secretKey"
          label={labels.secretKey}
          type="password"
          hint="Begins with sk_ or rk_. A restricted key needs: write Checkout Sessions and Webhook Endpoints, read Events."
          required
        />
        <button type="submit" class="primary">
          {isConnected ? "Replace the key" : "Connect Stripe"}
        </button>
      </form>
      {webhookUrl.startsWith("https:") ? null : (
        <p class="notice">
          Stripe cannot reach this server: set <code>BASE_URL</code> to its public https URL.
        </p>
      )}
      <p class="muted">The webhook’s URL, which Farebox creates at Stripe:</p>
      <CodeBlock id="stripe-webhook" text={webhookUrl} />
    </>
  );
  if (!isConnected) return <Card title="Connect Stripe">{form}</Card>;
  return (
    <details class="card" open={problem !== null}>
      <summary>Replace the Stripe key</summary>
      {form}
    </details>
  );
}
