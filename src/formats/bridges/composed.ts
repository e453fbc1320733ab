import { ApiError, badRequest } from "../../base/errors.ts";
import { isObject, parseJson } from "../../base/json.ts";
import type { Bridge, BridgeOptions, EventTranslator } from "../../inference/format.ts";

/**
 * A bridge by way of a format between: what the first one writes is a request for the second, and
 * what the second one gives is a response for the first. `names` are the caller's fields by the
 * fields between, where they differ: a 400 names what its caller has sent.
 */
export function composed(
  first: Bridge,
  second: Bridge,
  names: Readonly<Record<string, string>>,
): Bridge {
  const [maxTokensField] = first.format.maxTokensFields;
  return {
    format: second.format,
    writeBody(request, cap, dialect) {
      const named = maxTokensField ? { maxTokensField } : {};
      // The format between does not say that a message is continued.
      const spoken = { ...dialect, ...named, prefill: null };
      const body = parseJson(first.writeBody(request, cap, spoken));
      if (!isObject(body)) throw new Error("a bridge writes an object");
      try {
        return second.writeBody({ ...request, body }, cap, dialect);
      } catch (error) {
        throw inNamesOfCaller(error, names);
      }
    },
    translateWhole: (bytes, options) =>
      first.translateWhole(second.translateWhole(bytes, between(options)), options),
    createTranslator: (options) =>
      inTurn(second.createTranslator(between(options)), first.createTranslator(options)),
  };
}

/**
 * What the second bridge works with. Bridges write tools as functions alone, so that the request
 * between says nothing about the form of its response.
 */
function between(options: BridgeOptions): BridgeOptions {
  return { ...options, request: { ...options.request, body: {} } };
}

function inTurn(second: EventTranslator, first: EventTranslator): EventTranslator {
  return {
    take: (event) => second.take(event).flatMap((each) => first.take(each)),
    end: () => [...second.end().flatMap((each) => first.take(each)), ...first.end()],
  };
}

function inNamesOfCaller(error: unknown, names: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof ApiError) || error.status !== 400 || error.param === null) return error;
  const { param, message, code } = error;
  const [field = ""] = param.split(".");
  const name = Object.hasOwn(names, field) ? names[field] : undefined;
  if (name === undefined) return error;
  return badRequest(name, message.replaceAll(`'${param}'`, `'${name}'`), code ?? undefined);
}
