import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { Secret } from "../base/secret.ts";
import { isMask } from "../base/secret_mask.ts";

/** Named upstreams and routes for all projects, not yet validated. */
export interface SharedUpstreams {
  /** Where they are set. */
  readonly setting: "UPSTREAMS" | "UPSTREAMS_FILE";
  /** JSON with the keys of the upstreams. */
  readonly json: Secret;
  /** The variables that hold keys. */
  readonly keyNames: readonly string[];
  /** Whether any of the upstreams has a key. */
  readonly hasKeys: boolean;
}

/**
 * Puts keys in the place of the variables that hold them: `{"env": "NAME"}`. Throws an Error that
 * names the setting, and what is wrong.
 */
export function readSharedUpstreams(
  setting: SharedUpstreams["setting"],
  text: string,
  environment: Record<string, string | undefined>,
): SharedUpstreams {
  const settings = parsed(setting, text);
  const keyNames: string[] = [];
  for (const [name, upstream] of Object.entries(upstreamsIn(settings))) {
    if (!isObject(upstream)) continue;
    const at = `${setting}: 'upstreams.${name}.apiKey'`;
    if (isObject(upstream.apiKey)) {
      const { env, ...more } = upstream.apiKey;
      if (typeof env !== "string" || Object.keys(more).length > 0) {
        throw new Error(`${at} must be a text, or {"env": "NAME"} with a variable's name`);
      }
      if (!environment[env]) throw new Error(`${at} names a variable that is not set: '${env}'`);
      upstream.apiKey = environment[env];
      keyNames.push(env);
    }
    if (typeof upstream.apiKey === "string" && isMask(upstream.apiKey)) {
      throw new Error(`${at} is still a placeholder: fill in a value of your own`);
    }
  }
  const all = Object.values(upstreamsIn(settings));
  const hasKeys = all.some((upstream) => isObject(upstream) && Boolean(upstream.apiKey));
  return { setting, json: new Secret(JSON.stringify(settings)), keyNames, hasKeys };
}

function upstreamsIn(settings: Json): JsonObject {
  return isObject(settings) && isObject(settings.upstreams) ? settings.upstreams : {};
}

function parsed(setting: string, text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${setting} must be JSON`);
  }
}
