// The page for authors: which view is shown, the token, and the language.

import { api, token } from "./api.js";
import { problemNotice } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { switchLanguage, texts } from "./texts.js";
import "./compare_view.js";
import "./editor_view.js";
import "./links_view.js";
import "./scripts_view.js";
import "./session_view.js";
import "./sessions_view.js";

// The view that an address names.
function routeOf(hash) {
  const [where, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = where.split("/");
  const name = decode(rest.join("/"));
  const query = new URLSearchParams(search);
  if (view === "compare" && rest.length === 2) return { view: "sessions-compared", name: rest.map(decode).join(" · "), ids: rest.map(decode) };
  if (view === "sessions" && name) return { view: "session", name };
  if (view === "scripts" && name) return { view: "script", name, line: Number(query.get("line")) || null };
  if (view === "links") return { view };
  return { view: view === "sessions" ? "sessions" : "scripts", filter: Object.fromEntries(query) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Where this page is among those to which Back and Forward lead. Not all browsers tell.
const indexNow = () => window.navigation?.currentEntry?.index;

export class StudioApp extends HTMLElement {
  connectedCallback() {
    [this.hash, this.index] = [location.hash, indexNow()];
    addEventListener("hashchange", () => this.moved());
    document.addEventListener("token-needed", (event) => this.askForToken(event.detail));
    this.start();
  }

  // With tokens, nothing is shown before there is one that may see it.
  async start() {
    try {
      await api.get("/v1/sessions?limit=1");
      this.isOpen = true;
      this.isAsking = false;
    } catch (problem) {
      if (problem.status === 403) this.askForToken(problem);
      // The views say that there is no connection, and try again.
      else if (problem.status !== 401) this.isOpen = true;
    }
    this.draw();
  }

  askForToken(problem) {
    this.isAsking = true;
    this.isOpen = false;
    this.tokenProblem = token.get() ? problem : null;
    token.set("");
    this.draw();
    const field = this.querySelector("#token");
    field.value = "";
    field.focus();
  }

  moved() {
    const view = this.querySelector("editor-view");
    // Back where somebody has decided to stay.
    if (view && location.hash === this.hash) return;
    if (view && !view.mayLeave()) {
      const steps = this.index - indexNow();
      return steps ? history.go(steps) : history.replaceState(null, "", this.hash);
    }
    [this.hash, this.index] = [location.hash, indexNow()];
    // The view may have changed its address.
    this.placed = undefined;
    this.draw();
    // A screen reader begins at the new view.
    this.querySelector("main")?.focus();
  }

  draw() {
    const route = routeOf(location.hash);
    const isWhole = Boolean(route.name);
    const link = (view, href, label) => html`<a href=${href} aria-current=${route.view.startsWith(view) ? "page" : nothing}>${label}</a>`;
    render(
      html`<a class="skip" href="#main" @click=${(event) => this.skip(event)}>${texts.skip}</a>
        <header class="top"><span class="brand">bcc-script</span>
          <nav aria-label=${texts.views}>${link("script", "#/scripts", texts.scripts)}${link("session", "#/sessions", texts.sessions)}${link("links", "#/links", texts.links)}</nav>
          <button type="button" class="quiet" lang=${texts.otherLanguage.code} @click=${switchLanguage}>${texts.otherLanguage.name}</button>
          ${token.get() ? html`<button type="button" class="quiet" @click=${() => this.forget()}>${texts.forgetToken}</button>` : nothing}
        </header>
        <main id="main" tabindex="-1" class=${isWhole ? "whole" : ""}>${this.isAsking ? this.tokenForm() : this.isOpen ? nothing : html`<p class="page hint" role="status">${texts.loading}</p>`}<div class="view" ?hidden=${!this.isOpen}></div></main>`,
      this,
    );
    if (this.isOpen) this.place(route);
    // A script that was changed stays, until there is a token to store it with.
    else if (!this.querySelector("editor-view")?.isChanged) this.place(null);
    document.title = `${isWhole ? `${route.name} · ` : ""}bcc-script studio`;
  }

  // Puts the view of a route into the page, unless it is there.
  place(route) {
    const view = this.querySelector(".view");
    const key = route && JSON.stringify(route);
    if (this.placed === key) return;
    this.placed = key;
    if (!route) return view.replaceChildren();
    const made = document.createElement({ "sessions-compared": "compare-view", session: "session-view", script: "editor-view", sessions: "sessions-view", scripts: "scripts-view", links: "links-view" }[route.view]);
    if (route.ids) made.sessions = route.ids;
    if (route.view === "session") made.session = route.name;
    if (route.view === "script") made.script = { path: route.name, line: route.line };
    if (route.view === "sessions") for (const name of Object.keys(made.filter)) made.filter[name] = route.filter[name] ?? "";
    view.replaceChildren(made);
  }

  skip(event) {
    event.preventDefault();
    this.querySelector("main").focus();
  }

  tokenForm() {
    return html`<form class="card" @submit=${(event) => this.submit(event)}>
      <h1>${texts.tokenTitle}</h1><p>${texts.tokenHelp}</p>
      ${problemNotice(this.tokenProblem)}
      <label class="field"><span>${texts.token}</span><input id="token" type="password" autocomplete="off" spellcheck="false"></label>
      <button type="submit" class="main">${texts.open}</button></form>`;
  }

  async submit(event) {
    event.preventDefault();
    const given = this.querySelector("#token").value.trim();
    if (!given) return;
    // A header has no other characters; the server rejects the token.
    token.set(given.replace(/[^!-~]/g, "?"));
    this.isAsking = false;
    await this.start();
  }

  forget() {
    const view = this.querySelector("editor-view");
    if (view && !view.mayLeave()) return;
    this.place(null);
    token.set("");
    this.askForToken(null);
  }
}

customElements.define("studio-app", StudioApp);
