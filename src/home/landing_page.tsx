/** @jsxImportSource @hono/hono/jsx */
import { Page } from "../pages/page.tsx";

/** The page of production, for people who open the bare address of this server. */
export function LandingPage({ base }: { base: string }) {
  return (
    <Page title="Prepaid balance for AI apps" base={base}>
      <div class="card">
        <h1>Prepaid balance for AI apps</h1>
        <p>
          Apps use this server to let you pay for AI as you go. There is nothing to do here: to add
          money or to see what you have used, open the link that your app shows you.
        </p>
        <p>
          If you have a wallet, it is{" "}
          <a href={`${base}/wallet`}>here</a>. Owners of an app sign in at{" "}
          <a href={`${base}/console`}>the console</a>.
        </p>
      </div>
    </Page>
  );
}
