// Every model call: its prompt, its raw reply, tokens, times, and what was coerced.

import { ApiProblem } from "./api.js";
import { count, duration, longText, own, problemNotice, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";
import "./virtual_list.js";

// How long, in milliseconds, a call is the last one before its prompt is asked for: they may follow each other fast.
const SETTLED = 150;

export class CallsTab extends HTMLElement {
  show(store, { selected, select }) {
    this.store = store;
    this.select = select;
    const { calls } = store.shown;
    // The last call up to the event that is looked at.
    const index = selected === null ? calls.length - 1 : calls.findLastIndex((call) => call.seq <= selected || call.detail === selected);
    const isNew = this.current?.seq !== calls[index]?.seq;
    if (isNew) this.settles = selected === null ? performance.now() + SETTLED : 0;
    this.current = calls[Math.max(index, 0)] ?? null;
    this.draw(isNew && selected !== null, Math.max(index, 0));
  }

  draw(scrolls = false, index = 0) {
    const { calls, tokens } = this.store.shown;
    render(
      html`${calls.length === 0 ? html`<p class="empty">${texts.noCalls}</p>` : nothing}
        <p class="hint sums" ?hidden=${calls.length === 0}>${texts.callSums(count(calls.length), count(tokens.in), count(tokens.out))}</p>
        <virtual-list class="calls-list" aria-label=${texts.tabs.calls} ?hidden=${calls.length === 0}></virtual-list>
        ${this.current ? this.detail(this.current) : nothing}`,
      this,
    );
    const list = this.querySelector("virtual-list");
    list.keyOf = (call) => call.seq;
    list.estimate = 30;
    list.follows = true;
    list.renderRow = (call) => this.row(call);
    if (!list.wasShown) {
      list.wasShown = true;
      list.toEnd();
    }
    list.items = calls;
    if (scrolls) list.scrollTo(index);
  }

  row(call) {
    const { event } = call;
    const isCurrent = call === this.current;
    const isBad = Boolean(call.parseError || event.error);
    return html`<button type="button" class="call ${isCurrent ? "selected" : ""} ${call.isTaken ? "taken" : ""}" aria-pressed=${isCurrent} @click=${() => this.select(call.seq)}>
      <span class="mark ${isBad ? "failed" : "done"}" aria-hidden="true">${isBad ? "✕" : "●"}</span>
      <span class="name">${own(event.location?.action_id ?? event.purpose)}</span>
      <span class="hint">${event.purpose === "action" ? (event.location?.round ? texts.round(event.location.round) : "") : texts.purpose[event.purpose] ?? event.purpose}${event.reask ? ` · ${texts.reask(event.reask)}` : ""}</span>
      <span class="hint end">${duration(event.ms)}</span>
      ${isBad ? html`<span class="unseen">${texts.status.failed}</span>` : nothing}
    </button>`;
  }

  detail(call) {
    const { event } = call;
    const coerced = Array.isArray(event.bent) ? event.bent : [];
    return html`<section class="detail" aria-label=${texts.call}>
      <h2>${own(event.location?.action_id ?? event.purpose)} <span class="hint">${event.call_id} · ${stamp(event.at)}</span></h2>
      <dl class="facts columns">
        <div><dt>${texts.model}</dt><dd>${own(event.model)}</dd></div>
        <div><dt>${texts.tokens}</dt><dd>${event.tokens_in ?? "—"} → ${event.tokens_out ?? "—"}</dd></div>
        <div><dt>${texts.time}</dt><dd>${duration(event.ms)}${event.first_token_ms === null ? nothing : html` <span class="hint">${texts.firstToken(duration(event.first_token_ms))}</span>`}</dd></div>
        <div><dt>${texts.attempts}</dt><dd>${event.attempts ?? "—"}</dd></div>
        ${event.cost === undefined ? nothing : html`<div><dt>${texts.cost}</dt><dd>${event.cost} ${event.currency ?? ""}</dd></div>`}
        ${event.finish_reason ? html`<div><dt>${texts.finish}</dt><dd>${visible(event.finish_reason)}</dd></div>` : nothing}
        <div><dt>${texts.parsedBy}</dt><dd>${call.parseError ? texts.notParsed : event.parse_retry_count ? texts.strategy(event.parse_retry_count) : "—"}</dd></div>
      </dl>
      ${call.isTaken ? html`<p class="hint">${texts.callTaken}</p>` : nothing}
      ${event.cut_off ? html`<p class="warning">${texts.cutOff}</p>` : nothing}
      ${event.refusal ? html`<p class="warning">${texts.refused}</p>` : nothing}
      ${event.error ? html`<p class="warning">${visible(event.error)}</p>` : nothing}
      ${(event.passed_over ?? []).map((other) => html`<p class="warning">${visible(other.model)}: ${visible(other.error)}</p>`)}
      <h3>${texts.coerced}</h3>
      ${coerced.length ? html`<ul class="plain">${coerced.map((item) => html`<li>${coercion(item)}</li>`)}</ul>` : html`<p class="hint">${texts.nothingCoerced}</p>`}
      ${event.repairs && event.repairs.length ? html`<p class="hint">${texts.repairs}: <code>${visible(valueText(event.repairs))}</code></p>` : nothing}
      ${this.exchange(call)}
    </section>`;
  }

  exchange(call) {
    if (call.detail === null) return html`<p class="hint">${texts.noExchange}</p>`;
    const wait = this.settles - performance.now();
    if (wait > 0) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.isConnected && this.draw(), wait);
    }
    const detail = wait > 0 ? null : this.store.detail(call.detail);
    if (!detail) return html`<p class="hint" role="status">${texts.loading}</p>`;
    if (detail instanceof ApiProblem) return problemNotice(detail);
    const { llm_prompt: prompt = [], llm_response: reply = "" } = detail.debug_info ?? {};
    const key = `${this.store.id}/${call.detail}`;
    const redraw = () => this.draw();
    const messages = Array.isArray(prompt) ? prompt : [{ role: "prompt", content: prompt }];
    return html`<h3>${texts.rawReply}</h3>
      ${reply === "" ? html`<p class="hint">${texts.emptyReply}</p>` : longText(reply, `${key}/reply`, redraw, "raw")}
      <h3>${texts.prompt}</h3>
      ${messages.map(
        (message, index) => html`<div class="prompt-message"><p class="hint">${texts.roles[message.role] ?? message.role}</p>
          ${longText(valueText(message.content, 2), `${key}/prompt/${index}`, redraw, "raw")}</div>`,
      )}`;
  }
}

// What was coerced in one place.
function coercion(item) {
  if (typeof item !== "object" || item === null) return html`<code>${visible(valueText(item))}</code>`;
  const { path, bending, expected, found } = item;
  return html`<code>${visible(path || "/")}</code> · ${texts.coercions[bending] ?? bending} <span class="hint">${texts.expectedFound(visible(expected), visible(found))}</span>`;
}

customElements.define("calls-tab", CallsTab);
