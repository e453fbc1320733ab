import type { OldSecret, Subscription } from "./schema.ts";

/** As many go on to sign beside the newest: each is one more signature in every delivery's header. */
const oldSecretsMax = 4;

/** Those that still sign. */
export function livingSecrets(secrets: readonly OldSecret[], now: number): OldSecret[] {
  return secrets.filter(({ endsAt }) => endsAt > now);
}

/** A subscription's old secrets once another takes the newest one's place: none outlives that. */
export function replacedSecrets(
  { secret, oldSecrets }: Pick<Subscription, "secret" | "oldSecrets">,
  { endsAt, now }: { endsAt: number; now: number },
): OldSecret[] {
  const older = livingSecrets(oldSecrets, now).slice(0, oldSecretsMax - 1);
  return [
    { secret, endsAt },
    ...older.map((old) => ({ ...old, endsAt: Math.min(old.endsAt, endsAt) })),
  ];
}
