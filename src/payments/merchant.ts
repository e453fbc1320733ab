import { badRequest, notFound } from "../base/errors.ts";
import { Secret } from "../base/secret.ts";
import type { Config } from "../config/config.ts";
import { checkId } from "../projects/admin_guard.ts";
import type { Project } from "../projects/schema.ts";
import { projectKey, projectsPrefix } from "../store/keys.ts";
import { openStripe, type StripeAccount } from "./stripe.ts";
import type { Deps } from "../deps.ts";
import type { MoneyRecorder } from "../ledger/record.ts";
import type { CommitWithEvents, EmitEvents } from "../projects/commit_with_events.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { ReportUnbooked } from "./unbooked.ts";
import type { UnverifiedReports } from "./unverified.ts";
import type { Secrets } from "../store/secrets.ts";

/** Who takes a payment: a project, or this server for wallets. */
export interface Merchant {
  /** The project's id, or `instance`: names its payments in the store. */
  id: string;
  account: StripeAccount;
}

/** Stripe, the project's own checkout, the one of development, or none. */
export type CheckoutKind = "stripe" | "own" | "sandbox" | "none";

/** Returns where a project's users pay. */
export function checkoutKindOf(
  { dev, stripe: own }: Pick<Config, "dev" | "stripe">,
  { stripe, topUp, status, mode }: Project,
): CheckoutKind {
  if (status !== "active") return "none";
  if (mode === "shared" ? own : stripe) return "stripe";
  if (topUp.checkoutUrl !== null) return "own";
  return dev ? "sandbox" : "none";
}

/** Where the links in messages lead: the project's own top-up page, or what the hosted one has. */
export function topUpWayOf(
  config: Pick<Config, "dev" | "stripe">,
  project: Project,
): "own page" | CheckoutKind {
  if (project.status !== "active") return "none";
  return project.topUpUrl === null ? checkoutKindOf(config, project) : "own page";
}

/** How many projects are looked at: the warning is for operators who have just begun. */
const lookedAtMax = 200;

/** Finds active projects whose users cannot pay: no Stripe, no page or checkout of their own. */
export async function findUnpayable(
  { kv, config }: Pick<Deps, "kv" | "config">,
  projectCache: ProjectCache,
): Promise<Project[]> {
  const rows = await kv.list({ prefix: projectsPrefix, limit: lookedAtMax });
  const found = await Promise.all(rows.map(({ key }) => projectCache.current(String(key.at(-1)))));
  return found.flatMap(({ project }) =>
    project.status === "active" && topUpWayOf(config, project) === "none" ? [project] : []
  );
}

/** Returns who takes the payments of a project's users. Throws 400 where no one does. */
export async function merchantOf(
  { deps, secrets }: Pick<PaymentDeps, "deps" | "secrets">,
  { id, mode, stripe }: Project,
): Promise<Merchant> {
  if (mode === "shared") return await instanceMerchant(deps);
  if (!stripe) throw badRequest(null, "This app has no checkout.");
  const place = projectKey(id);
  const keys = {
    secretKey: new Secret(await secrets.open(stripe.secretKey, place)),
    webhookSecret: new Secret(await secrets.open(stripe.webhookSecret, place)),
  };
  return { id, account: await openStripe(deps, keys) };
}

/** Returns this server as the merchant. Throws 400 where it has no Stripe account. */
export async function instanceMerchant(deps: PaymentDeps["deps"]): Promise<Merchant> {
  const { stripe } = deps.config;
  if (!stripe) throw badRequest(null, "This server has no Stripe account.");
  return { id: "instance", account: await openStripe(deps, stripe) };
}

/** Returns the project in a path, or this server where the path names none. Throws 404. */
export async function merchantOfPath(
  services: Pick<PaymentDeps, "deps" | "projectCache" | "secrets">,
  projectId: string,
): Promise<Merchant> {
  if (projectId === "") {
    if (!services.deps.config.stripe) throw notFound("Stripe account of this server");
    return await instanceMerchant(services.deps);
  }
  const { project } = await services.projectCache.current(checkId(projectId, "project"));
  if (!project.stripe) throw notFound("Stripe account of this project");
  return await merchantOf(services, project);
}

/** The services that Stripe checkouts and Stripe's webhooks depend on. */
export interface PaymentDeps {
  deps: Deps;
  projectCache: ProjectCache;
  recorder: MoneyRecorder;
  secrets: Secrets;
  emit: EmitEvents;
  commit: CommitWithEvents;
  reportUnbooked: ReportUnbooked;
  unverified: UnverifiedReports;
}
