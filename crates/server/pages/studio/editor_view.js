// Edits a script: saved scripts are checked at once, with the problems at their lines.

import { ApiProblem, api } from "./api.js";
import { problemNotice, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { checkBadge, scriptUrl } from "./scripts_view.js";
import { texts } from "./texts.js";

const MARK = "\ufeff";

// The text of a file, as a field has it.
function shown(source) {
  return (source.startsWith(MARK) ? source.slice(1) : source).replaceAll("\r\n", "\n");
}

export class EditorView extends HTMLElement {
  constructor() {
    super();
    this.text = null;
    this.saved = null;
    this.check = null;
    // What was sent to be stored. Where a response was lost, it may have been stored.
    this.sent = new Set();
  }

  set script({ path, line }) {
    this.path = path;
    this.line = line;
  }

  connectedCallback() {
    this.leaving = (event) => this.isChanged && event.preventDefault();
    addEventListener("beforeunload", this.leaving);
    this.draw();
    this.load();
  }

  disconnectedCallback() {
    removeEventListener("beforeunload", this.leaving);
  }

  get isChanged() {
    return this.text !== null && this.text !== this.saved;
  }

  // Who goes to another view of the page is asked first.
  mayLeave() {
    return !this.isChanged || confirm(texts.unsaved);
  }

  // Does something that may fail, and shows what went wrong.
  async attempt(action) {
    try {
      await action();
      this.problem = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
    }
    this.draw();
  }

  load() {
    return this.attempt(async () => {
      const { text: source, version } = await api.text(scriptUrl(this.path, "/source"));
      this.version = version;
      // Fields have one kind of line end, and no byte order mark. The file keeps its own.
      this.lineEnd = source.includes("\r\n") ? "\r\n" : "\n";
      this.mark = source.startsWith(MARK) ? MARK : "";
      this.source = source;
      this.saved = shown(source);
      this.text = this.saved;
      this.problem = null;
      this.draw();
      if (this.line) this.goTo(this.line);
      await this.checkSaved();
    });
  }

  async checkSaved() {
    const [text, source] = [this.saved, this.source];
    this.check = await api.get(scriptUrl(this.path));
    this.checkedText = text;
    this.checkedSource = source;
  }

  // Saves the text if the script is still the one that was read, or in any case.
  async save(version = this.version) {
    if (this.isSaving) return;
    const text = this.text;
    const source = this.written(text);
    this.isSaving = true;
    this.problem = null;
    this.note = "";
    this.draw();
    try {
      this.version = await this.store(source, version);
      this.source = source;
      this.saved = text;
      this.note = texts.savedNow;
      await this.checkSaved();
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      // The text stays; the file is unchanged.
      this.problem = error;
      if (error.diagnostics.length) {
        this.check = { is_valid: false, diagnostics: error.diagnostics };
        this.checkedText = text;
        this.checkedSource = source;
      }
    } finally {
      this.isSaving = false;
      this.draw();
    }
  }

  // Stores the script, and returns its new version.
  async store(source, version) {
    const url = scriptUrl(this.path);
    this.sent.add(source);
    let stored;
    try {
      stored = await api.putYaml(url, source, version);
    } catch (error) {
      if (error.status !== 412) throw error;
      const found = await api.text(scriptUrl(this.path, "/source"));
      if (!this.sent.has(found.text)) throw new ApiProblem(412, { detail: texts.changedElsewhere });
      stored = found.text === source ? found.version : await api.putYaml(url, source, found.version);
    }
    this.sent.clear();
    return stored;
  }

  written(text) {
    // What was not changed is not changed: also lines that end in different ways.
    if (text === this.saved) return this.source;
    return this.mark + (this.lineEnd === "\n" ? text : text.replaceAll("\n", this.lineEnd));
  }

  draw() {
    const diagnostics = (this.check?.diagnostics ?? []).filter((found) => found.file === this.path);
    const others = (this.check?.diagnostics ?? []).filter((found) => found.file !== this.path);
    const marked = new Map(diagnostics.map((found) => [found.line, found.severity]));
    const lines = (this.text ?? "").split("\n").length;
    render(
      html`<div class="editor-page">
        <header class="session-head"><a class="back" href="#/scripts" aria-label=${texts.backToScripts} title=${texts.backToScripts}>←</a><h1>${visible(this.path)}</h1>
          ${this.check ? checkBadge(this.check) : nothing}
          <span class="hint" role="status">${this.isSaving ? texts.saving : this.isChanged ? texts.changed : this.note ?? ""}</span>
          <button type="button" class="main" ?disabled=${!this.isChanged || this.isSaving} @click=${() => this.save()}>${texts.save}</button></header>
        ${problemNotice(this.problem, this.isChanged ? null : () => (this.text === null ? this.load() : this.attempt(() => this.checkSaved())))}
        ${this.problem?.status === 412 ? html`<p class="line"><button type="button" @click=${() => this.load()}>${texts.loadTheirs}</button><button type="button" @click=${() => this.save(null)}>${texts.replaceTheirs}</button></p>` : nothing}
        ${this.text === null ? html`<p class="hint" role="status">${this.problem ? "" : texts.loading}</p>` : html`<div class="editor-and-problems">
          <div class="editor">
            <pre class="numbers" aria-hidden="true">${Array.from({ length: lines }, (_, index) => html`<span class=${marked.get(index + 1) ?? ""}>${index + 1}\n</span>`)}</pre>
            <textarea class="code" aria-label=${texts.scriptText} spellcheck="false" autocapitalize="off" wrap="off" dir="ltr" .value=${this.text} @input=${(event) => this.input(event)} @keydown=${(event) => this.key(event)} @scroll=${(event) => this.scrolled(event)}></textarea>
          </div>
          <section class="problems" aria-label=${texts.problems}><h2>${texts.problems}</h2>
            ${this.check && this.text !== this.checkedText ? html`<p class="hint">${texts.checkIsOfBefore}</p>` : nothing}
            ${this.check && diagnostics.length + others.length === 0 ? html`<p class="hint">${texts.noProblems}</p>` : nothing}
            <ul class="plain">${diagnostics.map((found) => this.diagnostic(found))}${others.map((found) => this.diagnostic(found))}</ul></section>
        </div>`}
      </div>`,
      this,
    );
  }

  diagnostic(found) {
    const isHere = found.file === this.path;
    return html`<li class="diagnostic ${found.severity}">
      <p>${isHere ? html`<button type="button" class="place" @click=${() => this.goTo(found.line, found.column)}>${texts.line(found.line, found.column)}</button>` : html`<code>${visible(found.file)}:${found.line}</code>`}
        <strong>${texts.severity[found.severity] ?? found.severity}</strong> ${visible(found.message)} <code class="hint">${found.rule}</code></p>
      ${found.help ? html`<p class="hint">${visible(found.help)}</p>` : nothing}
      ${isHere && this.text === this.checkedText ? (found.fixes ?? []).map((fix) => html`<button type="button" class="fix" @click=${() => this.fix(fix)}>${texts.fix}: ${visible(fix.title)}</button>`) : nothing}
    </li>`;
  }

  input(event) {
    this.text = event.target.value;
    this.note = "";
    this.draw();
  }

  scrolled(event) {
    this.querySelector(".numbers").scrollTop = event.target.scrollTop;
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      if (this.isChanged) this.save();
    }
  }

  goTo(number, column = 1) {
    const area = this.querySelector("textarea.code");
    if (!area) return;
    const lines = this.text.split("\n");
    const start = lines.slice(0, number - 1).reduce((sum, text) => sum + text.length + 1, 0);
    // Columns count characters, and the field counts units of UTF-16.
    const before = Array.from(lines[number - 1] ?? "").slice(0, column - 1).join("").length;
    area.focus();
    area.setSelectionRange(start + before, start + (lines[number - 1] ?? "").length);
    const height = area.scrollHeight / Math.max(lines.length, 1);
    area.scrollTop = Math.max(0, height * (number - 6));
  }

  // Offsets of fixes count bytes of the file that was checked.
  fix(fix) {
    const bytes = new TextEncoder().encode(this.checkedSource);
    const decoder = new TextDecoder();
    const edits = fix.edits.slice().sort((one, other) => other.byte_start - one.byte_start);
    let text = bytes;
    for (const edit of edits) {
      const [before, inserted, after] = [text.slice(0, edit.byte_start), new TextEncoder().encode(edit.text), text.slice(edit.byte_end)];
      text = new Uint8Array(before.length + inserted.length + after.length);
      text.set(before);
      text.set(inserted, before.length);
      text.set(after, before.length + inserted.length);
    }
    this.text = shown(decoder.decode(text));
    this.draw();
    this.querySelector("textarea.code").focus();
  }
}

customElements.define("editor-view", EditorView);
