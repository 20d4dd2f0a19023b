// The difference between two texts, by lines or by words, and how it is shown.

import { visible } from "./display.js";
import { html } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// Longer parts that differ are not compared: the table has a cell for each pair.
const MAX_CELLS = 2_250_000;

// How many unchanged lines are shown around a change.
const CONTEXT = 2;

// Returns the items of both lists in order: each with `kind` `same`, `added` or `removed`.
export function listDiff(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let tail = 0;
  while (tail < one.length - start && tail < other.length - start && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
  const middle = compare(one.slice(start, one.length - tail), other.slice(start, other.length - tail));
  const same = (text) => ({ kind: "same", text });
  return [...one.slice(0, start).map(same), ...middle, ...one.slice(one.length - tail).map(same)];
}

// The longest common subsequence.
function compare(one, other) {
  const of = (kind) => (text) => ({ kind, text });
  const width = other.length + 1;
  if (one.length * width > MAX_CELLS) return [...one.map(of("removed")), ...other.map(of("added"))];
  const table = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      table[i * width + j] = one[i] === other[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const items = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      items.push({ kind: "same", text: one[i] });
      i += 1;
      j += 1;
    } else if (j >= other.length || (i < one.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
      items.push({ kind: "removed", text: one[i++] });
    } else items.push({ kind: "added", text: other[j++] });
  }
  return items;
}

// The items of both lists beside each other: `[one, other]`, where null has no partner. Names of items tell which are the same.
export function partners(one, other, nameOf) {
  const pairs = [];
  let [i, j, free] = [0, 0, 0];
  for (const { kind } of listDiff(one.map(nameOf), other.map(nameOf))) {
    if (kind === "same") {
      pairs.push([one[i++], other[j++]]);
      free = pairs.length;
    } else {
      // What stands in the place of another one is beside it.
      const side = kind === "removed" ? 0 : 1;
      let index = free;
      while (index < pairs.length && pairs[index][side] !== null) index += 1;
      if (index === pairs.length) pairs.push([null, null]);
      pairs[index][side] = side ? other[j++] : one[i++];
    }
  }
  return pairs;
}

// Words with the spaces after them, and single characters of scripts that put no spaces between words.
const WORDS = /[\w\u00c0-\u1fff'’]+\s*|\s+|[^]/gu;

// A text with the words marked that another one does not have.
export function marked(text, other) {
  const parts = [];
  for (const { kind, text: word } of listDiff(text.match(WORDS) ?? [], other.match(WORDS) ?? [])) {
    if (kind === "added") continue;
    if (parts.at(-1)?.kind === kind) parts.at(-1).text += word;
    else parts.push({ kind, text: word });
  }
  return parts.map((part) => (part.kind === "same" ? visible(part.text) : html`<mark>${visible(part.text)}</mark>`));
}

// The messages of a prompt as one text.
function promptText(prompt) {
  if (!Array.isArray(prompt)) return typeof prompt === "string" ? prompt : JSON.stringify(prompt ?? "", null, 2);
  return prompt.map((message) => `── ${message.role} ──\n${typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 2)}`).join("\n");
}

// How the prompt of an event differs from that of another one.
export function promptDiff(before, after, label) {
  const [one, other] = [before, after].map((event) => promptText(event.debug_info?.llm_prompt ?? "").split("\n"));
  const lines = around(listDiff(one, other));
  if (lines.length === 1) return html`<p class="hint">${texts.samePrompt}</p>`;
  return html`<div class="diff" tabindex="0" role="group" aria-label=${label}>${lines.map((part) =>
    part === null ? html`<p class="gap">⋯</p>` : html`<p class=${part.kind}><span aria-hidden="true">${{ added: "+", removed: "−", same: " " }[part.kind]}</span><span class="unseen">${texts.lineKinds[part.kind]}</span>${visible(part.text)}</p>`,
  )}</div>`;
}

// The changed lines with some around them; null where others are left out.
function around(lines) {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, index - CONTEXT), Math.min(lines.length, index + CONTEXT + 1));
  });
  const parts = [];
  lines.forEach((line, index) => {
    if (near[index]) parts.push(line);
    else if (parts.at(-1) !== null) parts.push(null);
  });
  return parts;
}
