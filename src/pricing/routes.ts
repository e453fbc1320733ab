import type { Handler, Incoming } from "../base/handler.ts";
import { readJsonBody } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import type { AdminGuard } from "../projects/admin_guard.ts";
import { byOperator } from "../projects/audit.ts";
import { type Catalogue, packageDate } from "./catalogue.ts";
import { type CataloguePrices, readCatalogueFile } from "./catalogue_file.ts";
import type { CatalogueRefresh } from "./refresh.ts";

interface CatalogueDeps {
  deps: Deps;
  adminGuard: AdminGuard;
  catalogue: Catalogue;
  catalogueRefresh: CatalogueRefresh;
}

const fileBytesMax = 8 * 1024 * 1024;

/** The operator's endpoints for the catalogue: its date, and a refresh with its difference. */
export function catalogueRoutes(
  { deps, adminGuard, catalogue, catalogueRefresh }: CatalogueDeps,
): { read: Handler; diff: Handler; refresh: Handler } {
  const answer = ({ requestId }: Incoming, value: unknown) =>
    jsonResponse(200, value, requestId, { "cache-control": "no-store" });
  const file = async ({ request, inTime, bodies }: Incoming): Promise<CataloguePrices> => {
    const { value } = await inTime(readJsonBody(request, fileBytesMax, bodies));
    return readCatalogueFile(value, deps.clock.now());
  };
  const view = () => ({ date: catalogue.date, packageDate });

  return {
    read: adminGuard((incoming) => answer(incoming, view())),
    diff: adminGuard(async (incoming) => {
      const prices = await file(incoming);
      return answer(incoming, { ...view(), changes: await catalogueRefresh.diff(prices) });
    }),
    refresh: adminGuard(async (incoming) => {
      const prices = await file(incoming);
      const by = byOperator("api", incoming.address());
      const changes = await catalogueRefresh.refresh(prices, by);
      return answer(incoming, { ...view(), changes });
    }),
  };
}
