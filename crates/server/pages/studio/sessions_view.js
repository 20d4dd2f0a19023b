// The list of sessions: filters, and pages.

import { ApiProblem, api, query } from "./api.js";
import { count, dateTime, own, problemNotice, statusBadge, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

const PAGE = 50;

// How often the list is read again while it is seen.
const REFRESH = 10_000;

const STATUSES = ["running", "waiting_input", "waiting_approval", "waiting_time", "stopped", "completed", "failed", "cancelled"];

export class SessionsView extends HTMLElement {
  constructor() {
    super();
    this.filter = { script: "", status: "", user: "", since: "" };
    this.sessions = null;
    this.next = null;
    this.pages = 1;
    this.requestNumber = 0;
  }

  connectedCallback() {
    this.draw();
    this.load();
    this.timer = setInterval(() => !document.hidden && this.pages === 1 && this.load(), REFRESH);
    this.shown = () => !document.hidden && this.load();
    document.addEventListener("visibilitychange", this.shown);
  }

  disconnectedCallback() {
    clearInterval(this.timer);
    clearTimeout(this.typing);
    document.removeEventListener("visibilitychange", this.shown);
  }

  async load(after) {
    const number = ++this.requestNumber;
    try {
      const page = await api.get(`/v1/sessions${query({ ...this.filter, limit: PAGE, after })}`);
      if (number !== this.requestNumber) return;
      this.sessions = after ? this.sessions.concat(page.sessions) : page.sessions;
      this.pages = after ? this.pages + 1 : 1;
      this.next = page.next;
      this.problem = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      // What is there stays, and is read again.
      this.problem = error;
    }
    this.draw();
  }

  change(name, value) {
    this.filter[name] = value.trim();
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.load(), 200);
  }

  draw() {
    const field = (name) => html`<label class="field"><span>${texts.fields[name]}</span><input type=${name === "since" ? "date" : "search"} name=${name} @input=${(event) => this.change(name, event.target.value)}></label>`;
    render(
      html`<div class="page">
        <h1>${texts.sessions}</h1>
        <form class="filters" role="search" @submit=${(event) => event.preventDefault()}>
          ${field("script")}
          <label class="field"><span>${texts.fields.status}</span><select name="status" @change=${(event) => this.change("status", event.target.value)}>
            <option value="">${texts.all}</option>${STATUSES.map((status) => html`<option value=${status}>${texts.status[status]}</option>`)}</select></label>
          ${field("user")}${field("since")}
        </form>
        ${problemNotice(this.problem, () => this.load())}
        ${this.sessions === null && !this.problem ? html`<p class="hint" role="status">${texts.loading}</p>` : nothing}
        ${this.sessions?.length === 0 ? html`<p class="empty">${texts.noSessions}</p>` : nothing}
        ${this.sessions?.length ? this.table() : nothing}
        ${this.next ? html`<button type="button" @click=${() => this.load(this.next)}>${texts.showMore}</button>` : nothing}
      </div>`,
      this,
    );
  }

  table() {
    return html`<div class="table" tabindex="0" role="group" aria-label=${texts.sessions}><table>
      <thead><tr><th scope="col">${texts.fields.script}</th><th scope="col">${texts.fields.status}</th><th scope="col">${texts.fields.user}</th><th scope="col" class="number">${texts.fields.answers}</th><th scope="col" class="number">${texts.fields.events}</th><th scope="col">${texts.fields.updated}</th></tr></thead>
      <tbody>${this.sessions.map((session) => html`<tr>
        <td><a href="#/sessions/${encodeURIComponent(session.id)}">${own(session.script)}</a><code class="hint id">${visible(session.id)}</code></td>
        <td>${statusBadge(session.status)}</td>
        <td class="user">${session.user === session.id ? html`<span class="hint">—</span>` : own(session.user)}</td>
        <td class="number">${count(session.answers)}</td><td class="number">${count(session.last_seq)}</td>
        <td>${dateTime(session.updated_at)}</td></tr>`)}</tbody></table></div>`;
  }
}

customElements.define("sessions-view", SessionsView);
