// The list of sessions: filters, pages, sessions that are compared, and data sets.

import { ApiProblem, api, query } from "./api.js";
import { count, dateTime, own, problemNotice, statusBadge, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

const PAGE = 50;

// How often the list is read again while it is seen.
const REFRESH = 10_000;

const STATUSES = ["running", "waiting_input", "waiting_approval", "waiting_time", "stopped", "completed", "failed", "cancelled"];

// When a day begins for whoever looks, and not in UTC. What is no day is for the server to refuse.
function startOf(day) {
  const start = new Date(`${day}T00:00`);
  return Number.isNaN(start.getTime()) ? day : start.toISOString();
}

// The address of the list with the filters that it had last.
export const lastList = { address: "#/sessions" };

export class SessionsView extends HTMLElement {
  constructor() {
    super();
    this.filter = { script: "", status: "", user: "", since: "" };
    this.sessions = null;
    this.next = null;
    this.pages = 1;
    this.requestNumber = 0;
    this.chosen = new Map();
  }

  connectedCallback() {
    lastList.address = `#/sessions${query(this.filter)}`;
    this.draw();
    this.load();
    // Somebody who has asked for more keeps it.
    this.refresh = () => !document.hidden && this.pages === 1 && !this.isExtended && this.load();
    this.timer = setInterval(this.refresh, REFRESH);
    document.addEventListener("visibilitychange", this.refresh);
  }

  disconnectedCallback() {
    clearInterval(this.timer);
    clearTimeout(this.typing);
    document.removeEventListener("visibilitychange", this.refresh);
  }

  // What the filters ask for.
  get asked() {
    const { script, status, user, since } = this.filter;
    return { script: script.trim(), status, user: user.trim(), since: since && startOf(since) };
  }

  async load(after) {
    const number = ++this.requestNumber;
    this.isExtended = Boolean(after);
    try {
      const page = await api.get(`/v1/sessions${query({ ...this.asked, limit: PAGE, after })}`);
      if (number !== this.requestNumber) return;
      this.sessions = after ? this.sessions.concat(page.sessions) : page.sessions;
      this.pages = after ? this.pages + 1 : 1;
      this.next = page.next;
      this.problem = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      if (number !== this.requestNumber) return;
      // What is there stays, and is read again.
      this.problem = error;
      this.failedAfter = after;
    }
    this.isExtended = false;
    this.draw();
  }

  change(name, value) {
    this.filter[name] = value;
    // Whoever comes back finds the list as it was.
    lastList.address = `#/sessions${query(this.filter)}`;
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      // Somebody may just have gone elsewhere.
      if (/^#\/sessions(\?|$)/.test(location.hash)) history.replaceState(history.state, "", lastList.address);
      this.load();
    }, 200);
  }

  draw() {
    const field = (name) => html`<label class="field"><span>${texts.fields[name]}</span><input type=${name === "since" ? "date" : "search"} name=${name} value=${this.filter[name]} @input=${(event) => this.change(name, event.target.value)}></label>`;
    render(
      html`<div class="page">
        <h1>${texts.sessions}</h1>
        <form class="filters" role="search" @submit=${(event) => event.preventDefault()}>
          ${field("script")}
          <label class="field"><span>${texts.fields.status}</span><select name="status" @change=${(event) => this.change("status", event.target.value)}>
            <option value="">${texts.all}</option>${STATUSES.map((status) => html`<option value=${status} ?selected=${this.filter.status === status}>${texts.status[status]}</option>`)}</select></label>
          ${field("user")}${field("since")}
        </form>
        ${problemNotice(this.problem, () => this.load(this.failedAfter))}
        ${this.sessions === null && !this.problem ? html`<p class="hint" role="status">${texts.loading}</p>` : nothing}
        ${this.sessions?.length === 0 ? html`<p class="empty">${texts.noSessions}</p>` : nothing}
        ${this.sessions?.length ? this.table() : nothing}
        <div class="buttons"><button type="button" ?disabled=${this.chosen.size !== 2} @click=${() => this.compare()}>${texts.compareChosen(this.chosen.size)}</button>
          <button type="button" @click=${() => this.querySelector("data-set-dialog").open(this)}>${texts.dataSet}</button></div><data-set-dialog></data-set-dialog>
        ${this.next ? html`<button type="button" @click=${() => this.load(this.next)}>${texts.showMore}</button>` : nothing}
      </div>`,
      this,
    );
  }

  choose(session, isChosen) {
    if (isChosen) this.chosen.set(session.id, session.started_at);
    else this.chosen.delete(session.id);
    this.draw();
  }

  // The earlier one is the first.
  compare() {
    const ids = [...this.chosen].sort(([, one], [, other]) => (one < other ? -1 : 1)).map(([id]) => encodeURIComponent(id));
    location.hash = `#/compare/${ids.join("/")}`;
  }

  table() {
    return html`<div class="table" tabindex="0" role="group" aria-label=${texts.sessions}><table>
      <thead><tr><th scope="col"><span class="unseen">${texts.compare}</span></th><th scope="col">${texts.fields.script}</th><th scope="col">${texts.fields.status}</th><th scope="col">${texts.fields.user}</th><th scope="col" class="number">${texts.fields.answers}</th><th scope="col" class="number">${texts.fields.events}</th><th scope="col">${texts.fields.updated}</th></tr></thead>
      <tbody>${this.sessions.map((session) => html`<tr>
        <td><input type="checkbox" aria-label="${texts.compare}: ${visible(session.id)}" .checked=${this.chosen.has(session.id)} @change=${(event) => this.choose(session, event.target.checked)}></td>
        <td><a href="#/sessions/${encodeURIComponent(session.id)}">${own(session.script)}</a><code class="hint id">${visible(session.id)}</code></td>
        <td>${statusBadge(session.status)}</td>
        <td class="user">${session.user === session.id ? html`<span class="hint">—</span>` : own(session.user)}</td>
        <td class="number">${count(session.answers)}</td><td class="number">${count(session.last_seq)}</td>
        <td>${dateTime(session.updated_at)}</td></tr>`)}</tbody></table></div>`;
  }
}

