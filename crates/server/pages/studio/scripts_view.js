// The list of scripts, each with what its check found.

import { ApiProblem, api, path, query } from "./api.js";
import { own, problemNotice, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// How many scripts are checked at the same time.
const AT_ONCE = 2;

export const scriptUrl = (name, end = "") => `${path`/v1/scripts/${name}`}${end}`;

export class ScriptsView extends HTMLElement {
  constructor() {
    super();
    this.scripts = null;
    this.checks = new Map();
  }

  connectedCallback() {
    this.draw();
    this.load();
  }

  disconnectedCallback() {
    this.isGone = true;
  }

  async load() {
    try {
      ({ scripts: this.scripts } = await api.get("/v1/scripts"));
      this.problem = null;
      this.checkAll(this.scripts.slice());
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
    }
    this.draw();
  }

  checkAll(waiting) {
    for (const { path } of waiting) this.checks.delete(path);
    const work = async () => {
      for (let script = waiting.shift(); script && !this.isGone; script = waiting.shift()) await this.check(script);
    };
    for (let number = 0; number < AT_ONCE; number++) work();
    this.draw();
  }

  async check(script) {
    try {
      this.checks.set(script.path, await api.get(scriptUrl(script.path)));
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      // A request that failed is no result of a check.
      const { diagnostics } = error;
      this.checks.set(script.path, diagnostics.length ? { is_valid: false, diagnostics } : { problem: error });
    }
    this.draw();
  }

  async start(script) {
    this.starting = script.path;
    this.problem = null;
    this.draw();
    try {
      const made = await api.post("/v1/sessions", { script: script.path });
      // Whoever went elsewhere meanwhile stays there.
      if (!this.isGone) location.hash = `#/sessions/${encodeURIComponent(made.id)}`;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
    } finally {
      this.starting = null;
      this.draw();
    }
  }

  draw() {
    render(
      html`<div class="page">
        <h1>${texts.scripts}</h1>
        ${problemNotice(this.problem, this.scripts ? null : () => this.load())}
        ${this.scripts === null && !this.problem ? html`<p class="hint" role="status">${texts.loading}</p>` : nothing}
        ${this.scripts?.length === 0 ? html`<p class="empty">${texts.noScripts}</p>` : nothing}
        <ul class="plain scripts">${(this.scripts ?? []).map((script) => this.script(script))}</ul>
      </div>`,
      this,
    );
  }

  script(script) {
    const check = this.checks.get(script.path);
    const edit = `#/scripts/${encodeURIComponent(script.path)}`;
    return html`<li class="script">
      <div class="script-head"><h2><a href=${edit}>${own(script.name ?? script.session_id)}</a></h2> <code class="hint">${visible(script.path)}</code>
        <span class="end">${check?.problem ? nothing : check ? checkBadge(check) : html`<span class="hint">${texts.checking}</span>`}</span></div>
      <div class="buttons">
        <button type="button" class="main" ?disabled=${this.starting === script.path || check?.is_valid === false} @click=${() => this.start(script)}>${this.starting === script.path ? texts.starting : texts.start}</button>
        <a class="button" href=${edit}>${texts.edit}</a>
        <a class="button" href="#/sessions${query({ script: script.session_id })}">${texts.itsSessions}</a></div>
      ${check?.diagnostics?.length ? html`<ul class="plain problems">${check.diagnostics.slice(0, 5).map((found) => diagnosticLine(found, found.file === script.path ? `${edit}?line=${found.line}` : null))}</ul>` : nothing}
      ${problemNotice(check?.problem, () => this.checkAll(this.scripts.filter(({ path }) => this.checks.get(path)?.problem)))}
    </li>`;
  }
}

export function checkBadge({ is_valid: isValid, diagnostics }) {
  const warnings = diagnostics.filter((found) => found.severity === "warning").length;
  if (!isValid) return html`<span class="status failed"><span aria-hidden="true">✕</span> ${texts.errors(diagnostics.filter((found) => found.severity === "error").length)}</span>`;
  if (warnings) return html`<span class="status waiting"><span aria-hidden="true">!</span> ${texts.warnings(warnings)}</span>`;
  return html`<span class="status done"><span aria-hidden="true">✓</span> ${texts.noProblems}</span>`;
}

export function diagnosticLine(found, href) {
  return html`<li class="diagnostic ${found.severity}">${href ? html`<a href=${href}>${texts.line(found.line, found.column)}</a>` : html`<code>${visible(found.file)}:${found.line}</code>`} <strong>${texts.severity[found.severity] ?? found.severity}</strong> ${visible(found.message)} <code class="hint">${found.rule}</code>${found.help ? html`<p class="hint">${visible(found.help)}</p>` : nothing}</li>`;
}

customElements.define("scripts-view", ScriptsView);
