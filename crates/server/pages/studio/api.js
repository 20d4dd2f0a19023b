// Requests to the API. The token stays in this tab, and is sent as a header only.

import { parseExact } from "./display.js";
import { language, texts } from "./texts.js";

const TOKEN = "studio.token";

// A request that hangs, for example behind a proxy, ends. A turn may take long.
const PATIENCE = 300_000;

export const token = {
  get() {
    try {
      return sessionStorage.getItem(TOKEN);
    } catch {
      return this.kept ?? null;
    }
  },
  set(value) {
    this.kept = value;
    try {
      if (value) sessionStorage.setItem(TOKEN, value);
      else sessionStorage.removeItem(TOKEN);
    } catch {
      // Without storage, a reload asks for it again.
    }
  },
};

// Why a request failed: the problem details of the server, or that there is no connection.
export class ApiProblem extends Error {
  constructor(status, problem, wait) {
    super(problem?.detail ?? (status === 0 ? texts.offline : texts.failedWith(status)));
    this.status = status;
    this.help = problem?.help ?? "";
    this.type = problem?.type ?? "";
    this.diagnostics = problem?.diagnostics ?? [];
    this.wait = wait;
  }

  // Whether the same request may succeed later.
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export function headers(more = {}) {
  const all = { "accept-language": language, ...more };
  if (token.get()) all.authorization = `Bearer ${token.get()}`;
  return all;
}

// Makes the problem of a response. A token that is missing or not enough is asked for by the page.
export async function problemOf(response) {
  const problem = await response.json().catch(() => null);
  const wait = Number(response.headers.get("retry-after")) * 1000 || undefined;
  const made = new ApiProblem(response.status, problem, wait);
  if (response.status === 401) document.dispatchEvent(new CustomEvent("token-needed", { detail: made }));
  return made;
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch {
    throw new ApiProblem(0);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function json(path, options) {
  const response = await send(path, options);
  if (response.status === 204) return null;
  try {
    return parseExact(await response.text());
  } catch {
    throw new ApiProblem(0);
  }
}

// Puts values into a path.
export function path(parts, ...values) {
  return parts.reduce((whole, part, index) => whole + encodeURIComponent(values[index - 1]) + part);
}

export const api = {
  get: (url) => json(url, { headers: headers() }),
  post: (url, body, more = {}) =>
    json(url, { method: "POST", headers: headers({ "content-type": "application/json", ...more }), body: JSON.stringify(body) }),
  postText: (url, text) => json(url, { method: "POST", headers: headers({ "content-type": "application/json" }), body: text }),
  // A text with its byte order mark, if it has one, and its version.
  async text(url) {
    try {
      const response = await send(url, { headers: headers() });
      const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await response.arrayBuffer());
      return { text, version: response.headers.get("etag") };
    } catch (error) {
      throw error instanceof ApiProblem ? error : new ApiProblem(0);
    }
  },
  async delete(url) {
    await send(url, { method: "DELETE", headers: headers() });
  },
  async file(url, signal) {
    try {
      const response = await send(url, { headers: headers(), signal });
      return { blob: await response.blob(), headers: response.headers };
    } catch (error) {
      throw error instanceof ApiProblem ? error : new ApiProblem(0);
    }
  },
  // Replaces the script with this version, or any if it is not set. Returns the new version.
  async putYaml(url, text, version) {
    const more = { "content-type": "application/yaml", ...(version && { "if-match": version }) };
    return (await send(url, { method: "PUT", headers: headers(more), body: text })).headers.get("etag");
  },
};

// A name under which a request can be sent again.
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The query of an address, without what is empty.
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
