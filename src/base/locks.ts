/** Locks by name: work under one name runs one after the other, in the order of the calls. */
interface Locks {
  run<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** How many calls wait for the one that runs. */
  waiting(name: string): number;
}

/** Creates locks that nobody holds. */
export function createLocks(): Locks {
  const queues = new Map<string, (() => void)[]>();
  return {
    async run(name, work) {
      const queue = queues.get(name);
      if (queue) await new Promise<void>((resolve) => void queue.push(resolve));
      else queues.set(name, []);
      try {
        return await work();
      } finally {
        const next = queues.get(name)?.shift();
        if (next) next();
        else queues.delete(name);
      }
    },
    waiting: (name) => queues.get(name)?.length ?? 0,
  };
}
