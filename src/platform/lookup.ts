import type { LookupAnswer, LookupQuestion } from "./lookup_messages.ts";

/**
 * Looks names up as the system does, including its hosts file, on the threads of a worker. A lookup
 * that hangs holds a thread, and cannot be canceled: on the threads of this process, files and
 * encryption would wait for it. The worker starts with the first name.
 */
export function createLookup(): (host: string) => Promise<string[]> {
  const waiting = new Map<number, PromiseWithResolvers<string[]>>();
  let worker: Worker | null = null;
  let asked = 0;

  function start(): Worker {
    const url = new URL("./lookup_worker.ts", import.meta.url);
    const started = new Worker(url, { type: "module" });
    started.onmessage = ({ data }: MessageEvent<LookupAnswer>) => {
      const question = waiting.get(data.id);
      waiting.delete(data.id);
      if ("addresses" in data) question?.resolve(data.addresses);
      else question?.reject(new Error(data.message));
    };
    started.onerror = (event) => {
      event.preventDefault();
      if (worker === started) worker = null;
      for (const { reject } of waiting.values()) reject(new Error(event.message));
      waiting.clear();
    };
    return started;
  }

  return (host) => {
    worker ??= start();
    const id = ++asked;
    const question = Promise.withResolvers<string[]>();
    waiting.set(id, question);
    worker.postMessage({ id, host } satisfies LookupQuestion);
    return question.promise;
  };
}
