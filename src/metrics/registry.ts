import {
  Counter,
  Gauge,
  Histogram,
  type HistogramConfiguration,
  type MetricObjectWithValues,
  type MetricValueWithName,
  Registry,
} from "prom-client";

/** A number that only grows. */
export class MetricCounter {
  value = 0;

  add(count = 1): void {
    this.value += count;
  }
}

/** How values spread over buckets. */
export class MetricHistogram {
  sum = 0;
  /** By bucket, and last those above all bounds. */
  readonly counts: number[];
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = [...bounds, Infinity].map(() => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (value > (this.#bounds[at] ?? Infinity)) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
  }

  /** Observes milliseconds in a spread of seconds. */
  observeMs(ms: number): void {
    this.observe(ms / 1000);
  }
}

/** Values of labels, by their names. Each must come from a list that is known beforehand. */
export type MetricLabels = Record<string, string>;

interface Named {
  name: string;
  help: string;
  labels?: readonly string[];
}

/**
 * The page that Prometheus reads, and what may be written on it. What requests touch are plain
 * numbers made beforehand, gathered when the page is read: the library's own counter costs half a
 * microsecond at each step, and its histogram one.
 */
export class MetricsRegistry {
  readonly #registry = new Registry();

  /** The text, in Prometheus' format 0.0.4. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** A family of tallies: gives the one with these labels. */
  counters({ name, help, labels = [] }: Named): (labels: MetricLabels) => MetricCounter {
    const cells: { labels: MetricLabels; tally: MetricCounter }[] = [];
    new Counter({
      name,
      help,
      labelNames: labels,
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const { labels, tally } of cells) this.inc(labels, tally.value);
      },
    });
    return (labels) => {
      const tally = new MetricCounter();
      cells.push({ labels, tally });
      return tally;
    };
  }

  /** One tally for each value of the one label that the family has. */
  countersBy<V extends string>(
    { name, help, label, values }: {
      name: string;
      help: string;
      label: string;
      values: readonly V[];
    },
  ): Record<V, MetricCounter> {
    const family = this.counters({ name, help, labels: [label] });
    const made = Object.fromEntries(values.map((value) => [value, family({ [label]: value })]));
    if (hasAll(made, values)) return made;
    throw new Error(`${name} lacks a value`);
  }

  /** A family of spreads: gives the one with these labels. */
  histograms(
    { name, help, labels = [], bounds }: Named & { bounds: readonly number[] },
  ): (labels: MetricLabels) => MetricHistogram {
    const cells: Cell[] = [];
    const registers = [this.#registry];
    new Gathered({ name, help, labelNames: [...labels], buckets: [...bounds], registers }, cells);
    return (labels) => {
      const spread = new MetricHistogram(bounds);
      cells.push({ labels, spread });
      return spread;
    };
  }

  /** A number that is read when the page is. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      async collect() {
        this.set(await read());
      },
    });
  }

  /** A number that only grows, kept by someone else, and read when the page is. */
  total(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  /** What never changes, as labels of a 1. */
  facts(name: string, help: string, labels: MetricLabels): void {
    const registers = [this.#registry];
    new Gauge({ name, help, labelNames: Object.keys(labels), registers }).set(labels, 1);
  }
}

function hasAll<V extends string>(
  made: Record<string, MetricCounter>,
  values: readonly V[],
): made is Record<V, MetricCounter> {
  return values.every((value) => made[value]);
}

interface Cell {
  labels: MetricLabels;
  spread: MetricHistogram;
}

/**
 * A histogram whose numbers are kept in cells; of those that nothing was put in, it says nothing.
 */
class Gathered extends Histogram {
  readonly #cells: readonly Cell[];
  readonly #config: HistogramConfiguration<string>;
  /** Says what a histogram says of itself; its own numbers are never used. */
  readonly #bare: Histogram;

  constructor(config: HistogramConfiguration<string>, cells: readonly Cell[]) {
    super(config);
    this.#bare = new Histogram({ ...config, registers: [] });
    this.#config = config;
    this.#cells = cells;
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    return {
      ...await this.#bare.get(),
      values: this.#cells.flatMap((cell) => this.#valuesOf(cell)),
    };
  }

  /** What the library makes its text of, where there is one; `get` else. */
  getForPromString(): ReturnType<Gathered["get"]> {
    return this.get();
  }

  #valuesOf({ labels, spread }: Cell): MetricValueWithName<string>[] {
    const { name, buckets = [] } = this.#config;
    let count = 0;
    const bounded = spread.counts.map((own, at) => {
      count += own;
      const le = at < buckets.length ? String(buckets[at]) : "+Inf";
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
    });
    if (count === 0) return [];
    return [
      ...bounded,
      { metricName: `${name}_sum`, labels, value: spread.sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}
