/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { type Config, publicPath } from "../config/config.ts";
import { readForm } from "../pages/form.ts";
import { MessagePage, Page } from "../pages/page.tsx";
import { asPage, pageResponse } from "../pages/response.tsx";
import { byUnknown } from "../projects/refused_keys.ts";
import type { Confirmations, NamedAddress } from "./confirmations.ts";

interface ConfirmDeps {
  deps: { config: Pick<Config, "baseUrl"> };
  confirmations: Pick<Confirmations, "read" | "confirm">;
}

/**
 * The page that the owner of an address for alerts opens. Reading it changes nothing: mail servers
 * follow links, too.
 */
export function confirmRoutes(
  { deps: { config }, confirmations }: ConfirmDeps,
): { show: Handler; confirm: Handler } {
  const base = publicPath(config, "");
  const open = async (token: string): Promise<NamedAddress> => {
    const named = await confirmations.read(token);
    if (!named) throw notFound("address, or this link has expired");
    return named;
  };
  const done = ({ email, project }: NamedAddress, requestId: string) => {
    const text = `Alerts of ${project.name} are sent to ${email} from now on. ` +
      "To end that, ask the owner of the project to remove the address.";
    const page = <MessagePage title="The address is confirmed" text={text} base={base} />;
    return pageResponse(200, String(page), { requestId });
  };
  return {
    show: asPage(
      async ({ param, requestId }) => {
        const token = param("token");
        const named = await open(token);
        if (named.isConfirmed) return done(named, requestId);
        const action = publicPath(config, `/alerts/confirm/${token}`);
        return pageResponse(200, String(<Question {...{ named, action, base }} />), { requestId });
      },
      config,
      lost,
    ),
    confirm: asPage(
      async ({ param, request, requestId, inTime, address }) => {
        await inTime(readForm(request, config));
        const named = await open(param("token"));
        await confirmations.confirm(named, byUnknown("console", address()));
        return done(named, requestId);
      },
      config,
      lost,
    ),
  };
}

const lost = "This link is no longer valid";

function Question({ named: { project, email }, action, base }: {
  named: NamedAddress;
  action: string;
  base: string;
}) {
  const title = "Do you want alerts at this address?";
  return (
    <Page title={title} base={base}>
      <div class="card">
        <h1>{title}</h1>
        <p>
          The project <bdi>{project.name}</bdi> wants to send alerts to{" "}
          <bdi>{email}</bdi>: when payments, webhooks or balances need attention. If you do not know
          it, close this page, and you get nothing more.
        </p>
        <form method="post" action={action}>
          <p class="actions">
            <button type="submit" class="primary">Send me alerts</button>
          </p>
        </form>
      </div>
    </Page>
  );
}
