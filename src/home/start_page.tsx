/** @jsxImportSource @hono/hono/jsx */
import { Page } from "../pages/page.tsx";
import { devApiKey, devProjectId } from "../projects/auth.ts";
import { devRequest } from "../projects/dev_project.ts";

/** The page of development: what to do first. `url` is where this server is reached. */
export function StartPage({ url, base }: { url: string; base: string }) {
  return (
    <Page title="Farebox is running" base={base}>
      <div class="card">
        <h1>Farebox is running</h1>
        <p>This is development: a simulated model and simulated payments, on this machine only.</p>
        <h2>1. Send a request</h2>
        <p>Paste this into a terminal:</p>
        <pre tabindex={0}><code>{devRequest(url)}</code></pre>
        <h2>2. See the paywall</h2>
        <p>
          Ada has no money yet, so the response says so and has a link. Open it, pay with the
          simulated checkout, and send the request again.
        </p>
        <h2>3. Look behind it</h2>
        <ul>
          <li>
            <a href={`${base}/console/sign-in`}>Open the console</a>, and sign in with{" "}
            <code>{devApiKey}</code>.
          </li>
          <li>
            <a href={`${base}/console/projects/${devProjectId}/live`}>Watch requests arrive</a>.
          </li>
          <li>
            Read <a href={`${base}/docs/guides/first-five-minutes`}>the first five minutes</a>, or
            {" "}
            <a href={`${base}/docs`}>the API reference</a>.
          </li>
        </ul>
      </div>
    </Page>
  );
}