// Exports the sessions of the list as a data set for a study.
class DataSetDialog extends HTMLElement {
  open({ filter, asked }) {
    Object.assign(this, { filter, asked, problem: null, note: "", options: { format: "csv" } });
    this.draw();
    this.querySelector("dialog").showModal();
  }

  change(values) {
    Object.assign(this.options, values);
    this.draw();
  }

  // Whoever closes the dialog does not want it any more.
  close() {
    this.abort?.abort();
    this.querySelector("dialog").close();
  }

  async download() {
    const abort = (this.abort = new AbortController());
    this.problem = null;
    this.note = texts.dataSetWriting;
    this.draw();
    try {
      const { blob, headers } = await api.file(`/v1/data-set${query({ ...this.asked, ...this.options })}`, abort.signal);
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: "data-set.zip" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      this.note = texts.dataSetWritten(headers.get("x-sessions"), Number(headers.get("x-sessions-left-out")));
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.note = "";
      this.problem = abort.signal.aborted ? null : error;
    }
    this.abort = null;
    this.draw();
  }

  // The filters in words.
  get selection() {
    const given = Object.entries(this.filter).filter(([, value]) => value.trim());
    return given.map(([name, value]) => `${texts.fields[name]}: ${(name === "status" && texts.status[value]) || value}`).join(" · ") || texts.all;
  }

  draw() {
    const { options } = this;
    render(
      html`<dialog class="again" aria-labelledby="data-set-title" @close=${() => this.abort?.abort()}>
        <h2 id="data-set-title">${texts.dataSet}</h2><p class="hint">${texts.dataSetHint}</p>
        <p class="selection">${texts.sessions} · ${own(this.selection)}</p>
        <fieldset><legend>${texts.format}</legend>${Object.entries(texts.formats).map(([format, label]) => html`<label><input type="radio" name="format" .checked=${options.format === format} @change=${() => this.change({ format })}> ${label}</label>`)}</fieldset>
        <label><input type="checkbox" .checked=${Boolean(options.include_sensitive)} @change=${(event) => this.change({ include_sensitive: event.target.checked || "" })}> ${texts.includeSensitive}</label>
        ${options.include_sensitive ? html`<p class="warning" role="alert">${texts.sensitiveWarning}</p>` : nothing}
        <p class="hint" role="status">${this.note}</p>${problemNotice(this.problem)}
        <div class="buttons"><button type="button" class="main" ?disabled=${Boolean(this.abort)} @click=${() => this.download()}>${texts.download}</button>
          <button type="button" @click=${() => this.close()}>${texts.close}</button></div>
      </dialog>`,
      this,
    );
  }
}

customElements.define("sessions-view", SessionsView);
customElements.define("data-set-dialog", DataSetDialog);
