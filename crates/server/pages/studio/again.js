// Begins a session again at one of its answers, perhaps with the files as they are now, another scheme or another model; or begins such
// variants to compare them. How many calls this takes is said before.

import { ApiProblem, api, path } from "./api.js";
import { own, problemNotice, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// A new session that is to begin.
class Variant {
  // `from` is the body that says where it begins.
  constructor(session, from, draw) {
    Object.assign(this, { session, from, draw, options: { script: "", scheme: "", model: "" } });
  }

  change(name, value) {
    this.options[name] = value;
    if (!this.options.script) this.options.scheme = "";
    this.preview();
  }

  // Only the newest preview counts.
  async preview() {
    const number = (this.previews = (this.previews ?? 0) + 1);
    this.plan = this.problem = this.id = null;
    this.draw();
    const plan = await this.ask({ preview: true });
    if (number !== this.previews) return;
    this.plan = plan;
    this.draw();
  }

  async ask(more) {
    const given = Object.entries(this.options).filter(([, value]) => value);
    try {
      return await api.post(path`/v1/sessions/${this.session}/again`, { ...this.from, ...Object.fromEntries(given), ...more });
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
      return null;
    }
  }

  // A variant that has begun does not begin again when the other one of a comparison could not.
  async begin() {
    this.problem = null;
    this.id ??= (await this.ask({}))?.id;
    return this.id;
  }

  fields(choices, name) {
    const { plan, options } = this;
    const choice = (field, label, first, all, isDisabled) => html`<div class="field"><label for="${name}-${field}">${label}</label>
      <select id="${name}-${field}" ?disabled=${isDisabled} @change=${(event) => this.change(field, event.target.value)}>
        <option value="" .selected=${!options[field]}>${first}</option>${(all ?? []).map(([value, shown]) => html`<option value=${value}>${visible(shown)}</option>`)}</select></div>`;
    const each = (list) => list?.map((value) => [value, value]);
    return html`${choice("script", texts.againFiles, texts.againSame, choices?.scripts.map((file) => [file, texts.againCurrent(file)]))}
      ${choice("scheme", texts.againScheme, texts.againUnchanged, each(choices?.schemes), !options.script)}
      ${choice("model", texts.againModel, texts.againUnchanged, each(choices?.models))}
      <div class="again-plan" role="status">${plan ? told(plan) : this.problem ? nothing : texts.againCounting}</div>
      ${problemNotice(this.problem)}`;
  }
}

export class AgainDialog extends HTMLElement {
  // `turn` is where the session waited for the answer, or null for its start.
  open(session, turn, compares) {
    const from = turn ? { after_seq: turn.seq } : { turn: 0 };
    const variant = () => new Variant(session, from, () => this.draw());
    Object.assign(this, { session, compares, variants: compares ? [null, variant()] : [variant()], newVariant: variant, choices: null, isSending: false });
    this.draw();
    this.querySelector("dialog").showModal();
    this.variants.at(-1).preview();
    api.get(path`/v1/sessions/${session}/again`).then((choices) => {
      this.choices = choices;
      this.draw();
    }, () => {});
  }

  async begin() {
    this.isSending = true;
    this.draw();
    const ids = [];
    for (const variant of this.variants) ids.push(variant ? await variant.begin() : this.session);
    this.isSending = false;
    if (!ids.every(Boolean)) return this.draw();
    this.querySelector("dialog").close();
    location.hash = `#/${this.compares ? "compare" : "sessions"}/${ids.map(encodeURIComponent).join("/")}`;
  }

  side(variant, side) {
    const fields = variant?.fields(this.choices, `again-${side}`);
    if (!this.compares) return fields;
    const change = (event) => {
      this.variants[0] = event.target.value ? this.newVariant() : null;
      this.variants[0]?.preview();
      this.draw();
    };
    return html`<fieldset><legend>${"AB"[side]}</legend>${side === 0 ? html`<select aria-label="A" @change=${change}><option value="">${texts.thisSession}</option><option value="new">${texts.newVariant}</option></select>` : nothing}${fields}</fieldset>`;
  }

  draw() {
    const isReady = this.variants.every((variant) => !variant || variant.plan);
    render(
      html`<dialog class="again" aria-labelledby="again-title">
        <h2 id="again-title">${this.compares ? texts.compare : texts.beginAgain}</h2>
        <p class="hint">${this.compares ? texts.compareHint : texts.againHint}</p>
        <div class=${this.compares ? "pair" : ""}>${this.variants.map((variant, side) => this.side(variant, side))}</div>
        <div class="buttons">
          <button type="button" class="main" ?disabled=${this.isSending || !isReady} @click=${() => this.begin()}>${this.compares ? texts.compare : texts.againBegin}</button>
          <button type="button" @click=${() => this.querySelector("dialog").close()}>${texts.cancel}</button>
        </div>
      </dialog>`,
      this,
    );
  }
}

function told({ answers, model_calls: { recorded, earlier, asked }, first_difference: first, effects }) {
  return html`<p>${texts.againAnswers(answers)}</p>
    <p>${texts.againRecorded(recorded, earlier)} <strong>${first ? texts.againAsked(asked) : texts.againNotAsked}</strong></p>
    ${first ? html`<p>${texts.againFirst} ${own(first.action_id)} (${first.round})</p>` : nothing}
    ${effects ? html`<p>${texts.againEffects(effects)}</p>` : nothing}`;
}

customElements.define("again-dialog", AgainDialog);
