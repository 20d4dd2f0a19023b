// The talk: what was said, with what went wrong where it went wrong, and the place to answer.

import { ApiProblem, api, path, randomKey } from "./api.js";
import { line, longText, own, problemNotice, stamp, visible } from "./display.js";
import { errorBubble } from "./error_bubble.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";
import "./virtual_list.js";

export class TalkPane extends HTMLElement {
  constructor() {
    super();
    this.draft = "";
    this.sending = null;
    this.problem = null;
    this.heard = "";
  }

  // `select` is told the event of which somebody wants to see more.
  show(store, { select, selected }) {
    this.store = store;
    this.select = select;
    this.selected = selected;
    this.draw();
  }

  // An answer whose response was lost has arrived nevertheless, and a refusal is about a question that was there before.
  settle() {
    if (this.problem && this.store.fold.waiting?.seq > this.problemSeq) this.problem = null;
    if (!this.lastKey || this.store.answered !== `key:${this.lastKey.key}`) return;
    if (this.draft === this.lastKey.text) this.draft = "";
    this.lastKey = this.problem = null;
  }

  draw() {
    const { store } = this;
    const fold = store.shown;
    this.settle();
    const live = store.past === null ? [...store.live].map(([id, text]) => ({ key: `live-${id}`, kind: "live", text })) : [];
    const rows = live.length ? fold.rows.concat(live) : fold.rows;
    render(
      html`<virtual-list class="talk-list" aria-label=${texts.talk} @end-changed=${() => this.draw()}></virtual-list>
        ${this.newer(rows)}
        <p class="unseen" role="log" aria-live="polite">${this.announced(fold)}</p>
        ${this.composer(fold)}`,
      this,
    );
    const list = this.querySelector("virtual-list");
    list.follows = true;
    list.renderRow = (row) => this.row(row);
    if (!list.wasShown) {
      list.wasShown = true;
      list.toEnd();
    }
    list.items = rows;
    this.list = list;
  }

  newer(rows) {
    const isAway = this.list && !this.list.isAtEnd && rows.length > 0 && this.store.past === null;
    return isAway ? html`<button type="button" class="newer" @click=${() => this.list.toEnd()}>${texts.toEnd}</button>` : nothing;
  }

  // The last message is read out when it is complete.
  announced(fold) {
    const last = fold.rows.findLast((row) => row.kind === "message" && row.event.role === "ai");
    return last ? line(last.event.text, 300) : "";
  }

  row(row) {
    const redraw = () => this.list.schedule();
    switch (row.kind) {
      case "message":
        return this.message(row, redraw);
      case "live":
        return html`<div class="message ai live" aria-hidden="true"><div class="who">${texts.writing}</div><div class="text" dir="auto">${visible(row.text)}</div></div>`;
      case "failure":
        return errorBubble(row, this.store, redraw);
      case "request":
      case "decision":
        return this.requestRow(row);
      case "end":
        return html`<p class="divider end">${texts.ends[row.event.type]} · ${stamp(row.event.at)}${row.event.summary?.reason ? html`<br>${visible(row.event.summary.reason)}` : nothing}</p>`;
      default:
        return this.note(row);
    }
  }

  message({ event, seq }, redraw) {
    const isUser = event.role === "user";
    const { action_id: action, round } = event.location ?? {};
    return html`<div class="message ${isUser ? "user" : "ai"} ${this.selected === seq ? "selected" : ""}" data-seq=${seq}>
      <div class="who"><span>${isUser ? texts.person : texts.script}</span>
        <button type="button" class="place" title=${texts.showCall} @click=${() => this.select(seq)}>${own(action ?? "")}${round ? html` · ${texts.round(round)}` : nothing}</button>
        ${stamp(event.at)}</div>
      ${longText(event.text, `${this.store.id}/message/${seq}`, redraw)}
    </div>`;
  }

  requestRow({ kind, event }) {
    if (kind === "request") {
      return html`<div class="note strong"><p><strong>${texts.requestOpened(event.kind)}</strong> ${stamp(event.at)}</p><p dir="auto">${visible(event.prompt)}</p></div>`;
    }
    const decision = texts.decisions[event.decision] ?? event.decision ?? texts.timeCame;
    return html`<div class="note"><p><strong>${decision}</strong>${event.by ? html` · ${own(event.by)}` : nothing} ${stamp(event.at)}</p>
      ${event.comment ? html`<p dir="auto">${visible(event.comment)}</p>` : nothing}</div>`;
  }

