// A session as this page knows it: its newest events first, then the earlier ones, and what happens now.

import { ApiProblem, api, path } from "./api.js";
import { parseExact } from "./display.js";
import { Feed } from "./feed.js";
import { backoff, pause } from "./pause.js";
import { SessionFold } from "./session_fold.js";

const FIRST_PAGE = 400;
const PAGE = 1000;

// After this time without an event, in milliseconds, a turn may be one that nothing runs.
const STILL = 15_000;

// How often it is drawn while much happens, in milliseconds: people see no more, and the browser has time for what they do.
const DRAWN_EVERY = 60;

// How many events with their prompts are kept.
const MAX_DETAILS = 60;

export class SessionStore extends EventTarget {
  constructor(id) {
    super();
    this.id = id;
    this.events = [];
    this.fold = new SessionFold();
    this.pastFold = null;
    this.past = null;
    this.outline = null;
    this.connection = "connecting";
    this.problem = null;
    this.hasEarlier = true;
    this.live = new Map();
    this.details = new Map();
    this.requests = [];
    // Whether it is not known yet what the session waits for.
    this.isAskingForRequests = true;
    // What is entered for requests, by their ids.
    this.drafts = new Map();
    this.isScheduled = false;
    this.isStopped = false;
    this.feed = new Feed(id, {
      event: (_, data) => this.receive(data),
      state: (state) => this.connected(state),
      after: () => this.events.at(-1)?.seq ?? 0,
    });
  }

  // What is shown: the session now, or as it was at an earlier event.
  get shown() {
    return this.pastFold ?? this.fold;
  }

