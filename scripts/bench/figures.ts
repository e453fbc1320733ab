/** One measured figure, as it is printed and written as JSON. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** The bar it should meet, if any. */
  bar?: string;
  ok?: boolean;
}

/** Returns the value below which that share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Returns the middle value. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** Prints figures as they are measured. */
export function show({ name, value, unit, bar, ok }: Figure): void {
  const shown = value >= 100 ? Math.round(value).toString() : value.toPrecision(3);
  const verdict = bar ? `  (bar ${bar}: ${ok ? "met" : "MISSED"})` : "";
  console.log(`${name.padEnd(64)} ${shown.padStart(9)} ${unit}${verdict}`);
}

/** Describes the machine. */
export function describeMachine(): string {
  const cpu = /model name\s*:\s*(.*)/.exec(readProc("/proc/cpuinfo"))?.[1] ?? "unknown processor";
  const memory = Number(/MemTotal:\s+(\d+)/.exec(readProc("/proc/meminfo"))?.[1]) / 1024 / 1024;
  const cores = navigator.hardwareConcurrency;
  return `${cores} cores of ${cpu}, ${Math.round(memory)} GiB, Deno ${Deno.version.deno}`;
}

function readProc(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
