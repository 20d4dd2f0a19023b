// Begins a session again at one of its answers, perhaps with the files as they are now, another scheme or another model. How many calls this
// takes is said before.

import { ApiProblem, api, path } from "./api.js";
import { own, problemNotice } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// How long a person types before the calls are counted, in milliseconds.
const TYPING = 400;

export class AgainDialog extends HTMLElement {
  // `script` is the script of the session, `seq` the event after which it waited for the answer.
  open(session, script, seq) {
    Object.assign(this, { session, script, seq });
    this.options = { current: false, scheme: "", model: "" };
    this.isSending = false;
    this.draw();
    this.querySelector("dialog").showModal();
    this.preview();
  }

  body(more) {
    const { current, scheme, model } = this.options;
    const body = { after_seq: this.seq, ...more };
    if (current) body.script = this.script;
    if (current && scheme.trim()) body.scheme = scheme.trim();
    if (model.trim()) body.model = model.trim();
    return body;
  }

  change(name, value) {
    this.options[name] = value;
    this.plan = null;
    this.draw();
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.preview(), name === "current" ? 0 : TYPING);
  }

  // Only the newest preview counts.
  async preview() {
    const number = (this.previews = (this.previews ?? 0) + 1);
    this.plan = null;
    this.problem = null;
    const plan = await this.ask({ preview: true });
    if (number !== this.previews) return;
    this.plan = plan;
    this.draw();
  }

  async ask(more) {
    try {
      return await api.post(path`/v1/sessions/${this.session}/again`, this.body(more));
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
      return null;
    }
  }

  async begin() {
    this.isSending = true;
    this.problem = null;
    this.draw();
    const made = await this.ask({});
    this.isSending = false;
    if (!made) return this.draw();
    this.close();
    location.hash = `#/sessions/${encodeURIComponent(made.id)}`;
  }

  close() {
    clearTimeout(this.typing);
    this.querySelector("dialog")?.close();
  }

  draw() {
    const { options, plan } = this;
    const choice = (isCurrent, label) => html`<label><input type="radio" name="again-files" .checked=${options.current === isCurrent} @change=${() => this.change("current", isCurrent)}> ${label}</label>`;
    render(
      html`<dialog class="again" aria-labelledby="again-title">
        <h2 id="again-title">${texts.beginAgain}</h2>
        <p class="hint">${texts.againHint}</p>
        <fieldset><legend>${texts.againFiles}</legend>${choice(false, texts.againSame)}${choice(true, texts.againCurrent)}</fieldset>
        <div class="field"><label for="again-scheme">${texts.againScheme}</label><input id="again-scheme" type="text" autocomplete="off" ?disabled=${!options.current} .value=${options.scheme} @input=${(event) => this.change("scheme", event.target.value)}></div>
        <div class="field"><label for="again-model">${texts.againModel}</label><input id="again-model" type="text" autocomplete="off" .value=${options.model} @input=${(event) => this.change("model", event.target.value)}></div>
        <div class="again-plan" role="status">${plan ? this.told(plan) : this.problem ? nothing : texts.againCounting}</div>
        ${problemNotice(this.problem)}
        <div class="buttons">
          <button type="button" class="main" ?disabled=${this.isSending || !plan} @click=${() => this.begin()}>${texts.againBegin}</button>
          <button type="button" @click=${() => this.close()}>${texts.cancel}</button>
        </div>
      </dialog>`,
      this,
    );
  }

  told({ answers, model_calls, first_difference, effects }) {
    const { recorded, earlier, asked } = model_calls;
    return html`<p>${texts.againAnswers(answers)}</p>
      <p>${texts.againRecorded(recorded, earlier)} <strong>${first_difference ? texts.againAsked(asked) : texts.againNotAsked}</strong></p>
      ${first_difference ? html`<p>${texts.againFirst} ${own(first_difference.action_id)} (${first_difference.round})</p>` : nothing}
      ${effects ? html`<p>${texts.againEffects(effects)}</p>` : nothing}`;
  }
}

customElements.define("again-dialog", AgainDialog);
