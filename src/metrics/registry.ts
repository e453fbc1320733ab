/** A number that only grows. */
export class MetricCounter {
  value = 0;

  add(count = 1): void {
    this.value += count;
  }
}

/** The distribution of values over buckets. */
export class MetricHistogram {
  sum = 0;
  /** The number of values in each bucket; the last counts those above all bounds. */
  readonly counts: number[];
  readonly bounds: readonly number[];

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = [...bounds, Infinity].map(() => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (value > (this.bounds[at] ?? Infinity)) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
  }

  /** Observes milliseconds in a histogram of seconds. */
  observeMs(ms: number): void {
    this.observe(ms / 1000);
  }
}

/** Label values by name. Each must come from a list known beforehand. */
type MetricLabels = Record<string, string>;

interface FamilyOptions {
  name: string;
  help: string;
  labels?: readonly string[];
}

/** One metric of the page: its lines are written when the page is read. */
interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples(): Promise<string[]> | string[];
}

/**
 * All metrics, and the text that Prometheus reads. Requests only touch plain numbers, which cost
 * some nanoseconds; the text is written when it is read.
 */
export class MetricsRegistry {
  readonly #families: Family[] = [];
  readonly contentType = "text/plain; version=0.0.4; charset=utf-8";

  /** The text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
  async text(): Promise<string> {
    const texts = await Promise.all(this.#families.map(async ({ name, help, type, samples }) => {
      const head = [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`];
      return [...head, ...await samples(), ""].join("\n");
    }));
    return texts.join("\n");
  }

  /** Declares a family of counters; returns a function that creates one for given labels. */
  counters({ name, help }: FamilyOptions): (labels: MetricLabels) => MetricCounter {
    const cells: { labels: string; counter: MetricCounter }[] = [];
    const samples = () => cells.map(({ labels, counter }) => sample(name, labels, counter.value));
    this.#families.push({ name, help, type: "counter", samples });
    return (labels) => {
      const counter = new MetricCounter();
      cells.push({ labels: labelText(labels), counter });
      return counter;
    };
  }

  /** Creates one counter for each value of the family's only label. */
  countersBy<V extends string>(
    { name, help, label, values }: {
      name: string;
      help: string;
      label: string;
      values: readonly V[];
    },
  ): Record<V, MetricCounter> {
    const family = this.counters({ name, help, labels: [label] });
    return forEachName(values, (value) => family({ [label]: value }));
  }

  /** Creates one counter for each pair of values of the family's two labels. */
  countersByTwo<V extends string, W extends string>(
    { name, help, labels: [outer, inner], values, innerValues }: {
      name: string;
      help: string;
      labels: readonly [string, string];
      values: readonly V[];
      innerValues: readonly W[];
    },
  ): Record<V, Record<W, MetricCounter>> {
    const family = this.counters({ name, help, labels: [outer, inner] });
    return forEachName(
      values,
      (one) => forEachName(innerValues, (other) => family({ [outer]: one, [inner]: other })),
    );
  }

  /**
   * Declares a family of histograms; returns a function that creates one for given labels. A
   * histogram without values is not shown.
   */
  histograms(
    { name, help, bounds }: FamilyOptions & { bounds: readonly number[] },
  ): (labels: MetricLabels) => MetricHistogram {
    const cells: { labels: MetricLabels; histogram: MetricHistogram }[] = [];
    const samples = () =>
      cells.flatMap(({ labels, histogram }) => histogramSamples(name, labels, histogram));
    this.#families.push({ name, help, type: "histogram", samples });
    return (labels) => {
      const histogram = new MetricHistogram(bounds);
      cells.push({ labels, histogram });
      return histogram;
    };
  }

  /** Declares a number that is read when the page is. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void {
    const samples = async () => [sample(name, "", await read())];
    this.#families.push({ name, help, type: "gauge", samples });
  }

  /** Declares a number for each value of a label, which are read when the page is. */
  gaugesBy<V extends string>(
    { name, help, label, values, read }: {
      name: string;
      help: string;
      label: string;
      values: readonly V[];
      read: (value: V) => number;
    },
  ): void {
    const samples = () =>
      values.map((value) => sample(name, labelText({ [label]: value }), read(value)));
    this.#families.push({ name, help, type: "gauge", samples });
  }

  /** Declares a counter that is kept elsewhere, and read when the page is. */
  total(name: string, help: string, read: () => number): void {
    const samples = () => [sample(name, "", read())];
    this.#families.push({ name, help, type: "counter", samples });
  }

  /** Declares constant facts, as the labels of a 1. */
  facts(name: string, help: string, labels: MetricLabels): void {
    const samples = () => [sample(name, labelText(labels), 1)];
    this.#families.push({ name, help, type: "gauge", samples });
  }
}

/** An object with a value for each name. */
export function forEachName<V extends string, T>(
  names: readonly V[],
  make: (name: V) => T,
): Record<V, T> {
  const made = Object.fromEntries(names.map((name) => [name, make(name)]));
  if (hasAll(made, names)) return made;
  throw new Error("a value is missing");
}

function hasAll<V extends string, T>(
  made: Record<string, T>,
  names: readonly V[],
): made is Record<V, T> {
  return names.every((name) => name in made);
}

function histogramSamples(
  name: string,
  labels: MetricLabels,
  { sum, counts, bounds }: MetricHistogram,
): string[] {
  let count = 0;
  const buckets = counts.map((own, at) => {
    count += own;
    const le = numberText(bounds[at] ?? Infinity);
    return sample(`${name}_bucket`, labelText({ ...labels, le }), count);
  });
  if (count === 0) return [];
  const text = labelText(labels);
  return [...buckets, sample(`${name}_sum`, text, sum), sample(`${name}_count`, text, count)];
}

function sample(name: string, labels: string, value: number): string {
  return `${name}${labels} ${numberText(value)}`;
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

function labelText(labels: MetricLabels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
