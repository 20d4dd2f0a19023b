// The timeline: steps back turn by turn, and begins again from a turn, or compares what follows from it.

import "./again.js";
import { line, stamp } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

export class TimelineBar extends HTMLElement {
  show(store) {
    this.store = store;
    this.draw();
  }

  draw() {
    const { store } = this;
    const { turns } = store.fold;
    if (turns.length === 0) return render(nothing, this);
    const isPast = store.past !== null;
    const index = isPast ? turns.findIndex(({ seq }) => seq === store.past) : turns.length - 1;
    const turn = turns[index];
    render(
      html`<div class="timeline ${isPast ? "past" : ""}" role="group" aria-label=${texts.timeline}>
        <button type="button" class="step" aria-label=${texts.turnBack} title=${texts.turnBack} ?disabled=${index === 0} @click=${() => this.go(index - 1)}>◀</button>
        <input type="range" min="1" max=${turns.length} .value=${String(index + 1)} aria-label=${texts.turn} aria-valuetext=${texts.turnOf(index + 1, turns.length)} @input=${(event) => this.go(Number(event.target.value) - 1)}>
        <button type="button" class="step" aria-label=${texts.turnForward} title=${texts.turnForward} ?disabled=${index === turns.length - 1} @click=${() => this.go(index + 1)}>▶</button>
        <span class="hint" role="status">${isPast ? texts.turnOf(index + 1, turns.length) : texts.now} ${isPast ? html`· ${stamp(turn.at)} · #${turn.seq}` : nothing}</span>
        ${isPast ? html`<button type="button" @click=${() => this.store.showPast(null)}>${texts.toNow}</button>` : nothing}
        <button type="button" ?disabled=${!turn.isAnswered} @click=${() => this.again(turn)} title=${line(turn.prompt)}>${texts.beginAgain}</button>
        <button type="button" @click=${() => this.again(isPast && turn.isAnswered ? turn : null, true)}>${texts.compare}</button>
      </div><again-dialog></again-dialog>`,
      this,
    );
  }

  go(index) {
    const { turns } = this.store.fold;
    const turn = turns[Math.max(0, Math.min(index, turns.length - 1))];
    this.store.showPast(index >= turns.length - 1 ? null : turn.seq);
  }

  again(turn, compares) {
    this.querySelector("again-dialog").open(this.store.id, turn, compares);
  }
}

customElements.define("timeline-bar", TimelineBar);
