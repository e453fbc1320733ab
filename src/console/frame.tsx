/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import { HtmlDocument } from "../pages/document.tsx";
import { Icon, type IconName, Mark } from "../pages/icons.tsx";
import type { Project } from "../projects/schema.ts";
import { flashText } from "./flash.ts";

/** The bare page: for visitors who are not signed in. */
export function BarePage({ title, base, children }: {
  title: string;
  base: string;
  children?: unknown;
}) {
  return (
    <HtmlDocument title={`${title} · Farebox`} base={base}>
      <main class="lone">
        <span class="brand">
          <Mark />Farebox
        </span>
        <div class="card">{children}</div>
      </main>
    </HtmlDocument>
  );
}

/** The pages of a project, in groups and in the order of the navigation. */
const groups: readonly {
  title: string;
  pages: readonly (readonly [path: string, title: string, icon: IconName])[];
}[] = [
  {
    title: "Money",
    pages: [
      ["", "Overview", "overview"],
      ["/users", "Users", "users"],
      ["/activity", "Activity", "activity"],
      ["/pricing", "Pricing", "pricing"],
      ["/payments", "Payments", "wallet"],
    ],
  },
  {
    title: "Developers",
    pages: [
      ["/requests", "Requests", "requests"],
      ["/live", "Live", "live"],
      ["/webhooks", "Webhooks", "webhooks"],
      ["/keys", "Keys", "keys"],
      ["/upstreams", "Upstreams", "upstreams"],
    ],
  },
  {
    title: "Configuration",
    pages: [
      ["/limits", "Limits", "limits"],
      ["/messages", "Messages", "messages"],
      ["/alerts", "Alerts", "alerts"],
      ["/settings", "Settings", "settings"],
      ["/audit", "Audit trail", "audit"],
    ],
  },
];

/** The position of a page, for the frame around it. */
export interface NavItem {
  /** Returns the URL of a page of the console. */
  at(path: string): string;
  /** Where this server's pages begin. */
  base: string;
  isOperator: boolean;
  project: Project | null;
  /** Whether the project's users pay in Stripe's test mode. */
  isTest: boolean;
  /** The current section of the navigation; null for none. */
  section: string | null;
  flash: string | undefined;
}

/** A page of the console with its frame: account, project and navigation. */
export function ConsolePage({ title, heading, note, actions, place, children }: {
  title: string;
  /** The title as it is shown on the page, where it contains a name that someone has chosen. */
  heading?: Child | undefined;
  /** A sentence below the title. */
  note?: Child | undefined;
  /** What can be done on the page, beside its title. */
  actions?: Child | undefined;
  place: NavItem;
  children?: unknown;
}) {
  const { project, flash, base } = place;
  const said = flashText(flash);
  const shown = project === null ? title : `${title} · ${project.name}`;
  return (
    <HtmlDocument title={`${shown} · Farebox`} base={base}>
      <a class="skip" href="#main">Skip to the content</a>
      <div class={project === null ? "shell alone" : "shell"}>
        <TopBar {...place} />
        {project === null ? null : <Navigation {...place} project={project} />}
        <main id="main" class="page" tabindex={-1}>
          <header>
            <div>
              <h1>{heading ?? title}</h1>
              {note === undefined ? null : <p>{note}</p>}
            </div>
            {actions === undefined ? null : <div class="actions">{actions}</div>}
          </header>
          {said === null ? null : <p class="flash toast" role="status">{said}</p>}
          {children}
        </main>
      </div>
    </HtmlDocument>
  );
}

function TopBar({ at, base, isOperator, project, isTest }: NavItem) {
  return (
    <header class="bar">
      <a class="brand" href={at("")}>
        <Mark />Farebox
      </a>
      {project === null ? null : (
        <>
          <span class="project">
            <bdi>{project.name}</bdi>
          </span>
          <span class="muted small">{project.currency.toUpperCase()}</span>
          {project.mode === "shared" ? <span class="tag">shared wallets</span> : null}
          {isTest ? <span class="tag late">Stripe test mode</span> : null}
          {project.status === "archived" ? <span class="tag late">archived</span> : null}
        </>
      )}
      <div class="right">
        {isOperator ? <a class="button plain small" href={at("/projects")}>All projects</a> : null}
        <a class="button plain small" href={`${base}/docs`}>Docs</a>
        <form method="post" action={at("/sign-out")}>
          <button type="submit" class="plain small">Sign out</button>
        </form>
      </div>
    </header>
  );
}

/** On a wide screen it stands beside the page; on others it opens below the bar. */
function Navigation(place: NavItem & { project: Project }) {
  const here = groups.flatMap(({ pages }) => pages).find(([path]) => path === place.section);
  return (
    <>
      <div class="menu">
        <details>
          <summary>
            <Icon name="menu" /> {here?.[1] ?? "Menu"}
          </summary>
          <Sections {...place} />
        </details>
      </div>
      <Sections {...place} />
    </>
  );
}

function Sections({ at, project, section }: NavItem & { project: Project }) {
  return (
    <nav class="side" aria-label="Project">
      <div>
        {groups.map(({ title, pages }) => (
          <section>
            <h2>{title}</h2>
            <ul>
              {pages.map(([path, title, icon]) => (
                <li>
                  <a
                    href={at(`/projects/${project.id}${path}`)}
                    aria-current={path === section ? "page" : undefined}
                  >
                    <Icon name={icon} />
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </nav>
  );
}
