// Two sessions side by side: what each said to the same answers, and why. They are aligned by the answers of the person, and then by what
// the script said.

import { ApiProblem } from "./api.js";
import { marked, partners, promptDiff } from "./diff.js";
import { count, duration, longText, own, problemNotice, statusBadge, valueText, visible } from "./display.js";
import { errorBubble } from "./error_bubble.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { SessionStore } from "./session_store.js";
import { lastList } from "./sessions_view.js";
import { texts } from "./texts.js";
import "./virtual_list.js";

// Words are marked in texts of at most this many characters. Of longer ones, it is said that they differ.
const MAX_MARKED = 3000;

const letter = (side) => html`<b class="letter">${"AB"[side]}</b>`;

const actionOf = (message) => message?.event.location?.action_id ?? "";

// The first place in a sorted list whose item is not before `seq`.
function placeOf(list, seq) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].seq < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The turns of a session. Each has the answer with which it began, and its parts: a message of the script with the calls, the variables and
// the degraded replies that belong to it.
function turnsOf(fold) {
  const part = (message) => ({ seq: message?.seq ?? 0, message, calls: [], failures: [], values: new Map() });
  const turns = [{ seq: 0, answer: null, parts: [] }];
  for (const row of fold.rows) {
    if (row.kind !== "message") continue;
    if (row.event.role === "user") turns.push({ seq: row.seq, answer: row, parts: [] });
    else turns.at(-1).parts.push(part(row));
  }
  // What leads to a message is before it; some of what its action does is after it.
  const partOf = (seq, action) => {
    const { parts } = turns[placeOf(turns, seq + 1) - 1];
    if (parts.length === 0) parts.push(part(null));
    const place = placeOf(parts, seq);
    const [before, next] = [parts[place - 1], parts[place]];
    return next && (!before || actionOf(next.message) === action || actionOf(before.message) !== action) ? next : before;
  };
  for (const call of fold.calls) {
    if (!call.isTaken) partOf(call.seq, call.event.location?.action_id).calls.push(call);
  }
  for (const row of fold.rows) {
    if (row.kind === "failure") partOf(row.seq, row.event.location?.action_id).failures.push(row);
  }
  for (const { key, name, changes } of fold.variables.values()) {
    for (const { seq, source, value } of changes) partOf(seq, source).values.set(key, { name, text: valueText(value, 2) });
  }
  return turns;
}

// The variables to which both parts have set different values, or which only one of them has set: `[name, value, value]`.
function differentValues(parts) {
  const keys = new Set(parts.flatMap((part) => [...(part?.values.keys() ?? [])]));
  const found = [...keys].map((key) => parts.map((part) => part?.values.get(key)));
  return found.filter(([one, other]) => one?.text !== other?.text).map(([one, other]) => [(one ?? other).name, one?.text, other?.text]);
}

// The rows of the comparison: turns with the same answer are one row.
function compareSessions(folds) {
  const [one, other] = folds.map(turnsOf);
  return partners(one, other, (turn) => (turn.answer ? `answer ${turn.answer.event.text}` : "")).map((turns, number) => {
    const texts = turns.map((turn) => turn?.answer?.event.text);
    const [left, right] = turns.map((turn) => turn?.parts ?? []);
    const pairs = partners(left, right, (part) => actionOf(part.message)).map((parts, index) => {
      const said = parts.map((part) => part?.message?.event.text);
      const values = differentValues(parts);
      return { key: `${number}/${index}`, parts, values, isOther: said[0] !== said[1] };
    });
    const isSame = turns[0] && turns[1] && texts[0] === texts[1];
    return { key: number, number, turns, isSame, pairs, differs: !isSame || pairs.some((pair) => pair.isOther || pair.values.length) };
  });
}

export class CompareView extends HTMLElement {
  constructor() {
    super();
    this.open = new Set();
    this.rows = [];
  }

  set sessions(ids) {
    this.ids = ids;
  }

