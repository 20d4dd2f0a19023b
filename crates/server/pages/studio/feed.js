// The stream of the events of a session. It is read with `fetch`, because an `EventSource` sends no token.

import { ApiProblem, headers, path, problemOf } from "./api.js";
import { backoff, pause } from "./pause.js";

// The server sends a comment every 15 seconds. A connection that says nothing for so long is gone.
const SILENCE = 50_000;

export class Feed {
  // `event` gets the type and the text of each event; `state` gets `connecting`, `live`, `lost`, `over`, or an ApiProblem.
  constructor(id, { event, state, after }) {
    this.id = id;
    this.event = event;
    this.state = state;
    this.after = after;
    this.isWanted = false;
    // While the page is hidden there is no stream: browsers allow six connections to a server, for all tabs together.
    this.shown = () => (document.hidden ? this.abort?.abort() : this.wake?.());
    document.addEventListener("visibilitychange", this.shown);
    // A page that the browser has put aside and takes back.
    this.back = (event) => event.persisted && this.abort?.abort();
    addEventListener("pageshow", this.back);
  }

  async run() {
    this.isWanted = true;
    let attempt = 0;
    while (this.isWanted) {
      if (document.hidden) await new Promise((resolve) => (this.wake = resolve));
      if (!this.isWanted) return;
      this.state(attempt === 0 ? "connecting" : "lost");
      try {
        if (!(await this.read(() => (attempt = 0)))) return this.state("over");
        // The server has ended the stream, or the page was hidden.
        if (!document.hidden && this.isWanted) attempt += 1;
      } catch (error) {
        if (!this.isWanted) return;
        // Not a loss: nobody looks at it.
        if (document.hidden) {
          attempt = 0;
          continue;
        }
        if (error instanceof ApiProblem && !error.passes) return this.state(error);
        attempt += 1;
        this.wait = error.wait;
      }
      if (attempt > 0 && this.isWanted) {
        this.state("lost");
        await pause(this.wait ?? backoff(Math.min(attempt - 1, 4)));
        this.wait = undefined;
      }
    }
  }

  // Reads one connection to its end. Returns whether there may be more.
  async read(connected) {
    this.abort = new AbortController();
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.abort.abort(), SILENCE);
    };
    try {
      const after = this.after();
      const url = path`/v1/sessions/${this.id}/events`;
      const options = { headers: headers({ accept: "text/event-stream", "last-event-id": String(after) }), cache: "no-store" };
      alive();
      const response = await fetch(url, { ...options, credentials: "omit", signal: this.abort.signal });
      if (response.status === 204) return false;
      if (!response.ok) throw await problemOf(response);
      connected();
      this.state("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let unread = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return true;
        alive();
        // Blocks of a large event come in many pieces, which are searched once.
        const from = Math.max(0, unread.length - 1);
        unread += value;
        unread = this.take(unread, from);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  // Gives the complete blocks to the reader, and returns the rest.
  take(unread, from) {
    let start = 0;
    for (let end = unread.indexOf("\n\n", from); end >= 0; end = unread.indexOf("\n\n", start)) {
      this.block(unread.slice(start, end));
      start = end + 2;
    }
    return start ? unread.slice(start) : unread;
  }

  block(block) {
    let kind = "";
    const data = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("event:")) kind = line.slice(6).trim();
    }
    if (kind && data.length) this.event(kind, data.join("\n"));
  }

  stop() {
    this.isWanted = false;
    this.abort?.abort();
    this.wake?.();
    document.removeEventListener("visibilitychange", this.shown);
    removeEventListener("pageshow", this.back);
  }
}
