// Requests to the server, and the stream of what happens.

import { talkPath } from "./address.js";
import { backoff, pause } from "./pause.js";

// Why a request failed: a word of the server, or `offline`.
export class Refused extends Error {
  constructor(word, wait) {
    super(word);
    this.word = word;
    this.wait = wait;
  }

  // Whether the same request may succeed later.
  get passes() {
    return ["offline", "unavailable", "too_many", "failed"].includes(this.word);
  }
}

// What stands between the page and the server may answer with other words.
const WORDS = ["bad_request", "not_found", "revoked", "expired", "used_up", "consent_needed", "withdrawn", "deleted", "answered", "not_possible", "too_long", "too_many", "unavailable", "failed"];

// A request that hangs, for example behind a proxy, is sent again.
const PATIENCE = 60_000;

export async function request(path, body, headers = {}) {
  // With the credentials of the page, as the state that it has asked for already.
  const options = { headers, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { ...headers, "content-type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refused("offline");
  }
  const wait = Number(response.headers.get("retry-after")) * 1000 || undefined;
  if (response.ok) {
    try {
      return response.headers.get("content-type")?.startsWith("text/") ? await response.blob() : await response.json();
    } catch {
      throw new Refused("offline");
    }
  }
  const statuses = { 413: "too_long", 429: "too_many" };
  let word = statuses[response.status];
  if (!word) {
    word = await response.json().then((problem) => problem.error, () => undefined);
  }
  if (!WORDS.includes(word)) word = response.status >= 500 ? "unavailable" : "failed";
  throw new Refused(word, wait);
}

const KINDS = ["message", "piece", "discard", "waiting", "taken_back", "end", "stopped", "running", "gone", "revoked"];

// The stream of a conversation. While the page is hidden there is none: browsers allow six connections to a server, for all tabs together.
export class Stream {
  constructor(handlers) {
    this.handlers = handlers;
    this.source = null;
    this.attempt = 0;
    this.isWanted = false;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.disconnect();
      else if (this.isWanted) this.handlers.shown();
    });
    addEventListener("online", () => this.isWanted && !document.hidden && this.handlers.shown());
    // A page that the browser has put aside and takes back.
    addEventListener("pageshow", (event) => event.persisted && this.isWanted && this.handlers.shown());
  }

  // Connects, for everything after the event `seq`.
  connect(seq) {
    this.disconnect();
    this.isWanted = true;
    if (document.hidden) return;
    const source = new EventSource(`${talkPath}/events?after=${seq}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.attempt = 0;
      this.handlers.connected(true);
    });
    source.addEventListener("error", () => {
      if (this.source !== source) return;
      this.handlers.connected(false);
      // The browser tries again by itself, except after a response that is no stream.
      if (source.readyState === EventSource.CLOSED) this.again();
    });
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => this.source === source && this.handlers[kind](JSON.parse(event.data)));
    }
  }

  async again() {
    this.disconnect();
    await pause(backoff(this.attempt++));
    if (this.isWanted && !this.source && !document.hidden) this.handlers.shown();
  }

  disconnect() {
    this.source?.close();
    this.source = null;
  }

  end() {
    this.isWanted = false;
    this.disconnect();
  }
}
