// Probes a service until it is told to stop, in a thread of its own: the load generator would delay
// it. Posts the longest wait in milliseconds.
const scope = globalThis as unknown as Worker;

scope.onmessage = async ({ data: url }: MessageEvent<string>) => {
  let isOver = false;
  scope.onmessage = () => void (isOver = true);
  let worstMs = 0;
  while (!isOver) {
    const startedAt = performance.now();
    await (await fetch(url)).body?.cancel();
    worstMs = Math.max(worstMs, performance.now() - startedAt);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  scope.postMessage(worstMs);
};
