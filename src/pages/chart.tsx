/** @jsxImportSource @hono/hono/jsx */
// @ts-types="@types/d3-scale"
import { scaleBand, scaleLinear } from "d3-scale";
import type { Child } from "@hono/hono/jsx";
import { Table } from "./parts.tsx";

/** Bars over time, stacked where there are several series. */
interface BarChartView {
  /** Unique on the page. */
  id: string;
  title: string;
  /** A sentence that states what the chart shows, with its main figures. */
  says: string;
  series: readonly string[];
  bars: readonly Bar[];
  /** Formats a value of the axis for people. */
  axis: (value: number) => string;
  /** For a chart as wide as the page. */
  wide?: boolean;
  /** The heights in the period before, bar by bar, and what it is called. */
  before?: { values: readonly number[]; name: string } | undefined;
}

/** One bar: its names, and for each series its height and its figure for the table. */
interface Bar {
  label: string;
  /** Below the bar: at most six characters; empty for none. */
  tick: string;
  /** Where a click on the bar leads. */
  href?: string;
  values: readonly number[];
  figures: readonly Child[];
}

/** `left` is the minimum, and grows with the labels of the axis. */
const margins = { left: 46, right: 4, top: 18, bottom: 22 };
const sizes = {
  narrow: { ...margins, width: 440, height: 200 },
  wide: { ...margins, width: 1_000, height: 260 },
  /** In place of a wide one on a phone, where its texts would be too small to read. */
  phone: { ...margins, width: 340, height: 200 },
};
type ChartSize = keyof typeof sizes;
/** The width of a digit in the widest usual system font at 12 pixels; regular and bold. */
const charWidth = { regular: 8, bold: 9 };
const labelsMax = 7;
const ticksMax = 4;

/**
 * A chart drawn on the server, which needs no script. Series differ by pattern as well as by color,
 * the highest bar is labelled, and a table below contains the same figures.
 */
export function BarChart(view: BarChartView) {
  const { id, title, says, series, bars, before } = view;
  return (
    <figure>
      <figcaption>
        <h2>{title}</h2>
        {series.length > 1 || before
          ? <Legend id={id} series={series} before={before?.name} />
          : null}
      </figcaption>
      <Patterns id={id} />
      {view.wide
        ? (
          <>
            <Drawing {...view} size="wide" />
            <Drawing {...view} size="phone" />
          </>
        )
        : <Drawing {...view} size="narrow" />}
      <details>
        <summary>Data for “{title}”</summary>
        <Table
          caption={says}
          columns={[
            "From (UTC)",
            ...series.map((name) => ({ title: name, number: true } as const)),
          ]}
          rows={bars.map(({ label, figures, href }) => [
            href === undefined ? label : <a href={href}>{label}</a>,
            ...figures,
          ])}
          empty="No figures."
        />
      </details>
    </figure>
  );
}

function Drawing({ size, ...view }: BarChartView & { size: ChartSize }) {
  const { width, height } = sizes[size];
  const id = size === "phone" ? `${view.id}-phone` : view.id;
  return (
    <svg
      class={size}
      viewBox={`0 0 ${width} ${height}`}
      role={view.bars.some(({ href }) => href) ? "group" : "img"}
      aria-labelledby={`${id}-title ${id}-says`}
    >
      <title id={`${id}-title`}>{view.title}</title>
      <desc id={`${id}-says`}>{view.says}</desc>
      <Plot {...view} size={size} />
    </svg>
  );
}

