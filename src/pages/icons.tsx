/** @jsxImportSource @hono/hono/jsx */

/** The shapes of the icons, on a square of 24, drawn with a line. */
const shapes = {
  overview: "M4 20V11M10 20V4M16 20v-7M21 20H3",
  users:
    "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM2 21a7 7 0 0 1 14 0M16 3.5a4 4 0 0 1 0 7M18 14.5a7 7 0 0 1 4 6.5",
  activity: "M3 7h14M13 3l4 4-4 4M21 17H7M11 13l-4 4 4 4",
  pricing: "M3 12V4a1 1 0 0 1 1-1h8l9 9-9 9-9-9ZM7.5 7.5v.01",
  requests: "M4 6h16M4 12h16M4 18h10",
  live:
    "M12 13a1 1 0 1 0 0-2 1 1 0 0 0 0 2ZM8 16a5.6 5.6 0 0 1 0-8M16 8a5.6 5.6 0 0 1 0 8M5 19a9.9 9.9 0 0 1 0-14M19 5a9.9 9.9 0 0 1 0 14",
  webhooks:
    "M12 8a3 3 0 1 0-2.6-1.5L6 13M6 20a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM9 17h6M18 20a3 3 0 1 0-2.6-4.5L12 8",
  keys: "M8 19a5 5 0 1 0 0-10 5 5 0 0 0 0 10ZM11.5 10.5 20 2M16 6l3 3",
  upstreams: "M4 4h16v6H4zM4 14h16v6H4zM8 7v.01M8 17v.01",
  docs: "M6 3h9l4 4v14H6a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1ZM14 3v5h5M9 13h6M9 17h6",
  limits: "M4 18a9 9 0 1 1 16 0M12 14l4-5",
  messages: "M4 5h16v11H10l-5 4v-4H4z",
  alerts: "M6 16V10a6 6 0 0 1 12 0v6l2 2H4ZM10 21h4",
  settings:
    "M4 7h9M17 7h3M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM4 17h3M11 17h9M9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  audit: "M12 21a9 9 0 1 0-9-9M3 5v7h7M12 7v5l3 2",
  projects: "M3 7a1 1 0 0 1 1-1h5l2 2h9a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1Z",
  check: "M5 12.5 10 17 19 7",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3 2",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  warning: "M12 4 2.5 20h19ZM12 10v4M12 17v.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  external: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  wallet: "M4 7a2 2 0 0 1 2-2h12v4M4 7v11a2 2 0 0 0 2 2h14V9H6a2 2 0 0 1-2-2ZM16 14.5v.01",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof shapes;

/** The names of all icons. */
export const iconNames: readonly IconName[] = Object.entries(shapes).map(([name]) => name)
  .filter((name): name is IconName => name in shapes);

/** An icon, hidden from screen readers: it always stands beside a word. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  );
}

/** A coin that falls into a slot. */
const markShape = "M6 4h20a2 2 0 0 1 2 2v20a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2Z";

/** Farebox's mark, in the accent color. */
export function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <path d={markShape} fill="var(--accent)" />
      <circle cx="16" cy="12.5" r="4.5" fill="var(--on-accent)" />
      <rect x="8.5" y="19.5" width="15" height="3" rx="1.5" fill="var(--on-accent)" />
    </svg>
  );
}

/** The mark as a data URL, for the browser's tab. */
export const favicon = "data:image/svg+xml," + encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="${markShape}" ` +
    `fill="#1d4fd7"/><circle cx="16" cy="12.5" r="4.5" fill="#fff"/>` +
    `<rect x="8.5" y="19.5" width="15" height="3" rx="1.5" fill="#fff"/></svg>`,
);
