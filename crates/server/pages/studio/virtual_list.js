// A list of which only the rows are drawn that are seen: their number in the page does not depend on that of the items.

import { render } from "./libraries/lit-html.js";

// How many pixels are drawn above and below what is seen.
const MARGIN = 400;

// How near to the end counts as the end.
const NEAR = 32;

// How long, in milliseconds, a movement may follow from what a person has done.
const INTENT = 1000;

export class VirtualList extends HTMLElement {
  #items = [];
  #rows = new Map();
  #heights = new Map();
  #tops = new Float64Array(1);
  #isOutdated = true;
  #isScheduled = false;
  #isAtEnd = false;
  #lastTop = 0;
  #touched = -Infinity;
  estimate = 64;
  // Whether the list stays at its end when items are added.
  follows = false;
  // What a screen reader calls it.
  keyOf = (item) => item.key;
  renderRow = () => "";

  connectedCallback() {
    if (!this.space) {
      this.space = document.createElement("div");
      this.space.className = "virtual-space";
      this.space.setAttribute("role", "list");
      this.append(this.space);
    }
    this.tabIndex = 0;
    this.setAttribute("role", "group");
    this.space.setAttribute("aria-label", this.getAttribute("aria-label") ?? "");
    this.observer = new ResizeObserver((entries) => this.#measure(entries));
    this.observer.observe(this);
    this.addEventListener("scroll", this.#scrolled, { passive: true });
    for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      this.addEventListener(kind, this.#moved, { passive: true });
    }
    this.#isAtEnd = this.follows;
    this.schedule();
  }

  disconnectedCallback() {
    this.observer.disconnect();
    this.removeEventListener("scroll", this.#scrolled);
    for (const row of this.#rows.values()) row.remove();
    this.#rows.clear();
  }

  get items() {
    return this.#items;
  }

  set items(items) {
    this.#items = items;
    this.#isOutdated = true;
    this.schedule();
  }

  get isAtEnd() {
    return this.#isAtEnd;
  }

  // Draws in the next frame, however often it is called before.
  schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      if (this.isConnected) this.#draw();
    });
  }

  // Shows the item at this place.
  scrollTo(index) {
    this.#isAtEnd = false;
    this.#layout();
    this.scrollTop = Math.max(0, (this.#tops[index] ?? 0) - this.clientHeight / 3);
    this.schedule();
  }

  toEnd() {
    this.#isAtEnd = true;
    this.schedule();
  }

  #moved = () => (this.#touched = performance.now());

  #scrolled = () => {
    const wasAtEnd = this.#isAtEnd;
    const toEnd = this.scrollHeight - this.clientHeight - this.scrollTop;
    // What is above may have become smaller or larger: only a movement up leaves the end. And a list that was higher for a moment has moved
    // by a little, which nobody wanted.
    const isWanted = performance.now() - this.#touched < INTENT || toEnd > this.clientHeight / 2;
    if (this.scrollTop < this.#lastTop - 1 && isWanted) this.#isAtEnd = false;
    if (toEnd <= NEAR) this.#isAtEnd = this.follows;
    this.#lastTop = this.scrollTop;
    if (wasAtEnd !== this.#isAtEnd) this.dispatchEvent(new CustomEvent("end-changed"));
    this.schedule();
  };

  #measure(entries) {
    let changed = false;
    for (const { target } of entries) {
      if (target === this) changed = true;
      else if (target.isConnected) {
        const height = target.offsetHeight;
        if (height && this.#heights.get(target.listKey) !== height) {
          this.#heights.set(target.listKey, height);
          this.#isOutdated = true;
          changed = true;
        }
      }
    }
    if (changed) this.schedule();
  }

  #layout() {
    if (!this.#isOutdated) return;
    this.#isOutdated = false;
    const count = this.#items.length;
    const tops = new Float64Array(count + 1);
    for (let index = 0; index < count; index++) {
      tops[index + 1] = tops[index] + (this.#heights.get(this.keyOf(this.#items[index])) ?? this.estimate);
    }
    this.#tops = tops;
    this.space.style.height = `${tops[count]}px`;
  }

  // The item at this height.
  #at(top) {
    let low = 0;
    let high = this.#items.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#tops[middle] <= top) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  #draw() {
    // The row at the upper edge stays where it is, whatever changes above it.
    const anchor = this.#isAtEnd ? null : this.#anchor();
    this.#layout();
    if (this.#isAtEnd) this.scrollTop = this.scrollHeight;
    else if (anchor) this.#keep(anchor);
    this.#lastTop = this.scrollTop;
    const first = this.#at(this.scrollTop - MARGIN);
    const last = Math.min(this.#items.length - 1, this.#at(this.scrollTop + this.clientHeight + MARGIN));
    const seen = new Set();
    for (let index = first; index <= last; index++) {
      const item = this.#items[index];
      const key = this.keyOf(item);
      seen.add(key);
      let row = this.#rows.get(key);
      if (!row) {
        row = document.createElement("div");
        row.className = "virtual-row";
        row.setAttribute("role", "listitem");
        row.listKey = key;
        this.#rows.set(key, row);
        this.space.append(row);
        this.observer.observe(row);
      }
      row.listIndex = index;
      row.setAttribute("aria-posinset", index + 1);
      row.setAttribute("aria-setsize", this.#items.length);
      row.style.top = `${this.#tops[index]}px`;
      render(this.renderRow(item, index), row);
    }
    for (const [key, row] of this.#rows) {
      // What has the focus stays, so that the keyboard does not lose its place.
      if (seen.has(key) || row.contains(document.activeElement)) continue;
      this.observer.unobserve(row);
      row.remove();
      this.#rows.delete(key);
    }
    this.#order();
  }

  // Rows are read in the order of the list.
  #order() {
    const rows = [...this.#rows.values()].sort((one, other) => one.listIndex - other.listIndex);
    rows.forEach((row, index) => {
      if (this.space.children[index] !== row) this.space.insertBefore(row, this.space.children[index] ?? null);
    });
  }

  #anchor() {
    const top = this.scrollTop;
    let best = null;
    for (const row of this.#rows.values()) {
      const at = this.#tops[row.listIndex] ?? 0;
      if (at <= top + 1 && (!best || at > best.at)) best = { key: row.listKey, index: row.listIndex, at, offset: top - at };
    }
    return best;
  }

  #keep({ key, index, offset }) {
    let found = this.#items[index] && this.keyOf(this.#items[index]) === key ? index : -1;
    if (found < 0) found = this.#items.findIndex((item) => this.keyOf(item) === key);
    if (found < 0) return;
    const top = this.#tops[found] + offset;
    if (Math.abs(top - this.scrollTop) > 1) this.scrollTop = top;
  }
}

customElements.define("virtual-list", VirtualList);
