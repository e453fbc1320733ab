/** @jsxImportSource @hono/hono/jsx */
import { version } from "../base/version.ts";
import { HtmlDocument } from "../pages/document.tsx";
import { Mark } from "../pages/icons.tsx";
import { Card, CodeBlock } from "../pages/parts.tsx";

/** What the start page of development leads to. */
interface StartPageView {
  /** The path of this server's pages. */
  base: string;
  /** The URL that clients use. */
  baseUrl: string;
  apiKey: string;
  projectId: string;
}

/** The page at `/` in development: it runs, and these are the next steps. */
export function StartPage(view: StartPageView) {
  return (
    <HtmlDocument title="Farebox is running" base={view.base}>
      <main class="article">
        <p>
          <span class="brand">
            <Mark />Farebox
          </span>
        </p>
        <h1>It is running</h1>
        <p class="muted">
          Version {version}, in development: a simulated model, and no real money moves.
        </p>
        <StartSteps {...view} />
      </main>
    </HtmlDocument>
  );
}

function StartSteps({ base, baseUrl, apiKey, projectId }: StartPageView) {
  const project = `${base}/console/projects/${projectId}`;
  const chat = [
    `curl ${baseUrl}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${apiKey}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '{"model":"sandbox/echo","user":"ada","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join("\n");
  return (
    <Card>
      <ol class="steps">
        <li>
          <div>
            <h2>Ask as a user without money</h2>
            <CodeBlock id="first-chat" text={chat} />
            <p>The response is an assistant message with a link: that is the paywall.</p>
          </div>
        </li>
        <li>
          <div>
            <h2>Open the link and add money</h2>
            <p>Then send the same request again: the response comes, and it is charged.</p>
          </div>
        </li>
        <li>
          <div>
            <h2>Watch it arrive</h2>
            <p>
              Open <a href={`${project}/requests`}>the requests</a> or{" "}
              <a href={project}>the overview</a>. Sign in to the console with <code>{apiKey}</code>.
            </p>
          </div>
        </li>
        <li>
          <div>
            <h2>Use it in your app</h2>
            <p>
              Set the base URL <code>{baseUrl}/v1</code> and the key. The{" "}
              <a href={`${base}/docs/guides`}>guides</a> show it for each client, and the{" "}
              <a href={`${base}/docs`}>reference</a> has every endpoint.
            </p>
          </div>
        </li>
      </ol>
    </Card>
  );
}

/** The page at `/` in production, for people who land there. */
export function PlainHomePage({ base }: { base: string }) {
  return (
    <HtmlDocument title="Farebox" base={base} className="payer">
      <main>
        <div class="card">
          <p>
            <span class="brand">
              <Mark />Farebox
            </span>
          </p>
          <h1>A prepaid balance for AI apps</h1>
          <p>
            You are probably looking for the app that sent you here. If a message in a chat had a
            link, open that link.
          </p>
          <p class="muted">
            <a href={`${base}/wallet`}>Your wallet</a> · <a href={`${base}/console`}>Console</a> ·
            {" "}
            <a href={`${base}/docs`}>Docs</a>
          </p>
        </div>
      </main>
    </HtmlDocument>
  );
}
