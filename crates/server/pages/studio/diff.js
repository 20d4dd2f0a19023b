// The difference between two texts by lines.

// Longer texts are compared by which lines they have.
const MAX_LINES = 1500;

// Returns the lines of both in order: each with `kind` `same`, `added` or `removed`.
export function lineDiff(before, after) {
  const one = before.split("\n");
  const other = after.split("\n");
  if (one.length > MAX_LINES || other.length > MAX_LINES) {
    const known = new Set(one);
    return other.map((text) => ({ kind: known.has(text) ? "same" : "added", text }));
  }
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
  const width = other.length + 1;
  const table = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      table[i * width + j] = one[i] === other[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      lines.push({ kind: "same", text: one[i] });
      i += 1;
      j += 1;
    } else if (j >= other.length || (i < one.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
      lines.push({ kind: "removed", text: one[i++] });
    } else lines.push({ kind: "added", text: other[j++] });
  }
  return lines;
}

// The messages of a prompt as one text.
export function promptText(prompt) {
  if (!Array.isArray(prompt)) return typeof prompt === "string" ? prompt : JSON.stringify(prompt ?? "", null, 2);
  return prompt.map((message) => `── ${message.role} ──\n${typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 2)}`).join("\n");
}