  connectedCallback() {
    this.stores = this.ids.map((id) => {
      const store = new SessionStore(id);
      store.addEventListener("change", () => this.draw());
      store.open();
      return store;
    });
    this.draw();
  }

  disconnectedCallback() {
    for (const store of this.stores) store.stop();
  }

  // The rows change only with the events.
  update() {
    const state = this.stores.map((store) => store.events.length).join();
    if (state === this.state) return;
    this.state = state;
    this.rows = compareSessions(this.stores.map((store) => store.fold));
  }

  draw() {
    const isLoading = this.stores.some((store) => store.hasEarlier && !store.problem);
    // With a session that is not there, nothing is compared.
    const isMissing = this.stores.some((store) => store.problem && store.events.length === 0);
    if (!isLoading && !isMissing) this.update();
    const different = this.rows.filter((row) => row.differs);
    const toggle = (event) => {
      this.isShort = event.target.checked;
      this.draw();
    };
    render(
      html`<header class="session-head"><a class="back" href=${lastList.address} aria-label=${texts.backToSessions} title=${texts.backToSessions}>←</a><h1>${texts.compare}</h1>
          <span class="hint" role="status">${isMissing ? "" : isLoading ? texts.loading : texts.turnsDiffer(different.length, this.rows.length)}</span>
          <label class="end"><input type="checkbox" .checked=${Boolean(this.isShort)} @change=${toggle}> ${texts.onlyDifferent}</label></header>
        <div class="pair heads">${this.stores.map((store, side) => this.head(store, side))}</div>
        <virtual-list class="talk-list" aria-label=${texts.compare}></virtual-list>`,
      this,
    );
    const list = this.querySelector("virtual-list");
    const live = this.stores.map((store) => [...store.live.values()].join("\n\n"));
    list.estimate = 110;
    list.renderRow = (item) => (item.live ? this.writing(item.live) : item.parts ? this.pair(item) : this.row(item));
    const rows = this.isShort ? different : this.rows;
    list.items = rows.flatMap((row) => [row, ...row.pairs]).concat(live.some(Boolean) ? { key: "live", live } : []);
  }

  head(store, side) {
    const { fold, outline } = store;
    const facts = [fold.model, outline?.scheme, outline?.script_sha256.slice(0, 8)].filter(Boolean);
    const time = fold.calls.reduce((sum, call) => sum + (call.event.ms ?? 0), 0);
    return html`<section class="side" aria-label="${"AB"[side]}">
      <h2>${letter(side)} <a href="#/sessions/${encodeURIComponent(store.id)}">${own(outline?.name || fold.script || store.id)}</a> ${store.events.length ? statusBadge(fold.status) : nothing}</h2>
      <p class="hint">${visible(facts.join(" · "))}</p>
      <p class="hint sums">${texts.callSums(count(fold.calls.length), count(fold.tokens.in), count(fold.tokens.out))} · ${duration(time)}</p>
      ${store.connection === "lost" ? html`<p class="hint" role="status">${texts.connection.lost}</p>` : nothing}${problemNotice(store.problem)}</section>`;
  }

  writing(live) {
    return html`<div class="pair" aria-hidden="true">${live.map((text, side) => html`<div class="side message ai live"><p class="who">${letter(side)} ${text ? texts.writing : ""}</p>${text ? html`<div class="text" dir="auto">${visible(text)}</div>` : nothing}</div>`)}</div>`;
  }

  row(row) {
    const answers = row.turns.map((turn) => turn?.answer);
    return html`<section class="turn">
      <h3>${row.number ? texts.turnNumber(row.number) : texts.opening} <span class="tag ${row.differs ? "failed" : ""}">${row.differs ? texts.different : texts.same}</span></h3>
      ${row.isSame ? (answers[0] ? this.text(answers[0], 0, "user") : nothing) : html`<div class="pair">${answers.map((answer, side) => (answer ? this.text(answer, side, "user", letter(side)) : this.none(side)))}</div>`}</section>`;
  }

