import type { EndpointDoc } from "../base/endpoint_doc.ts";
import type { CountEndpoint } from "./count_tokens.ts";
import type { Format } from "./format.ts";
import type { FreeFormat } from "./free_call.ts";

/** What differs between the documents of endpoints that call models. */
export type CallDoc =
  & Pick<EndpointDoc, "operationId" | "summary" | "description" | "answers" | "errorSchema">
  & Required<Pick<EndpointDoc, "body">>;

/** An endpoint that calls models. Its routes and its documents follow from it. */
export interface ServedEndpoint {
  format: Format | FreeFormat | CountEndpoint;
  doc: CallDoc;
  /** Its clients add `/v1` to a base URL, also to one that has a user at its end. */
  clientsAddV1?: true;
}
