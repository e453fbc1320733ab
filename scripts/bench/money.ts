import { inTurn } from "./chat.ts";
import { turnSeconds } from "./paid.ts";
import { type Figure, show } from "./figures.ts";
import { type Load, startProcess } from "./processes.ts";
import { makeFolder, startService } from "./service.ts";

/** Measures deposits and charges, each with an idempotency key. */
export async function benchMoney(): Promise<Figure[]> {
  using folder = makeFolder();
  await using service = await startService({ LOG_LEVEL: "info" }, folder.path);
  await using reader = await startProcess("reader.ts");
  const to = (path: string, kind: Load["kind"], users: number): Load => ({
    port: Number(new URL(service.url).port),
    path,
    headers: { authorization: `Bearer ${service.key}` },
    kind,
    users,
    connections: 64,
    seconds: turnSeconds,
  });
  const deposit = "/v1/user/balance/deposit";
  const loads = {
    "deposits, 500 users": to(deposit, "deposit", 500),
    "deposits, one user": to(deposit, "deposit", 1),
    "charges, 500 users": to("/v1/user/charge", "charge", 500),
    "retries of deposits, 500 users": to(deposit, "retry", 500),
    "a server that only reads them": { ...to(deposit, "deposit", 500), port: reader.port },
  };
  const measured = await inTurn(Object.values(loads));
  const figures: Figure[] = Object.keys(loads).map((name, at) => {
    const value = measured[at]?.perSecond ?? NaN;
    const barred = /^(deposits|charges)/.test(name);
    const bar = barred ? { bar: "at least 10,000", ok: value >= 10_000 } : {};
    return { name, value, unit: "/s", ...bar };
  });
  const retry = measured[3]?.ofFirst ?? NaN;
  figures.push({
    name: "a retry against a first, in speed",
    value: retry,
    unit: "",
    bar: "at least 1",
    ok: retry >= 1,
  });
  figures.forEach(show);
  return figures;
}
