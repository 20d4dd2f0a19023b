// A reply that could not be read: what was tried, why it failed, and the raw reply behind a click.

import { ApiProblem } from "./api.js";
import { longText, problemNotice, stamp, visible } from "./display.js";
import { html, nothing } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// Which replies are open. Rows come and go while one scrolls.
const open = new Set();

export function errorBubble({ seq, event, parseError, purpose }, store, redraw) {
  const { retry_count: tries = 0, strategies = [], final_error: finalError = "" } = parseError;
  const key = `${store.id}/${seq}`;
  const isOpen = open.has(key);
  const toggle = () => {
    if (isOpen) open.delete(key);
    else open.add(key);
    redraw();
  };
  return html`<div class="bubble" role="group" aria-label=${texts.bubble.title}>
    <p class="bubble-title"><span aria-hidden="true">✕</span> ${texts.bubble.title}
      <span class="hint">${texts.purpose[purpose] ?? purpose} · ${event.location?.action_id ?? ""} · ${stamp(event.at)}</span></p>
    <dl class="facts">
      <div><dt>${texts.bubble.retries}</dt><dd>${tries}/${Math.max(tries, strategies.length)}</dd></div>
      <div><dt>${texts.bubble.strategies}</dt><dd><code>${strategies.join(" → ")}</code></dd></div>
      <div><dt>${texts.bubble.finalError}</dt><dd>${visible(finalError)}</dd></div>
    </dl>
    <button type="button" class="quiet" aria-expanded=${isOpen} @click=${toggle}>${isOpen ? texts.bubble.hide : texts.bubble.show}</button>
    ${isOpen ? rawReply(store, seq, key, redraw) : nothing}
  </div>`;
}

function rawReply(store, seq, key, redraw) {
  const detail = store.detail(seq);
  if (!detail) return html`<p class="hint" role="status">${texts.loading}</p>`;
  if (detail instanceof ApiProblem) return problemNotice(detail);
  const reply = detail.debug_info?.llm_response ?? "";
  return reply === "" ? html`<p class="hint">${texts.emptyReply}</p>` : longText(reply, `raw/${key}`, redraw, "raw");
}
