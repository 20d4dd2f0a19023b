// The variables by scope: each with who set it and when, and its earlier values.

import { longText, own, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// How many variables of a scope are drawn at first.
const LIMIT = 150;

// How many earlier values of a variable are drawn at first.
const EARLIER = 50;

const SCOPES = ["topic", "phase", "session", "global"];

export class VariablesTab extends HTMLElement {
  constructor() {
    super();
    this.filter = "";
    this.limit = LIMIT;
    this.earlier = new Map();
  }

  show(store, { select }) {
    this.store = store;
    this.select = select;
    this.draw();
  }

  draw() {
    const all = [...this.store.shown.variables.values()];
    const found = all.filter((variable) => variable.name.toLowerCase().includes(this.filter.toLowerCase()));
    render(
      html`${all.length === 0 ? html`<p class="empty">${texts.noVariables}</p>` : html`<label class="field"><span>${texts.find}</span><input type="search" .value=${this.filter} @input=${(event) => this.find(event)}></label>`}
        ${SCOPES.map((scope) => this.scope(scope, found.filter((variable) => variable.scope === scope)))}
        ${this.store.hasEarlier ? html`<p class="hint" role="status">${texts.loadingEarlier}</p>` : nothing}`,
      this,
    );
  }

  find(event) {
    this.filter = event.target.value;
    this.draw();
  }

  scope(scope, variables) {
    if (variables.length === 0) return nothing;
    const more = () => {
      this.limit += LIMIT;
      this.draw();
    };
    return html`<section><h2>${texts.scopes[scope]} <span class="hint">${variables.length}</span></h2>
      <ul class="plain variables">${variables.slice(0, this.limit).map((variable) => this.variable(variable))}</ul>
      ${variables.length > this.limit ? html`<button type="button" class="quiet" @click=${more}>${texts.showMore}</button>` : nothing}</section>`;
  }

  variable(variable) {
    const last = variable.changes.at(-1);
    const limit = this.earlier.get(variable.key) ?? EARLIER;
    const earlier = variable.changes.slice(-1 - limit, -1).reverse();
    const redraw = () => this.draw();
    const more = () => {
      this.earlier.set(variable.key, limit + EARLIER);
      this.draw();
    };
    const value = (change, space) => longText(valueText(change.value, space), `${this.store.id}/variable/${variable.key}/${change.seq}`, redraw, "value");
    return html`<li class="variable">
      <p class="variable-head"><code>${visible(variable.name)}</code>${variable.where ? html` <span class="hint">${own(variable.where)}</span>` : nothing}
        <button type="button" class="place" @click=${() => this.select(last.seq)}>${own(last.source)}${last.round ? html` · ${texts.round(last.round)}` : nothing}</button> ${stamp(last.at)}</p>
      ${value(last, 2)}
      ${earlier.length ? html`<details><summary>${texts.earlierValues(variable.changes.length - 1)}</summary>
        <ul class="plain">${earlier.map((change) => html`<li><span class="hint">${own(change.source)} · ${stamp(change.at)}</span> ${value(change)}</li>`)}</ul>
        ${variable.changes.length - 1 > limit ? html`<button type="button" class="quiet" @click=${more}>${texts.showMore}</button>` : nothing}</details>` : nothing}
    </li>`;
  }
}

customElements.define("variables-tab", VariablesTab);
