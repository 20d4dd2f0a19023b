// The messages of the conversation. What people and models write is text: it is never read as markup.

import { texts } from "./texts.js";

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Characters that reorder or hide what follows them are left out, other control characters are shown as such. Marks that only belong to
// their own word (U+200E, U+200F, U+061C) stay: the text is isolated.
export function clean(text) {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, "")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufff9-\ufffb]/g, "\ufffd");
}

export class Messages {
  constructor() {
    this.list = element("ol", { class: "messages" });
    // Read out as it grows, and reached with the keyboard to be read again.
    const log = element("div", { role: "log", "aria-label": texts.conversation, tabindex: 0 }, this.list);
    // What is being said is shown, and read out when it is complete.
    this.live = element("div", { class: "message live", "aria-hidden": "true", hidden: true });
    this.liveText = element("div", { class: "text", dir: "auto" });
    this.live.append(this.liveText);
    this.typing = element(
      "p",
      { class: "typing", hidden: true },
      element("span", { class: "dots", "aria-hidden": "true" }, ...[1, 2, 3].map(() => element("span"))),
      element("span", { class: "label" }, texts.writing),
    );
    this.newer = element("button", { class: "newer", type: "button", hidden: true, onclick: () => this.toEnd() }, texts.newer);
    this.root = element("div", { class: "conversation" }, log, this.live, this.typing, this.newer);
    this.stopLive();
    addEventListener("scroll", () => this.isAtEnd() && (this.newer.hidden = true), { passive: true });
  }

  show(messages, hasEarlier) {
    this.keepingEnd(() => {
      const pending = [...this.list.querySelectorAll("[data-state='sending'], [data-state='later']")];
      const items = messages.map((message) => this.known(message) ?? this.item(message));
      if (hasEarlier) items.unshift(this.list.querySelector("li.notice") ?? element("li", { class: "notice" }, texts.earlier));
      this.arrange([...items, ...pending]);
      this.stopLive();
    });
  }

  // What is there already is not touched: a program that reads the screen out would begin again with the first message.
  arrange(items) {
    const kept = new Set(items);
    for (const item of [...this.list.children]) if (!kept.has(item)) item.remove();
    let place = this.list.firstElementChild;
    for (const item of items) {
      if (item === place) place = place.nextElementSibling;
      else this.list.insertBefore(item, place);
    }
  }

  // The item of a message that is shown as it is now.
  known({ id, own, text }) {
    const item = this.find(id);
    return item?.classList.contains("own") === Boolean(own) && item.querySelector(".text").textContent === clean(text) ? item : null;
  }

  item({ id, own, text }) {
    const item = element("li", { class: own ? "message own" : "message other", "data-id": id });
    item.append(
      element("span", { class: "who" }, own ? texts.you : texts.other),
      element("div", { class: "text", dir: "auto" }, clean(text)),
    );
    return item;
  }

  // Returns whether it is new.
  add(message) {
    const byKey = message.key && this.list.querySelector(`[data-key="${CSS.escape(message.key)}"]`);
    if (byKey) {
      byKey.dataset.id = message.id;
      this.mark(byKey, "stored");
      return false;
    }
    if (this.find(message.id)) return false;
    this.keepingEnd(() => {
      this.stopLive();
      this.list.append(this.item(message));
    }, !message.own);
    return true;
  }

  find(id) {
    return this.list.querySelector(`[data-id="${CSS.escape(id)}"]`);
  }

  // An answer that the server does not have yet.
  addPending({ key, text }) {
    const known = this.list.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (known) return known;
    const item = this.item({ own: true, text });
    item.removeAttribute("data-id");
    item.dataset.key = key;
    item.append(element("span", { class: "delivery", role: "status" }));
    this.list.append(item);
    this.mark(item, "sending");
    this.toEnd();
    return item;
  }

  // `sending`, `later` (it is sent as soon as that is possible), or `stored`.
  mark(item, state) {
    item.dataset.state = state;
    const label = item.querySelector(".delivery");
    if (label) label.textContent = texts[state];
  }

  // The server has an answer, under this id.
  stored(item, id) {
    if (this.find(id) && this.find(id) !== item) {
      item.remove();
      return;
    }
    item.dataset.id = id;
    this.mark(item, "stored");
  }

  // Pieces are drawn with the next frame, and only what is new: a long text may come in thousands of them.
  piece({ id, text }) {
    if (this.liveId !== id) this.stopLive();
    this.liveId = id;
    // A line end may be cut in two.
    const whole = this.cut + text;
    this.cut = whole.endsWith("\r") ? "\r" : "";
    this.undrawn += clean(whole.slice(0, whole.length - this.cut.length));
    this.drawing ??= requestAnimationFrame(() => this.drawLive());
  }

  drawLive() {
    this.drawing = null;
    this.keepingEnd(() => {
      this.liveText.append(this.undrawn);
      this.undrawn = "";
      this.live.hidden = false;
    });
  }

  stopLive() {
    if (this.drawing) cancelAnimationFrame(this.drawing);
    this.drawing = null;
    this.liveId = null;
    this.cut = this.undrawn = "";
    this.live.hidden = true;
    this.liveText.textContent = "";
  }

  setTyping(isTyping) {
    if (this.typing.hidden === !isTyping) return;
    this.keepingEnd(() => (this.typing.hidden = !isTyping));
  }

  lastOwn() {
    return [...this.list.querySelectorAll(".own[data-id]")].at(-1);
  }

  isAtEnd() {
    return innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  }

  toEnd() {
    this.newer.hidden = true;
    scrollTo({ top: document.documentElement.scrollHeight });
  }

  // Changes what is shown. Whoever reads the end goes on to read the end; whoever has scrolled up stays there, and is told.
  keepingEnd(change, announces = false) {
    const wasAtEnd = this.isAtEnd();
    change();
    if (wasAtEnd) requestAnimationFrame(() => this.toEnd());
    else if (announces) this.newer.hidden = false;
  }
}