  none(side) {
    return html`<p class="side hint">${letter(side)} ${texts.nothingSaid}</p>`;
  }

  text({ event, seq }, side, who, head, marks) {
    const { action_id: action, round } = event.location ?? {};
    const place = who === "ai" ? html`<span>${own(action)}${round ? html` · ${texts.round(round)}` : nothing}</span>` : texts.person;
    return html`<div class="side message ${who}"><div class="who">${head} ${place}</div>
      ${marks ? html`<div class="text" dir="auto">${marks}</div>` : longText(event.text, `${this.ids[side]}/message/${seq}`, () => this.draw())}</div>`;
  }

  pair(pair) {
    const { key, parts, values } = pair;
    const isOpen = this.open.has(key);
    const toggle = () => {
      if (!this.open.delete(key)) this.open.add(key);
      this.draw();
    };
    const said = parts.map((part) => part?.message);
    const [one, other] = said.map((message) => message?.event.text ?? "");
    // Rows are drawn often, and texts are compared once.
    if (pair.isOther && Math.max(one.length, other.length) <= MAX_MARKED) pair.marks ??= [marked(one, other), marked(other, one)];
    return html`<section class="said"><div class="pair">${said.map((message, side) => (message ? this.text(message, side, "ai", letter(side), pair.marks?.[side]) : this.none(side)))}</div>
      <p><button type="button" class="quiet" aria-expanded=${isOpen} @click=${toggle}>${texts.details}</button>
        <span class="hint">${values.length ? texts.valuesDiffer(values.length) : ""}</span></p>
      ${isOpen ? this.details(pair) : nothing}</section>`;
  }

  details({ parts, values }) {
    const calls = parts.map((part) => part?.calls ?? []);
    return html`<div class="detail">
      <h4>${texts.tabs.calls}</h4><div class="pair">${parts.map((part, side) => html`<div class="side">${letter(side)} ${calls[side].map((call) => this.call(call))}
        ${part?.failures.map((row) => errorBubble(row, this.stores[side], () => this.draw()))}</div>`)}</div>
      ${partners(...calls, ({ event }) => `${event.location?.action_id} ${event.purpose}`).map((pair) => this.prompts(pair))}
      <h4>${texts.tabs.variables}</h4>${values.length ? nothing : html`<p class="hint">${texts.sameValues}</p>`}
      ${values.map(([name, ...pair]) => html`<p><code>${visible(name)}</code></p><div class="pair">${pair.map((text, side) => html`<div class="side">${letter(side)} ${text === undefined ? html`<span class="hint">${texts.notSet}</span>` : longText(text, `${this.ids[side]}/value/${name}`, () => this.draw(), "value")}</div>`)}</div>`)}</div>`;
  }

  call({ event, parseError }) {
    return html`<p>${own(event.location?.action_id ?? "")} · ${texts.purpose[event.purpose] ?? event.purpose} · ${own(event.model)}<br>
      <span class="hint">${texts.tokens} ${event.tokens_in ?? "—"} → ${event.tokens_out ?? "—"} · ${duration(event.ms)} · ${texts.parsedBy} ${parseError ? texts.notParsed : event.parse_retry_count ? texts.strategy(event.parse_retry_count) : "—"}</span></p>
      ${event.error ? html`<p class="warning">${visible(event.error)}</p>` : nothing}`;
  }

  prompts(calls) {
    if (!calls[0] || !calls[1]) return nothing;
    const label = `${texts.prompt} · ${calls[1].event.location?.action_id ?? calls[1].event.purpose}`;
    const details = calls.map((call, side) => (call.detail === null ? {} : this.stores[side].detail(call.detail)));
    const problem = details.find((detail) => detail instanceof ApiProblem);
    const shown = problem ? problemNotice(problem) : details.includes(null) ? html`<p class="hint" role="status">${texts.loading}</p>` : promptDiff(...details, label);
    return html`<h4>${own(label)}</h4>${shown}`;
  }
}

customElements.define("compare-view", CompareView);
