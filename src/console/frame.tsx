/** @jsxImportSource @hono/hono/jsx */
import type { Child } from "@hono/hono/jsx";
import type { Project } from "../projects/schema.ts";
import { flashText } from "./flash.ts";
import { style } from "./style.ts";

/** The bare page: for visitors who are not signed in, and as the base of the frame. */
export function BarePage({ title, script, children }: {
  title: string;
  script?: string | undefined;
  children?: unknown;
}) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{`${title} · Farebox`}</title>
        <style dangerouslySetInnerHTML={{ __html: style }} />
      </head>
      <body>
        {children}
        {script === undefined ? null : <script dangerouslySetInnerHTML={{ __html: script }} />}
      </body>
    </html>
  );
}

/** The pages of a project, in the order of the navigation. */
const sections = [
  ["", "Overview"],
  ["/live", "Live"],
  ["/users", "Users"],
  ["/webhooks", "Webhooks"],
  ["/keys", "Keys"],
  ["/pricing", "Pricing"],
  ["/upstreams", "Upstreams"],
  ["/limits", "Limits"],
  ["/messages", "Messages"],
  ["/settings", "Settings"],
  ["/audit", "Audit trail"],
] as const;

/** The position of a page, for the frame around it. */
export interface NavItem {
  /** Returns the URL of a page of the console. */
  at(path: string): string;
  isOperator: boolean;
  project: Project | null;
  /** The current section of the navigation; null for none. */
  section: string | null;
  flash: string | undefined;
}

/** A page of the console with its frame: account, project and navigation. */
export function ConsolePage({ title, heading, place, script, children }: {
  title: string;
  /** The title as it is shown on the page, where it contains a name that someone has chosen. */
  heading?: Child | undefined;
  place: NavItem;
  script?: string;
  children?: unknown;
}) {
  const { project, flash } = place;
  const said = flashText(flash);
  const shown = project === null ? title : `${title} · ${project.name}`;
  return (
    <BarePage title={shown} script={script}>
      <a class="skip" href="#main">Skip to the content</a>
      <TopBar {...place} />
      <div class="body">
        {project === null ? <div /> : <Sections {...place} project={project} />}
        <main id="main" tabindex={-1}>
          <h1>{heading ?? title}</h1>
          {said === null ? null : <p class="flash" role="status">{said}</p>}
          {children}
        </main>
      </div>
    </BarePage>
  );
}

function TopBar({ at, isOperator, project }: NavItem) {
  return (
    <header>
      <strong>Farebox</strong>
      {project === null ? null : (
        <>
          <span class="name">
            <bdi>{project.name}</bdi>
          </span>
          <span class="tag">{project.currency.toUpperCase()}</span>
          {project.mode === "shared" ? <span class="tag">shared wallets</span> : null}
          {project.status === "archived" ? <span class="tag late">archived</span> : null}
        </>
      )}
      {isOperator ? <a href={at("/projects")}>All projects</a> : null}
      <form method="post" action={at("/sign-out")}>
        <button type="submit" class="plain">Sign out</button>
      </form>
    </header>
  );
}

function Sections({ at, project, section }: NavItem & { project: Project }) {
  return (
    <nav aria-label="Project">
      <ul>
        {sections.map(([path, title]) => (
          <li>
            <a
              href={at(`/projects/${project.id}${path}`)}
              aria-current={path === section ? "page" : undefined}
            >
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
