// The feedback of monitors, each beside the prompt that it changed.

import { ApiProblem } from "./api.js";
import { promptDiff } from "./diff.js";
import { own, problemNotice, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

export class MonitorsTab extends HTMLElement {
  constructor() {
    super();
    this.open = new Set();
    this.limit = 20;
  }

  show(store, { select }) {
    this.store = store;
    this.select = select;
    this.draw();
  }

  draw() {
    const { feedback } = this.store.shown;
    const shown = feedback.slice(-this.limit).reverse();
    const more = () => {
      this.limit += 20;
      this.draw();
    };
    render(
      html`${feedback.length === 0 ? html`<p class="empty">${texts.noFeedback}</p>` : nothing}
        <ul class="plain">${shown.map((entry) => this.entry(entry))}</ul>
        ${feedback.length > shown.length ? html`<button type="button" class="quiet" @click=${more}>${texts.showMore}</button>` : nothing}`,
      this,
    );
  }

  entry({ seq, event, usedCall }) {
    const isOpen = this.open.has(seq);
    const toggle = () => {
      if (isOpen) this.open.delete(seq);
      else this.open.add(seq);
      this.draw();
    };
    const { metadata, ...analysis } = event.analysis ?? {};
    return html`<li class="feedback">
      <p><button type="button" class="place" @click=${() => this.select(seq)}>${own(event.action_id)} · ${texts.round(event.round)}</button> ${stamp(event.at)}
        ${metadata?.parse_error ? html`<span class="tag failed">${texts.unreadable}</span>` : nothing}</p>
      <dl class="facts">${Object.entries(analysis).filter(([, value]) => value !== null).map(([name, value]) => html`<div><dt>${texts.analysis[name] ?? own(name)}</dt><dd dir="auto">${visible(typeof value === "object" ? valueText(value, 2) : valueText(value))}</dd></div>`)}</dl>
      ${usedCall === null
        ? html`<p class="hint">${texts.notUsed}</p>`
        : html`<button type="button" class="quiet" aria-expanded=${isOpen} @click=${toggle}>${texts.usedIn(usedCall.event.location?.round ?? event.round)}</button>${isOpen ? this.change(usedCall) : nothing}`}
    </li>`;
  }

  // The prompt of the turn that used it, compared with the one before it: of the same action, if there is one.
  change(found) {
    const earlier = this.store.shown.calls.filter((call) => call.event.purpose === "action" && call.detail && call.seq < found.seq);
    const before = earlier.findLast((call) => call.event.location?.path === found.event.location?.path) ?? earlier.at(-1);
    if (!found.detail) return html`<p class="hint">${texts.noExchange}</p>`;
    const [now, last] = [this.store.detail(found.detail), before ? this.store.detail(before.detail) : {}];
    for (const detail of [now, last]) {
      if (!detail) return html`<p class="hint" role="status">${texts.loading}</p>`;
      if (detail instanceof ApiProblem) return problemNotice(detail);
    }
    return html`<p class="hint">${texts.promptChange}</p>${promptDiff(last, now, texts.promptChange)}`;
  }
}

customElements.define("monitors-tab", MonitorsTab);