function Plot({ id, bars, axis, before, size: kind }: BarChartView & { size: ChartSize }) {
  const size = sizes[kind];
  const wide = kind === "wide";
  const heights = bars.map(({ values }) => values.reduce((sum, value) => sum + value, 0));
  const highest = Math.max(...heights, ...before?.values ?? []);
  const y = scaleLinear([0, highest || 1], [size.height - size.bottom, size.top]).nice(ticksMax);
  const ticks = y.ticks(ticksMax).map((tick) => ({ at: y(tick), text: axis(tick) }));
  const longest = Math.max(...ticks.map(({ text }) => text.length));
  const left = Math.max(size.left, longest * charWidth.regular + 8);
  const x = scaleBand(bars.keys(), [left, size.width - size.right]).padding(0.15);
  const middleOf = (at: number) => (x(at) ?? 0) + x.bandwidth() / 2;
  const named = bars.flatMap(({ tick }, at) => (tick === "" ? [] : [at]));
  const every = Math.ceil(named.length / (wide ? 2 * labelsMax : labelsMax));
  const shown = new Set(named.filter((_, at) => at % every === 0));
  const peak = Math.max(...heights);
  return (
    <g aria-hidden="true">
      <Axis ticks={ticks} left={left} right={size.width - size.right} />
      {bars.map(({ tick, values, href }, at) => (
        <>
          <BarLink href={href}>
            {stacked(values).map(([from, to], of) => (
              <rect
                x={x(at)}
                width={x.bandwidth()}
                y={y(to)}
                height={Math.max(0, y(from) - y(to))}
                rx={wide ? 2 : 1}
                fill={fillOf(id, of)}
                stroke={to > from ? colours[of] : "none"}
              />
            ))}
          </BarLink>
          {shown.has(at)
            ? (
              <text x={middleOf(at)} y={size.height - 6} text-anchor="middle">
                {tick}
              </text>
            )
            : null}
        </>
      ))}
      {before
        ? (
          <polyline
            points={before.values.map((value, at) => `${middleOf(at)},${y(value)}`).join(" ")}
            fill="none"
            stroke="var(--before)"
            stroke-width="1.5"
            stroke-dasharray="4 3"
          />
        )
        : null}
      {peak > 0
        ? (
          <Peak
            text={axis(peak)}
            middle={middleOf(heights.indexOf(peak))}
            y={y(peak) - 5}
            left={left}
            right={size.width - size.right}
          />
        )
        : null}
    </g>
  );
}

/** Only a pointer reaches it: the table below the chart has the same links for everyone. */
function BarLink({ href, children }: { href: string | undefined; children?: unknown }) {
  return href === undefined
    ? <>{children}</>
    : <a href={href} tabindex={-1} aria-hidden="true">{children}</a>;
}

function Axis(
  { ticks, left, right }: {
    ticks: { at: number; text: string }[];
    left: number;
    right: number;
  },
) {
  return (
    <>
      {ticks.map(({ at, text }) => (
        <>
          <line x1={left} x2={right} y1={at} y2={at} stroke="var(--line)" />
          <text x={left - 6} y={at + 4} text-anchor="end">{text}</text>
        </>
      ))}
    </>
  );
}

/** Centered above its bar, or as close to that as there is space. */
function Peak(
  { text, middle, y, left, right }: {
    text: string;
    middle: number;
    y: number;
    left: number;
    right: number;
  },
) {
  const half = (text.length * charWidth.bold) / 2;
  const [x, anchor] = middle + half > right
    ? [right, "end"]
    : middle - half < left
    ? [left, "start"]
    : [middle, "middle"];
  return <text x={x} y={y} text-anchor={anchor} class="peak">{text}</text>;
}

/** Returns where each part of a stack starts and ends. */
function stacked(values: readonly number[]): [from: number, to: number][] {
  let top = 0;
  return values.map((value) => [top, top += value]);
}

const colours = ["var(--series-1)", "var(--series-2)", "var(--series-3)"];

const fillOf = (id: string, series: number) =>
  series === 0 ? "var(--series-1)" : `url(#${id}-pattern-${series})`;

/** Hatched in two directions, to be distinguishable without colors. */
function Patterns({ id }: { id: string }) {
  return (
    <svg class="patterns" width="0" height="0" aria-hidden="true">
      {[1, 2].map((series) => (
        <pattern
          id={`${id}-pattern-${series}`}
          width="5"
          height="5"
          patternUnits="userSpaceOnUse"
          patternTransform={`rotate(${series === 1 ? 45 : -45})`}
        >
          <line x1="0" y1="0" x2="0" y2="5" stroke={colours[series]} stroke-width="4" />
        </pattern>
      ))}
    </svg>
  );
}

function Legend(
  { id, series, before }: { id: string; series: readonly string[]; before?: string | undefined },
) {
  return (
    <ul class="legend">
      {series.map((name, at) => (
        <li>
          <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
            <rect width="14" height="14" fill={fillOf(id, at)} stroke={colours[at]} />
          </svg>
          {name}
        </li>
      ))}
      {before === undefined ? null : (
        <li>
          <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
            <path d="M0 7h14" stroke="var(--before)" stroke-width="2" stroke-dasharray="4 3" />
          </svg>
          {before}
        </li>
      )}
    </ul>
  );
}

/** A share of the whole as a bar beside its figure. */
export function Share({ part }: { part: number }) {
  return (
    <svg viewBox="0 0 100 10" width="100" height="10" aria-hidden="true">
      <rect width="100" height="10" fill="none" stroke="var(--line)" />
      <rect width={Math.round(part * 100)} height="10" fill="var(--series-1)" />
    </svg>
  );
}
