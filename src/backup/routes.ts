import { ApiError } from "../base/errors.ts";
import type { Config } from "../config/config.ts";
import type { Deps, Snapshot } from "../deps.ts";
import type { AdminGuard } from "../projects/admin_guard.ts";
import { byOperator, recordAction } from "../projects/audit.ts";
import { sealBytes } from "./seal.ts";
import { sealedStream } from "./stream.ts";

/** `GET /v1/admin/backup`: the whole database at one moment, taken while the service runs. */
export function backupRoutes({ deps, adminGuard }: { deps: Deps; adminGuard: AdminGuard }) {
  const { clock, config, log, takeSnapshot } = deps;
  let isRunning = false;

  async function snapshot(): Promise<Snapshot> {
    if (!takeSnapshot) throw notHere(config);
    if (isRunning) throw alreadyRunning();
    isRunning = true;
    try {
      return await takeSnapshot();
    } catch (error) {
      isRunning = false;
      throw noCopy(error);
    }
  }

  return {
    backup: adminGuard(async ({ requestId, address }) => {
      const taken = await snapshot();
      const detail = { bytes: taken.bytes };
      const by = byOperator("api", address());
      await recordAction(deps, null, { by, action: "backup.created", target: "all", detail })
        .catch((error) => {
          isRunning = false;
          taken.stream.cancel(error).catch(() => {});
          throw error;
        });
      const body = sealedStream(taken, deps, (sent, error) => {
        isRunning = false;
        const fields = { requestId, bytes: taken.bytes, sent };
        if (error === undefined) log("info", "backup_sent", fields);
        else log("warn", "backup_cut", { ...fields, error: String(error) });
      });
      const name = `farebox-${new Date(clock.now()).toISOString().replace(/[:.]/g, "-")}.backup`;
      return new Response(body, {
        headers: {
          "content-type": "application/octet-stream",
          "content-length": String(taken.bytes + sealBytes),
          "content-disposition": `attachment; filename="${name}"`,
          "cache-control": "no-store",
          "x-request-id": requestId,
        },
      });
    }),
  };
}

function notHere({ kvPath }: Config): ApiError {
  const message = kvPath === ":memory:"
    ? "The database is only in memory. Set KV_PATH to a file to make backups possible."
    : "The database is on a separate server, which alone can copy it consistently. Use that " +
      "server's backups: for PostgreSQL its point-in-time recovery or 'pg_dump', for denokv its " +
      "point-in-time recovery or a copy of its SQLite file made with 'sqlite3 FILE \".backup " +
      "COPY\"', for Deno Deploy its own backups.";
  return new ApiError(400, { message, code: "backup_not_here" });
}

function alreadyRunning(): ApiError {
  return new ApiError(429, {
    message: "A backup is already under way. Try again when it has ended.",
    type: "rate_limit_error",
    code: "backup_running",
    headers: { "retry-after": "10" },
  });
}

function noCopy(cause: unknown): ApiError {
  return new ApiError(503, {
    message:
      "The database could not be copied: it needs the same disk space again, beside the file. " +
      "See the service's log for details.",
    type: "service_unavailable_error",
    code: "backup_failed",
    cause,
  });
}
