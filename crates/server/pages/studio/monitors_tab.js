// The feedback of monitors, each beside the prompt that it changed.

import { ApiProblem } from "./api.js";
import { lineDiff, promptText } from "./diff.js";
import { own, problemNotice, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// How many unchanged lines are shown around a change.
const CONTEXT = 2;

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
    const lines = lineDiff(promptText(last.debug_info?.llm_prompt ?? ""), promptText(now.debug_info?.llm_prompt ?? ""));
    return html`<p class="hint">${texts.promptChange}</p><div class="diff" tabindex="0" role="group" aria-label=${texts.promptChange}>${around(lines).map((part) =>
      part === null ? html`<p class="gap">⋯</p>` : html`<p class=${part.kind}><span aria-hidden="true">${{ added: "+", removed: "−", same: " " }[part.kind]}</span><span class="unseen">${texts.lineKinds[part.kind]}</span>${visible(part.text)}</p>`,
    )}</div>`;
  }
}

// The changed lines with some around them; null where others are left out.
function around(lines) {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, index - CONTEXT), Math.min(lines.length, index + CONTEXT + 1));
  });
  const parts = [];
  lines.forEach((line, index) => {
    if (near[index]) parts.push(line);
    else if (parts.at(-1) !== null) parts.push(null);
  });
  return parts;
}

customElements.define("monitors-tab", MonitorsTab);
