// A session in three panes: the tree, the talk, and the inspector. On a phone, one at a time.

import { own, problemNotice, statusBadge, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { SessionStore } from "./session_store.js";
import { lastList } from "./sessions_view.js";
import { texts } from "./texts.js";
import "./inspector.js";
import "./talk_pane.js";
import "./timeline.js";
import "./tree_pane.js";

const PANES = ["tree", "talk", "inspector"];

export class SessionView extends HTMLElement {
  constructor() {
    super();
    this.pane = "talk";
    this.selected = null;
  }

  set session(id) {
    this.id = id;
  }

  connectedCallback() {
    this.store = new SessionStore(this.id);
    this.store.addEventListener("change", () => this.draw());
    this.store.open();
    this.draw();
  }

  disconnectedCallback() {
    this.store.stop();
  }

  select(seq) {
    this.selected = seq;
    const inspector = this.querySelector("inspector-pane");
    // What a part did is seen in its calls; who looks at other parts of the session goes on there.
    if (["variables", "requests", "plan", "notebook"].includes(inspector.tab)) inspector.open("calls");
    if (!matchMedia("(min-width: 60rem)").matches) this.pane = "inspector";
    this.draw();
  }

  draw() {
    const { store } = this;
    const fold = store.shown;
    if (store.problem && store.events.length === 0) {
      return render(html`<div class="page"><a class="back" href=${lastList.address}>${texts.backToSessions}</a>${problemNotice(store.problem)}</div>`, this);
    }
    const isOpening = store.events.length === 0;
    render(
      html`<header class="session-head">
          <a class="back" href=${lastList.address} aria-label=${texts.backToSessions} title=${texts.backToSessions}>←</a>
          <h1>${own(store.outline?.name || fold.script || store.id)}</h1>
          ${isOpening ? nothing : statusBadge(fold.status)}
          <code class="hint id">${visible(store.id)}</code>
          <span class="hint">${fold.model ? visible(fold.model) : nothing}</span>
          ${fold.forkOf ? html`<a class="hint" href="#/sessions/${encodeURIComponent(fold.forkOf.id)}">${texts.forkOf}</a> <a class="hint" href="#/compare/${encodeURIComponent(fold.forkOf.id)}/${encodeURIComponent(store.id)}">${texts.compare}</a>` : nothing}
          <span class="connection ${store.connection}" role="status">${this.connection()}</span>
        </header>
        ${store.problem ? problemNotice(store.problem) : nothing}
        ${isOpening ? html`<p class="page hint" role="status">${texts.loading}</p>` : nothing}
        <nav class="panes-nav" aria-label=${texts.panes}>${PANES.map((pane) => html`<button type="button" aria-pressed=${pane === this.pane} @click=${() => this.show(pane)}>${texts.paneNames[pane]}</button>`)}</nav>
        <div class="panes show-${this.pane}" ?hidden=${isOpening}>
          <section class="pane tree-side" aria-label=${texts.tree}><tree-pane></tree-pane></section>
          <section class="pane talk-side" aria-label=${texts.talk}>
            ${store.past === null ? nothing : html`<p class="past-note" role="status">${texts.pastNote}</p>`}
            <talk-pane></talk-pane><timeline-bar></timeline-bar>
          </section>
          <section class="pane inspector-side" aria-label=${texts.inspector}><inspector-pane></inspector-pane></section>
        </div>`,
      this,
    );
    const selection = { selected: this.selected, select: (seq) => this.select(seq) };
    this.querySelector("tree-pane").show(store, selection);
    this.querySelector("talk-pane").show(store, selection);
    this.querySelector("timeline-bar").show(store);
    this.querySelector("inspector-pane").show(store, selection);
  }

  show(pane) {
    this.pane = pane;
    this.draw();
    this.querySelector("talk-pane")?.list?.schedule();
  }

  connection() {
    const { store } = this;
    if (store.hasEarlier && store.events.length) return texts.loadingEvents(store.events.length, store.events.at(-1).seq);
    return texts.connection[store.connection] ?? "";
  }
}

customElements.define("session-view", SessionView);
