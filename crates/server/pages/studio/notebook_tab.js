// The notebook: its cells in order, with pictures that cannot run anything.

import { ApiProblem, api, path } from "./api.js";
import { longText, problemNotice, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

const PICTURES = ["image/png", "image/jpeg"];
const BASE64 = /^[A-Za-z0-9+/=\s]+$/;

// Colors and styles of terminals: kernels write them into what code prints and into errors.
const STYLES = /\u001b\[[\d;:?]*[A-Za-z]/g;

// How many cells are drawn at first.
const FIRST = 50;

export class NotebookTab extends HTMLElement {
  constructor() {
    super();
    this.limit = FIRST;
    // Large pictures by their addresses: what is at an address does not change.
    this.pictures = new Map();
  }

  show(store) {
    const isOther = this.store !== store;
    this.store = store;
    if (isOther) this.pictures.clear();
    if (isOther || this.cells !== store.fold.cells) {
      this.cells = store.fold.cells;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.load(), isOther ? 0 : 300);
    }
    this.draw();
  }

  async load() {
    try {
      this.notebook = (await api.get(path`/v1/sessions/${this.store.id}/notebook?outputs=linked`)).notebook;
      this.problem = null;
      this.isLoaded = true;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
    }
    this.draw();
  }

  draw() {
    const cells = this.notebook?.cells ?? [];
    const more = () => {
      this.limit += FIRST;
      this.draw();
    };
    render(
      html`${problemNotice(this.problem, () => this.load())}
        ${this.isLoaded && cells.length === 0 ? html`<p class="empty">${texts.noNotebook}</p>` : nothing}
        ${this.store.past !== null && cells.length ? html`<p class="hint">${texts.notebookNow}</p>` : nothing}
        ${this.notebook?.title ? html`<h2 dir="auto">${visible(this.notebook.title)}</h2>` : nothing}
        ${cells.slice(0, this.limit).map((cell) => this.cell(cell))}
        ${cells.length > this.limit ? html`<button type="button" class="quiet" @click=${more}>${texts.showMore}</button>` : nothing}`,
      this,
    );
  }

  cell(cell) {
    const redraw = () => this.draw();
    const key = `${this.store.id}/cell/${cell.id}`;
    return html`<article class="cell" aria-label=${texts.cell(cell.number)}>
      <p class="hint">${texts.cellTypes[cell.type] ?? cell.type} ${cell.number}${cell.ended && cell.ended !== "ok" ? html` · <span class="failed">${texts.cellEnds[cell.ended] ?? cell.ended}</span>` : nothing}</p>
      ${longText(cell.content, key, redraw, cell.type === "markdown" ? "text" : "raw")}
      ${(cell.outputs ?? []).map((output, index) => this.output(output, `${key}/${index}`, redraw))}
    </article>`;
  }

  output(output, key, redraw) {
    if (output.output_type === "error") {
      const lines = output.traceback?.length ? output.traceback : [`${output.ename}: ${output.evalue}`];
      return longText(plain(lines.join("\n")), key, redraw, "raw failed");
    }
    if (output.text !== undefined) return longText(plain(joined(output.text)), key, redraw, "raw");
    const data = output.data ?? {};
    const kind = PICTURES.find((type) => typeof joined(data[type]) === "string" && BASE64.test(joined(data[type])));
    const described = visible(joined(data["text/plain"]) ?? texts.picture);
    if (kind) return html`<img class="picture" src="data:${kind};base64,${joined(data[kind]).replace(/\s+/g, "")}" alt=${described}>`;
    const linked = PICTURES.find((type) => output.links?.[type]);
    const picture = linked && this.picture(output.links[linked].href, linked);
    if (picture) return html`<img class="picture" src=${picture} alt=${described}>`;
    const text = joined(data["text/plain"]);
    if (text !== undefined) return longText(text, key, redraw, "raw");
    return html`<p class="hint">${texts.otherOutput([...Object.keys(data), ...Object.keys(output.links ?? {})].join(", "))}</p>`;
  }

  // A large picture, which is drawn when it has arrived. The token is sent as a header, so that no element can load it.
  picture(address, type) {
    if (!this.pictures.has(address)) {
      this.pictures.set(address, null);
      this.loadPicture(address, type).then(
        (picture) => {
          this.pictures.set(address, picture);
          this.draw();
        },
        (error) => {
          // It is asked for again with the next notebook.
          this.pictures.delete(address);
          if (!(error instanceof ApiProblem)) throw error;
        },
      );
    }
    return this.pictures.get(address);
  }

  async loadPicture(address, type) {
    const { blob } = await api.file(address);
    return new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(new ApiProblem(0));
      reader.readAsDataURL(blob.slice(0, blob.size, type));
    });
  }
}

// Texts of notebooks may be lists of lines.
const joined = (text) => (Array.isArray(text) ? text.join("") : text);

const plain = (text) => text.replace(STYLES, "");

customElements.define("notebook-tab", NotebookTab);
