import type { Deps } from "../../deps.ts";
import { emptyWrite } from "../../store/kv.ts";
import type { Remover, Round } from "../../store/removal.ts";
import { listEnded, listForms, removeOtherSessions } from "../store.ts";

const sessionsPerPage = 25;
const formsPerPage = 100;

/** Creates the removal of sessions that have ended, with the forms that were sent in them. */
export function createSessionRemover(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): Remover {
  interface Ended {
    hash: string;
    endsAt: number;
  }

  /** Removes a session with its last forms, or else some forms: it is then found again. */
  async function removeSome({ hash, endsAt }: Ended): Promise<void> {
    const forms = await listForms(kv, hash, formsPerPage);
    const write = emptyWrite();
    if (forms.length === formsPerPage) write.deletes.push(...forms);
    else removeOtherSessions(write, { hash, endsAt, forms });
    await committer.commit(write);
  }

  async function removePage(round: Round): Promise<Ended[]> {
    const ended = await listEnded(kv, { now: round.now, limit: sessionsPerPage });
    await Promise.all(ended.map(removeSome));
    round.removed("console_session", ended.length);
    return ended;
  }

  async function removeAll(round: Round): Promise<void> {
    let endedAt = round.now;
    for (;;) {
      const page = await round.turn(() => removePage(round));
      if (page === null) return round.left("console_session", endedAt);
      if (page.length === 0) return;
      endedAt = page.at(-1)?.endsAt ?? endedAt;
    }
  }

  return {
    begin(round) {
      if (round.owns(0)) round.add(() => removeAll(round));
    },
  };
}
