import assert from "node:assert/strict";
import type { World } from "./world.ts";

/** The page that a browser would show, and where it was redirected. */
export interface Shown {
  status: number;
  html: string;
  location: string | null;
  headers: Headers;
}

/** A browser at the console, without scripts: keeps the cookie, sends forms. */
export class Visitor {
  cookie: string | null = null;
  readonly #world: World;
  readonly #address: string | null;

  constructor(world: World, address: string | null = null) {
    this.#world = world;
    this.#address = address;
  }

  /** Opens a page, of the world's project if the path does not begin with a slash. */
  async get(path: string): Promise<Shown> {
    return await this.#ask(path, { method: "GET" });
  }

  /** Sends a form as the page itself would, or as `site` states. */
  async post(
    path: string,
    form: Record<string, string> = {},
    site: string | null = "same-origin",
  ): Promise<Shown> {
    const raw = new URLSearchParams(form).toString();
    return await this.#ask(path, {
      method: "POST",
      body: raw,
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "content-length": String(raw.length),
        ...(site === null ? {} : { "sec-fetch-site": site }),
      },
    });
  }

  /** Sends a form with a file as the page itself would. */
  async upload(path: string, form: Record<string, string | File>): Promise<Shown> {
    const body = new FormData();
    for (const [name, value] of Object.entries(form)) body.append(name, value);
    const sent = new Response(body);
    const type = sent.headers.get("content-type") ?? "";
    return await this.#ask(path, {
      method: "POST",
      body: await sent.arrayBuffer(),
      headers: { "content-type": type, "sec-fetch-site": "same-origin" },
    });
  }

  /** Sends a form and opens the page that it redirects to. */
  async submit(path: string, form: Record<string, string> = {}): Promise<Shown> {
    const sent = await this.post(path, form);
    assert.equal(sent.status, 303, sent.html);
    return await this.get(sent.location ?? assert.fail("it leads nowhere"));
  }

  /** Stays active: opens a page every half an hour. */
  async stayFor(ms: number): Promise<void> {
    const stepMs = 30 * 60 * 1000;
    for (let left = ms; left > 0; left -= stepMs) {
      await this.get("audit");
      await this.#world.clock.advance(Math.min(left, stepMs));
    }
  }

  /** Signs in, by default with the world's own key. */
  async signIn(key = this.#world.ownerKey): Promise<Shown> {
    return await this.post("/console/sign-in", { key });
  }

  async #ask(path: string, init: RequestInit): Promise<Shown> {
    const whole = path.startsWith("/")
      ? path
      : `/console/projects/${this.#world.projectId}/${path}`;
    const headers = new Headers(init.headers);
    if (this.cookie !== null) headers.set("cookie", this.cookie);
    const request = new Request(`http://localhost${whole}`, { ...init, headers });
    const info = this.#address === null ? undefined : { remoteAddr: { hostname: this.#address } };
    const response = await this.#world.app.fetch(request, info);
    const set = response.headers.get("set-cookie");
    if (set !== null) this.cookie = /Max-Age=0/.test(set) ? null : set.split(";")[0] ?? null;
    return {
      status: response.status,
      html: await response.text(),
      location: response.headers.get("location"),
      headers: response.headers,
    };
  }
}

/** A signed-in visitor, by default with the world's own key. */
export async function signedIn(world: World, key = world.ownerKey): Promise<Visitor> {
  const visitor = new Visitor(world);
  const { status, html } = await visitor.signIn(key);
  assert.equal(status, 303, html);
  return visitor;
}

/** Returns a page's text, without its markup. */
export function textOf(html: string): string {
  const body = html.replace(/<style>.*?<\/style>|<script>.*?<\/script>/gs, "");
  const text = body.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ").trim();
  const entities: Record<string, string> = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#39;": "'",
  };
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity);
}

/** Returns the hidden fields of a page's form with that action. */
export function hiddenFields(html: string, action = ""): Record<string, string> {
  const forms = html.match(/<form.*?<\/form>/gs) ?? [];
  const form = forms.find((text) => text.includes(`action="`) && text.includes(`${action}"`)) ??
    assert.fail(`no form to ${action}`);
  const inputs = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
  return Object.fromEntries(
    [...inputs].map((
      [, name = "", value = ""],
    ) => [name, value.replaceAll("&quot;", '"').replaceAll("&amp;", "&")]),
  );
}

/** Returns what a browser would send of a page's form with that action, without its buttons. */
export function formFields(html: string, action: string): Record<string, string> {
  const forms = html.match(/<form.*?<\/form>/gs) ?? [];
  const form =
    forms.find((text) => text.includes(`${action}"`) && text.includes('method="post"')) ??
      assert.fail(`no form to ${action}`);
  const of = (tag: string, name: string) =>
    new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]?.replaceAll("&quot;", '"')
      .replaceAll("&amp;", "&");
  const fields: Record<string, string> = {};
  for (const [tag] of form.matchAll(/<input [^>]*>/g)) {
    const isChoice = /type="(checkbox|radio)"/.test(tag);
    if (isChoice && !/ checked/.test(tag)) continue;
    fields[of(tag, "name") ?? ""] = of(tag, "value") ?? "";
  }
  for (
    const [, name = "", text = ""] of form.matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>(.*?)<\//gs)
  ) {
    fields[name] = textOf(text);
  }
  for (
    const [, name = "", options = ""] of form.matchAll(
      /<select[^>]* name="([^"]*)"[^>]*>(.*?)<\/select/gs,
    )
  ) {
    const all = options.match(/<option [^>]*>/g) ?? [];
    fields[name] = of(all.find((tag) => tag.includes(" selected")) ?? all[0] ?? "", "value") ?? "";
  }
  return fields;
}
