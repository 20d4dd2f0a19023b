// How values, times and texts of others are shown. What people and models write is text, and never markup.

import { html, nothing } from "./libraries/lit-html.js";
import { language, texts } from "./texts.js";

// Characters that reorder or hide what follows them, and control characters. They are shown by their numbers, so that nobody is deceived
// and nothing is lost.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// Joiners belong to words and to pictures of several characters.
const JOINERS = new Set(["\u200c", "\u200d"]);

export function visible(text) {
  return String(text ?? "")
    .replace(/\r\n?/g, "\n")
    .replace(HIDDEN, (found) => (JOINERS.has(found) ? found : `⟦U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`));
}

// The first part of a text on one line.
export function line(text, length = 120) {
  const flat = visible(String(text ?? "").slice(0, length * 4)).replace(/\s+/g, " ").trim();
  return flat.length > length ? `${flat.slice(0, length)}…` : flat;
}

// A text of others, isolated so that its direction stays its own.
export const own = (text) => html`<bdi>${visible(text)}</bdi>`;

// Texts that were opened as a whole. Rows come and go while one scrolls.
const opened = new Map();
const LONG = 3000;

// A text of any length: the beginning of a long one, with a button for the rest.
export function longText(text, key, redraw, name = "text") {
  const whole = String(text ?? "");
  if (whole.length <= LONG) return html`<div class=${name} dir="auto">${visible(whole)}</div>`;
  if (opened.has(key)) {
    // A large text is not prepared in each frame.
    if (opened.get(key)?.whole !== whole) opened.set(key, { whole, shown: visible(whole) });
    return html`<div class=${name} dir="auto">${opened.get(key).shown}</div>`;
  }
  const more = () => {
    opened.set(key, null);
    redraw();
  };
  return html`<div class=${name} dir="auto">${visible(whole.slice(0, LONG))}…</div>
    <button type="button" class="quiet" @click=${more}>${texts.showAll(count(whole.length))}</button>`;
}

const numbers = new Intl.NumberFormat(language === "zh" ? "zh-CN" : "en");
const times = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dates = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en", { dateStyle: "medium", timeStyle: "short" });

export const count = (number) => numbers.format(number);

export function time(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? visible(at) : times.format(date);
}

export function dateTime(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? visible(at) : dates.format(date);
}

export function stamp(at, whole = false) {
  return html`<time datetime=${at ?? ""} title=${at ?? ""}>${whole ? dateTime(at) : time(at)}</time>`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "—";
  return ms < 1000 ? `${count(ms)} ms` : `${numbers.format(Math.round(ms / 100) / 10)} s`;
}

// A number as it was written, which a number of JavaScript may not hold.
export class WrittenNumber {
  constructor(text) {
    this.text = text;
  }
  valueOf() {
    return Number(this.text);
  }
  toString() {
    return this.text;
  }
  toJSON() {
    return JSON.rawJSON ? JSON.rawJSON(this.text) : this.text;
  }
}

// Reads JSON, and keeps the digits of numbers where the browser gives them.
export function parseExact(text) {
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source ? new WrittenNumber(context.source) : value,
  );
}

export function valueText(value, space = 0) {
  if (value instanceof WrittenNumber) return value.text;
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, space) ?? "";
}

// A status in words, with a mark that does not depend on color.
const MARKS = { running: "◐", waiting: "◌", done: "●", failed: "✕", skipped: "–", pending: "○", stopped: "■", cancelled: "✕", undone: "↶" };

export function statusGroup(status) {
  if (status?.startsWith("waiting")) return "waiting";
  return { completed: "done", failed: "failed", running: "running", stopped: "stopped", cancelled: "cancelled" }[status] ?? status ?? "pending";
}

export function statusBadge(status) {
  const group = statusGroup(status);
  return html`<span class="status ${group}"><span aria-hidden="true">${MARKS[group] ?? "○"}</span> ${texts.status[status] ?? status}</span>`;
}

export const mark = (group) => MARKS[group] ?? "○";

// What went wrong, said once and where it happened.
export function problemNotice(problem, retry) {
  if (!problem) return nothing;
  return html`<div class="problem" role="alert">
    <p>${visible(problem.message)}</p>
    ${problem.help ? html`<p class="hint">${visible(problem.help)}</p>` : nothing}
    ${retry ? html`<button type="button" @click=${retry}>${texts.tryAgain}</button>` : nothing}
  </div>`;
}

// Gives a property to an element that had it before its class was loaded.
export function upgrade(element, name) {
  if (!Object.hasOwn(element, name)) return;
  const value = element[name];
  delete element[name];
  element[name] = value;
}