  // Draws in the next frame, or in a later one if it was drawn just now.
  changed() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const draw = () =>
      requestAnimationFrame((now) => {
        this.isScheduled = false;
        this.drawn = now;
        if (!this.isStopped) this.dispatchEvent(new Event("change"));
      });
    const wait = (this.drawn ?? -DRAWN_EVERY) + DRAWN_EVERY - performance.now();
    if (wait > 0) setTimeout(draw, wait);
    else draw();
  }

  async open() {
    this.loadOutline();
    this.loadRequests();
    const page = await this.lasting(() => api.get(this.pagePath({ limit: FIRST_PAGE })));
    if (!page) return;
    this.takePage(page);
    this.happens();
    this.feed.run();
    for (let before = page.before; before && !this.isStopped; ) {
      const earlier = await this.lasting(() => api.get(this.pagePath({ limit: PAGE, before })));
      if (!earlier) return;
      before = earlier.before;
      this.takePage(earlier);
    }
    this.hasEarlier = false;
    this.changed();
  }

  pagePath(values) {
    return `${path`/v1/sessions/${this.id}/journal`}?${new URLSearchParams({ brief: true, ...values })}`;
  }

  // Sends a request until it succeeds or cannot succeed.
  async lasting(send) {
    for (let attempt = 0; !this.isStopped; attempt++) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        if (!error.passes) return this.goes(error);
        this.connection = "lost";
        this.changed();
        await pause(error.wait ?? backoff(Math.min(attempt, 4)));
      }
    }
    return null;
  }

  async loadOutline() {
    try {
      this.outline = await api.get(path`/v1/sessions/${this.id}/outline`);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      // The tree has the parts that were reached.
      this.outlineProblem = error;
    }
    this.changed();
  }

  async loadRequests() {
    try {
      this.requests = (await api.get(`/v1/requests?${new URLSearchParams({ session: this.id })}`)).requests;
      this.isAskingForRequests = false;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.isAskingForRequests = error.passes && !this.isStopped && this.connection !== "gone";
      if (this.isAskingForRequests) this.askForRequests(error.wait ?? backoff(1));
    }
    this.changed();
  }

  takePage(page) {
    const known = this.events[0]?.seq ?? Infinity;
    this.events = page.events.filter((event) => event.seq < known).concat(this.events);
    if (!page.before) this.hasEarlier = false;
    this.refold();
  }

  refold() {
    this.fold = SessionFold.of(this.events);
    // A turn that was taken back is not in the timeline any more, and nothing can begin from it.
    this.showPast(this.fold.turns.some(({ seq }) => seq === this.past) ? this.past : null);
  }

  // Whether nothing has happened for a while.
  get isStill() {
    return performance.now() - (this.happened ?? 0) > STILL;
  }

  happens() {
    this.happened = performance.now();
    clearTimeout(this.stillTimer);
    this.stillTimer = setTimeout(() => this.changed(), STILL + 100);
  }

  receive(data) {
    this.happens();
    const event = parseExact(data);
    if (event.seq === undefined) return this.piece(event);
    const last = this.events.at(-1)?.seq ?? 0;
    if (event.seq <= last) return;
    this.strip(event);
    this.events.push(event);
    if (event.type === "message") this.live.delete(event.message_id);
    if (event.role === "user") this.answered = event.answer_id;
    if (["waiting", "request_opened", "request_answered"].includes(event.type) || this.requests.length) this.askForRequests();
    // Events before it do not count any more, nor does what was being written.
    if (event.type === "taken_back") {
      this.live.clear();
      return this.refold();
    }
    this.fold.add(event);
    this.changed();
  }

  askForRequests(wait = 150) {
    clearTimeout(this.requestTimer);
    this.requestTimer = setTimeout(() => this.loadRequests(), wait);
  }

  // Prompts and raw replies are asked for when somebody looks at them.
  strip(event) {
    const info = event.debug_info;
    if (!info || (info.llm_prompt === undefined && info.llm_response === undefined)) return;
    delete info.llm_prompt;
    delete info.llm_response;
    info.left_out = true;
  }

  // A part of a message that is being written.
  piece(event) {
    if (event.type === "message_delta") {
      this.live.set(event.message_id, (this.live.get(event.message_id) ?? "") + event.text);
    } else if (event.type === "message_discarded") {
      for (const id of this.live.keys()) {
        if (id === event.message_id || id.startsWith(`${event.message_id}.`)) this.live.delete(id);
      }
    } else return;
    this.changed();
  }

  connected(state) {
    if (state instanceof ApiProblem) return this.goes(state);
    // Pieces that were missed are in no event.
    if (state === "lost" || state === "connecting") this.live.clear();
    if (state === "live" && !this.outline) this.loadOutline();
    if (state === "live" && this.connection === "lost") this.askForRequests();
    this.connection = state;
    this.changed();
  }

  // Nothing is read any more: the session was deleted, or this token may not see it.
  goes(problem) {
    this.problem = problem;
    this.connection = "gone";
    this.hasEarlier = false;
    this.live.clear();
    this.requests = [];
    this.isAskingForRequests = false;
    this.changed();
    return null;
  }

  // An event with its prompt and raw reply; nothing while it is loaded.
  detail(seq) {
    const known = this.details.get(seq);
    if (known) return known.event ?? known.problem ?? null;
    if (this.details.size >= MAX_DETAILS) this.details.delete(this.details.keys().next().value);
    const entry = {};
    this.details.set(seq, entry);
    const url = `${path`/v1/sessions/${this.id}/journal`}?${new URLSearchParams({ after: seq - 1, before: seq + 1, limit: 1 })}`;
    api.get(url).then(
      (page) => (entry.event = page.events[0] ?? {}),
      (error) => {
        if (!(error instanceof ApiProblem)) throw error;
        entry.problem = error;
        if (error.passes) setTimeout(() => this.details.delete(seq), 3000);
      },
    ).finally(() => this.changed());
    return null;
  }

  // Shows the session as it was after this event; null shows it as it is now.
  showPast(seq) {
    this.past = seq;
    this.pastFold = seq === null ? null : SessionFold.of(this.events, seq);
    this.changed();
  }

  stop() {
    this.isStopped = true;
    this.feed.stop();
    clearTimeout(this.requestTimer);
    clearTimeout(this.stillTimer);
  }
}
