import assert from "node:assert/strict";
import { findPostgres } from "../support/postgres.ts";
import { restartAll } from "../support/rolling_restart.ts";
import { findCommand, testWith } from "../support/toolchains.ts";

const nginx = await findCommand("nginx", "/usr/sbin");
const both = findPostgres() === null ? { missing: "there is no PostgreSQL" } : nginx;

testWith(
  both,
  "guides: three processes behind nginx are replaced as the guide says, and no call is lost",
  async (path) => {
    const { answered, lost } = await restartAll(path, { calls: 1_000 });
    assert.deepEqual(lost, {});
    assert.ok(answered >= 1_000, `${answered} calls were answered`);
  },
);
