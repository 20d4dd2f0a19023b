// Links by which people begin conversations: made, listed, and revoked.

import { ApiProblem, api, path } from "./api.js";
import { count, dateTime, own, problemNotice, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

const KINDS = ["one_time", "open"];
const LANGUAGES = { "zh-CN": "中文", en: "English" };

export class LinksView extends HTMLElement {
  constructor() {
    super();
    this.links = null;
    this.scripts = [];
    this.conversations = new Map();
  }

  connectedCallback() {
    this.draw();
    this.load();
  }

  // Does something that may fail, and shows what went wrong.
  async attempt(action, name = "problem") {
    try {
      await action();
      this[name] = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this[name] = error;
    }
    this.draw();
  }

  load() {
    const take = async (url) => {
      Object.assign(this, await api.get(url));
      this.draw();
    };
    this.unreadable = [];
    return this.attempt(() => Promise.all(["/v1/scripts", "/v1/links"].map(take)));
  }

  async make(event) {
    event.preventDefault();
    const form = event.target;
    const value = (name) => form.elements[name].value.trim();
    const body = { script: value("script"), kind: value("kind") };
    if (value("expires")) body.expires_at = new Date(value("expires")).toISOString();
    if (value("consent")) body.consent = { text: value("consent"), language: value("language") };
    this.isMaking = true;
    this.made = null;
    this.draw();
    await this.attempt(async () => {
      // Numbers are sent as they were written: JavaScript would round them.
      const written = `${JSON.stringify(body).slice(0, -1)},"variables":${variablesOf(value("variables"))}}`;
      this.made = await api.postText("/v1/links", written);
    }, "makeProblem");
    this.isMaking = false;
    if (!this.makeProblem) {
      form.reset();
      await this.load();
    }
    this.draw();
    if (this.made) this.querySelector(".made input")?.focus();
  }

  async revoke(link) {
    if (!confirm(texts.revokeReally)) return;
    if (this.made?.id === link.id) this.made = null;
    await this.attempt(() => api.delete(path`/v1/links/${link.id}`));
    if (!this.problem) this.load();
  }

  talksOf(link, isOpen) {
    if (!isOpen) return;
    this.attempt(async () => this.conversations.set(link.id, (await api.get(path`/v1/links/${link.id}`)).conversations));
  }

  draw() {
    render(
      html`<div class="page">
        <h1>${texts.links}</h1><p class="hint">${texts.linksHelp}</p>
        ${this.form()}
        ${this.made ? this.madeLink(new URL(this.made.path, location.origin).href) : nothing}
        ${problemNotice(this.problem, () => this.load())}
        ${this.links === null && !this.problem ? html`<p class="hint" role="status">${texts.loading}</p>` : nothing}
        ${this.links?.length === 0 ? html`<p class="empty">${texts.noLinks}</p>` : nothing}
        ${this.unreadable?.length ? html`<p class="hint">${texts.unreadableLinks(this.unreadable.length)}</p>` : nothing}
        <ul class="plain scripts">${(this.links ?? []).map((link) => this.link(link))}</ul>
      </div>`,
      this,
    );
  }

  form() {
    const scripts = this.scripts.map((script) => html`<option value=${script.path}>${visible(script.name ?? script.session_id)}</option>`);
    return html`<form class="link-form" @submit=${(event) => this.make(event)}>
      <div class="filters"><label class="field"><span>${texts.fields.script}</span><select name="script" required>${scripts}</select></label>
      <label class="field"><span>${texts.linkFor}</span><select name="kind">${KINDS.map((kind) => html`<option value=${kind}>${texts.linkKinds[kind]}</option>`)}</select></label>
      <label class="field"><span>${texts.expires}</span><input type="datetime-local" name="expires"></label></div>
      <details><summary>${texts.linkMore}</summary>
        <label class="field"><span>${texts.linkVariables}</span><textarea name="variables" class="code" rows="2" spellcheck="false" placeholder="name: Ann"></textarea></label>
        <label class="field"><span>${texts.consentText}</span><textarea name="consent" rows="4" dir="auto"></textarea></label>
        <label class="field"><span>${texts.consentLanguage}</span><select name="language">${Object.entries(LANGUAGES).map(([code, name]) => html`<option value=${code} ?selected=${document.documentElement.lang === code}>${name}</option>`)}</select></label>
      </details>
      ${problemNotice(this.makeProblem)}
      <button type="submit" class="main" ?disabled=${this.isMaking || !this.scripts.length}>${texts.makeLink}</button>
    </form>`;
  }

  madeLink(address) {
    const copy = () => navigator.clipboard.writeText(address).then(() => (this.copied = address)).finally(() => this.draw());
    return html`<section class="made notice" role="status"><label class="field"><span>${texts.linkMade}</span><input readonly .value=${address} @focus=${(event) => event.target.select()}></label>
      ${navigator.clipboard ? html`<button type="button" @click=${copy}>${this.copied === address ? texts.copied : texts.copyLink}</button>` : nothing}</section>`;
  }

  link(link) {
    const talks = this.conversations.get(link.id);
    const isOver = link.revoked_at || (link.expires_at && new Date(link.expires_at) < new Date());
    const script = this.scripts.find((known) => known.path === link.script);
    return html`<li class="script"><div class="script-head"><h2>${own(script?.name ?? link.script)}</h2> <span class="hint">${texts.linkKinds[link.kind]}</span>
        <span class="end status ${isOver ? "stopped" : "done"}">${link.revoked_at ? texts.linkRevoked : isOver ? texts.linkExpired : texts.linkValid}</span></div>
      <p class="hint">${texts.linkMadeAt} ${dateTime(link.created_at)}${link.created_by ? html` · ${visible(link.created_by)}` : nothing}${link.expires_at ? html` · ${texts.expires} ${dateTime(link.expires_at)}` : nothing}${link.consent ? html` · ${texts.withConsent}` : nothing}</p>
      ${link.talks > 0 ? html`<details @toggle=${(event) => this.talksOf(link, event.target.open)}><summary>${texts.linkTalks(count(link.talks))}</summary>
        <ul>${(talks ?? []).map((talk) => html`<li>${talk.withdrawn_at ? html`${texts.withdrawn} ${dateTime(talk.withdrawn_at)}` : html`<a href="#/sessions/${encodeURIComponent(talk.session)}">${dateTime(talk.began_at)}</a>`}</li>`)}</ul></details>` : html`<p class="hint">${texts.linkTalks(0)}</p>`}
      ${link.revoked_at ? nothing : html`<div class="buttons"><button type="button" class="quiet revoke" @click=${() => this.revoke(link)}>${texts.revoke}</button></div>`}
    </li>`;
  }
}

// A JSON object of a name and a value in each line: a value that is JSON stays as it is written, another one is text.
function variablesOf(text) {
  const fields = new Map();
  for (const line of text.split("\n").filter((line) => line.trim())) {
    const [, name, value] = /^\s*([^:=：\s]+)\s*[:=：]\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name) throw new ApiProblem(0, { detail: texts.notAVariable(line.trim()) });
    if (fields.has(name)) throw new ApiProblem(0, { detail: texts.twice(name) });
    fields.set(name, `${JSON.stringify(name)}:${isJson(value) ? value : JSON.stringify(value)}`);
  }
  return `{${[...fields.values()].join(",")}}`;
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

customElements.define("links-view", LinksView);