  note({ event }) {
    switch (event.type) {
      case "phase_entered":
        return html`<p class="divider phase">${texts.phase} · ${own(event.name ?? event.location?.phase_id)}</p>`;
      case "topic_entered":
        return html`<p class="divider">${own(event.name ?? event.location?.topic_id)}</p>`;
      case "skipped":
        return html`<p class="note">${texts.skipped} <code>${visible(event.name)}</code> · ${visible(event.why)}</p>`;
      case "undone":
        return html`<p class="note">${texts.undone(event.complete)} <code>${visible(event.location?.action_id ?? "")}</code> ${stamp(event.at)}</p>`;
      case "taken_back":
        return html`<p class="note">${texts.takenBack(event.from_seq, event.to_seq)} ${stamp(event.at)}</p>`;
      case "warning":
      case "error":
        return html`<div class="note ${event.type}"><p><strong>${texts.severity[event.type]}</strong> ${visible(event.message)}</p>${event.help ? html`<p class="hint">${visible(event.help)}</p>` : nothing}</div>`;
      case "tool_called":
        return html`<p class="note">${texts.toolCalled} <code>${visible(event.tool)}</code> · ${visible(event.status)} · ${event.ms} ms${event.error ? html` · ${visible(event.error)}` : nothing}</p>`;
      case "orchestrated":
        return html`<p class="note">${event.accepted ? texts.planAccepted : texts.planRejected} · ${visible(event.why)}</p>`;
      default:
        return html`<p class="note">${texts.eventNames[event.type] ?? event.type} · <code>${visible(event.reason)}</code> → <code>${visible(event.route)}</code> · ${visible(event.why)}</p>`;
    }
  }

  composer(fold) {
    if (this.store.past !== null) return nothing;
    // What was written can still be copied.
    if (this.store.connection === "gone") return this.draft.trim() ? html`<div class="composer"><textarea rows="2" dir="auto" readonly aria-label=${texts.answer} .value=${this.draft}></textarea></div>` : nothing;
    const { waiting } = fold;
    if (["completed", "failed", "cancelled"].includes(fold.status)) return html`<p class="composer hint">${texts.sessionOver}</p>`;
    const canSend = waiting && ["input", "interrupted_effect"].includes(waiting.for) && !this.sending;
    const isElsewhere = waiting && !["input", "interrupted_effect"].includes(waiting.for);
    const isStopped = !waiting && fold.status === "stopped";
    const note = isElsewhere ? texts.waitsFor(waiting.for) : isStopped ? texts.hasStopped : !waiting ? texts.turnRuns : "";
    // Also a turn whose server was killed, for which nothing says so.
    const canContinue = isStopped || (!waiting && !this.sending && this.store.isStill);
    return html`<form class="composer" @submit=${(event) => this.submit(event)}>
      ${problemNotice(this.problem)}
      <label class="unseen" for="answer">${texts.answer}</label>
      <textarea id="answer" rows="2" dir="auto" .value=${this.draft} placeholder=${texts.answerHere} @input=${(event) => (this.draft = event.target.value)} @keydown=${(event) => this.key(event)}></textarea>
      <button type="submit" class="main" ?disabled=${!canSend}>${texts.send}</button>
      <p class="hint" role="status">${this.sending ? texts.sending : note}</p>
      ${canContinue ? html`<button type="button" class="quiet" ?disabled=${this.isContinuing} @click=${() => this.proceed()}>${texts.continueTurn}</button>` : nothing}
    </form>`;
  }

  // Nothing happens to a session that waits, or whose turn runs.
  async proceed() {
    this.isContinuing = true;
    this.problem = null;
    this.draw();
    try {
      await api.post(path`/v1/sessions/${this.store.id}/continue`);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
      this.problemSeq = this.store.fold.lastSeq;
    } finally {
      this.isContinuing = false;
      this.draw();
    }
  }

  key(event) {
    // While an input method composes a word, the key ends the word.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  }

  async submit(event) {
    event.preventDefault();
    const { waiting } = this.store.fold;
    const text = this.draft;
    if (!text.trim() || !waiting || this.sending) return;
    const isAgain = this.lastKey?.text === text && this.lastKey.answer_id === waiting.answer_id;
    this.sending = { key: isAgain ? this.lastKey.key : randomKey(), text, answer_id: waiting.answer_id };
    // The same text for the same question after a lost response is the same answer.
    this.lastKey = this.sending;
    this.problem = null;
    this.list.toEnd();
    this.draw();
    try {
      await api.post(path`/v1/sessions/${this.store.id}/messages`, { text, answer_id: waiting.answer_id }, { "idempotency-key": this.sending.key });
      this.lastKey = null;
      if (this.draft === text) this.draft = "";
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      const problem = await this.refusal(error, waiting);
      // The text stays, unless the answer has arrived.
      if (this.lastKey) this.problem = problem;
    } finally {
      this.sending = null;
      this.draw();
    }
  }

  // Why an answer was not accepted, in words that name no ids.
  async refusal(error, waiting) {
    this.problemSeq = this.store.fold.lastSeq;
    if (waiting.for !== "input" || !error.type.endsWith("/conflict")) return error;
    // The next question may be there before its event.
    const state = await api.get(path`/v1/sessions/${this.store.id}`).catch(() => null);
    this.problemSeq = Math.max(this.problemSeq, state?.last_seq ?? 0);
    return new ApiProblem(error.status, { detail: texts.answeredElsewhere });
  }
}

customElements.define("talk-pane", TalkPane);
