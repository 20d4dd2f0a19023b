// The inspector: one tab for each view of the session.

import { html, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";
import "./calls_tab.js";
import "./metrics_tab.js";
import "./monitors_tab.js";
import "./notebook_tab.js";
import "./plan_tab.js";
import "./requests_tab.js";
import "./variables_tab.js";
import "./workflow_tab.js";

// Tabs that are drawn in each frame in which something happens. The others, which are larger, are drawn some times in a second.
const AT_ONCE = new Set(["calls", "requests"]);
const PAUSE = 250;

const TABS = ["calls", "variables", "requests", "metrics", "monitors", "plan", "notebook", "workflow"];

export class InspectorPane extends HTMLElement {
  constructor() {
    super();
    this.tab = "calls";
  }

  show(store, selection) {
    this.store = store;
    const isOther = this.selection?.selected !== selection.selected || this.past !== store.past;
    this.selection = selection;
    this.past = store.past;
    if (isOther || AT_ONCE.has(this.tab) || performance.now() - this.drawnAt > PAUSE) return this.draw();
    this.timer ??= setTimeout(() => this.isConnected && this.draw(), PAUSE);
  }

  open(tab) {
    this.tab = tab;
    this.draw();
  }

  count(tab) {
    const { store } = this;
    const fold = store.shown;
    const counts = {
      calls: fold.calls.length,
      variables: fold.variables.size,
      requests: store.past === null ? store.requests.filter((request) => request.kind !== "input").length : 0,
      monitors: fold.feedback.length,
    };
    return counts[tab] || "";
  }

  draw() {
    if (!this.store) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.drawnAt = performance.now();
    render(
      html`<div class="tabs" role="tablist" aria-label=${texts.inspector} @keydown=${(event) => this.key(event)}>
          ${TABS.map((tab) => html`<button type="button" role="tab" id="tab-${tab}" aria-controls="panel" aria-selected=${tab === this.tab} tabindex=${tab === this.tab ? 0 : -1} @click=${() => this.open(tab)}>${texts.tabs[tab]}<span class="count">${this.count(tab)}</span></button>`)}
        </div>
        <div class="panel" id="panel" role="tabpanel" aria-labelledby="tab-${this.tab}"></div>`,
      this,
    );
    const panel = this.querySelector(".panel");
    const name = `${this.tab}-tab`;
    if (panel.firstElementChild?.localName !== name) panel.replaceChildren(document.createElement(name));
    panel.firstElementChild.show(this.store, this.selection);
  }

  key(event) {
    const index = TABS.indexOf(this.tab);
    const moves = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: TABS.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.open(TABS[(moves[event.key] + TABS.length) % TABS.length]);
    this.querySelector("[aria-selected=true]").focus();
  }
}

customElements.define("inspector-pane", InspectorPane);
