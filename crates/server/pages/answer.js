// How a person answers: quick replies, dates, numbers, and texts of any length.

import { memory } from "./address.js";
import { clean, element } from "./messages.js";
import { texts } from "./texts.js";

// On a screen keyboard, Enter begins a new line.
const isTouched = matchMedia("(pointer: coarse)").matches;

// A text with more characters than this has one direction, not one for each line.
const longText = 20000;

export class AnswerForm {
  // `send` gets the text of an answer.
  constructor(send) {
    this.send = send;
    this.waiting = null;
    this.options = element("div", { class: "options", role: "group", "aria-label": texts.options, hidden: true });
    this.text = element("textarea", {
      id: "answer",
      rows: 1,
      dir: "auto",
      "aria-describedby": "hint",
      autocomplete: "off",
      oninput: () => this.changed(),
      onkeydown: (event) => this.key(event),
    });
    this.date = element("input", { type: "date", id: "date", onchange: () => this.choose(this.date.value) });
    this.dateLine = element("p", { class: "date", hidden: true }, element("label", { for: "date" }, texts.date), this.date);
    this.words = element("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.inWords() }, texts.words);
    this.button = element("button", { type: "submit", class: "send" }, texts.send);
    this.hint = element("p", { id: "hint", class: "hint" }, isTouched ? "" : texts.keys);
    this.under = element("div", { class: "under" }, this.hint, this.words);
    this.notice = element("p", { class: "notice", role: "alert", hidden: true });
    this.root = element(
      "form",
      { class: "answer", onsubmit: (event) => this.submit(event) },
      this.notice,
      this.options,
      this.dateLine,
      element("label", { for: "answer", class: "who" }, texts.answer),
      element("div", { class: "line" }, this.text, this.button),
      this.under,
    );
    this.text.value = memory.get("draft") ?? "";
    this.show(null);
  }

  // What the conversation waits for; null while it waits for nothing.
  show(waiting) {
    const isSame = waiting?.answer_id === this.waiting?.answer_id;
    const hadFocus = this.options.contains(document.activeElement);
    this.waiting = waiting;
    const isOpen = waiting?.for === "answer";
    this.button.disabled = !isOpen;
    this.text.placeholder = isOpen ? texts.placeholder : texts.notYet;
    if (isSame && isOpen) return;
    const input = isOpen ? waiting.input : "text";
    const options = input === "yes_no" ? [texts.yes, texts.no] : isOpen ? waiting.options : [];
    this.options.replaceChildren(
      ...options.map((option) =>
        element("button", { type: "button", class: "option", onclick: () => this.option(option) }, element("bdi", {}, clean(option))),
      ),
    );
    this.options.hidden = options.length === 0;
    this.dateLine.hidden = input !== "date";
    this.date.value = "";
    this.text.inputMode = input === "number" ? "decimal" : "text";
    this.words.hidden = input !== "number" || !isTouched;
    if (hadFocus) this.text.focus();
    this.grow();
  }

  // Nothing can be sent any more. Returns whether there is a text that was not sent.
  close() {
    for (const part of [this.options, this.dateLine, this.words, this.button, this.hint]) part.hidden = true;
    this.text.readOnly = true;
    const isLeft = this.text.value.trim() !== "";
    this.tell(isLeft ? texts.unsent : "");
    return isLeft;
  }

  option(option) {
    if (this.waiting?.for !== "answer") return;
    this.tell("");
    if (this.text.value === this.takenBack) this.fill("");
    this.send(option);
    this.text.focus();
  }

  choose(value) {
    // Not while a date is being typed: the focus stays where it is.
    if (value) this.fill(value);
  }

  fill(text) {
    this.text.value = text;
    this.changed();
  }

  // A keyboard for numbers has no letters.
  inWords() {
    this.text.inputMode = "text";
    this.words.hidden = true;
    this.text.focus();
  }

  submit(event) {
    event.preventDefault();
    const text = this.text.value.trim();
    if (!text || this.waiting?.for !== "answer") return;
    this.fill("");
    this.tell("");
    this.send(text);
  }

  key(event) {
    // While an input method composes a word, the key ends the word.
    const isComposing = event.isComposing || event.keyCode === 229;
    if (event.key === "Enter" && !event.shiftKey && !isComposing && !isTouched) {
      event.preventDefault();
      this.root.requestSubmit();
    }
  }

  changed() {
    memory.set("draft", this.text.value);
    this.grow();
  }

  grow() {
    // `dir="auto"` gives each line of a field its own direction, for which Chromium takes time with the square of the line's length.
    this.text.style.unicodeBidi = this.text.value.length > longText ? "isolate" : "";
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, innerHeight * 0.45)}px`;
  }

  // Gives a text back that was not accepted, before what was written in the meantime.
  giveBack(text) {
    this.fill([text, this.text.value].filter(Boolean).join("\n"));
  }

  // Puts an answer that was taken back into the field, unless something else is in it, or there is a button for it.
  putBack(text) {
    if (this.text.value && this.text.value !== this.takenBack) return;
    const hasButton = [...this.options.children].some((option) => option.textContent === text);
    this.fill((this.takenBack = hasButton ? "" : text));
  }

  tell(notice) {
    this.notice.textContent = notice;
    this.notice.hidden = !notice;
  }
}
