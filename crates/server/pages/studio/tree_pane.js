// The tree of the session: phases, topics and actions, with what each is doing now.

import { mark, own, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { nodeKey } from "./session_fold.js";
import { texts } from "./texts.js";

export class TreePane extends HTMLElement {
  constructor() {
    super();
    // Which parts were opened or closed by hand.
    this.choices = new Map();
    this.focused = null;
  }

  show(store, { select }) {
    this.store = store;
    this.select = select;
    this.draw();
  }

  draw() {
    this.roots = this.tree();
    this.rows = [];
    this.flatten(this.roots, 1);
    const current = this.rows.find((row) => row.node.key === this.focused) ?? this.rows[0];
    render(
      html`<div class="tree" role="tree" aria-label=${texts.tree} @keydown=${(event) => this.key(event)}>
        ${this.rows.map((row) => this.item(row, row === current))}
      </div>`,
      this,
    );
  }

  // The script's own parts, with those that only the events have: inserted ones, and those of skills.
  tree() {
    const fold = this.store.shown;
    const used = new Set();
    const state = (...ids) => {
      const key = nodeKey(...ids);
      used.add(key);
      return fold.nodes.get(key) ?? { status: "pending" };
    };
    const action = (phase, topic) => (item) => ({
      key: nodeKey(phase, topic, item.id),
      id: item.id,
      type: item.action_type,
      maxRounds: item.max_rounds,
      state: state(phase, topic, item.id),
      children: (item.actions ?? []).map(action(phase, topic)),
    });
    const phases = (this.store.outline?.phases ?? []).map((phase) => ({
      key: nodeKey(phase.id),
      id: phase.id,
      name: phase.name,
      state: state(phase.id),
      children: phase.topics.map((topic) => ({
        key: nodeKey(phase.id, topic.id),
        id: topic.id,
        name: topic.name,
        repeats: topic.repeats,
        state: state(phase.id, topic.id),
        children: topic.actions.map(action(phase.id, topic.id)),
      })),
    }));
    const find = (list, key) => list.find((item) => item.key === key);
    for (const node of fold.nodes.values()) {
      if (used.has(node.key)) continue;
      const made = { key: node.key, id: node.ids.at(-1), name: node.name, type: node.type, state: node, children: [], isInserted: Boolean(this.store.outline) };
      let list = phases;
      for (let depth = 1; depth < node.depth; depth++) list = find(list, nodeKey(...node.ids.slice(0, depth)))?.children ?? list;
      list.push(made);
    }
    return phases;
  }

  isOpen(node, level) {
    if (!node.children.length) return false;
    return this.choices.get(node.key) ?? (level === 1 ? true : node.state.status !== "pending" && node.state.status !== "done" ? true : level === 2 && this.rowsAreFew());
  }

  // Small scripts are shown whole.
  rowsAreFew() {
    return this.roots.reduce((sum, phase) => sum + phase.children.reduce((inner, topic) => inner + 1 + topic.children.length, 1), 0) <= 60;
  }

  flatten(nodes, level, parent = null) {
    nodes.forEach((node, index) => {
      const isOpen = this.isOpen(node, level);
      const row = { node, level, parent, isOpen, place: index + 1, count: nodes.length };
      this.rows.push(row);
      if (isOpen) this.flatten(node.children, level + 1, row);
    });
  }

  item({ node, level, isOpen, place, count }, isCurrent) {
    const { status, round, visits, reason } = node.state;
    const word = texts.status[status] ?? status;
    const exit = reason && reason !== "exit_criteria_met" ? reason : "";
    const rounds = round && (node.maxRounds ?? node.state.maxRounds) > 1 ? texts.roundOf(round, node.maxRounds ?? node.state.maxRounds) : "";
    return html`<div role="treeitem" class="node level-${level} ${status}" data-key=${node.key} aria-level=${level} aria-posinset=${place} aria-setsize=${count}
      aria-expanded=${node.children.length ? String(isOpen) : nothing} aria-selected=${isCurrent ? "true" : "false"} tabindex=${isCurrent ? "0" : "-1"} title=${exit ? `${word}: ${exit}` : word} @click=${(event) => this.click(event, node, isOpen)}>
      <span class="twist" aria-hidden="true">${node.children.length ? (isOpen ? "▾" : "▸") : ""}</span>
      <span class="mark ${status}" aria-hidden="true">${mark(status)}</span>
      <span class="name">${own(node.name ?? node.id)}</span>
      ${node.type ? html`<span class="hint">${visible(node.type)}</span>` : nothing}
      <span class="hint end">${rounds}${visits > 1 ? ` ×${visits}` : ""}${node.isInserted ? ` ${texts.inserted}` : ""}</span>
      <span class="unseen">${word}${exit ? `, ${exit}` : ""}</span>
    </div>`;
  }

  click(event, node, isOpen) {
    this.focused = node.key;
    if (event.target.closest(".twist") && node.children.length) this.choices.set(node.key, !isOpen);
    else if (node.children.length && !node.type) this.choices.set(node.key, !isOpen);
    if (node.state.seq) this.select(node.state.seq);
    this.draw();
  }

  key(event) {
    const key = event.target.closest("[role=treeitem]")?.dataset.key;
    const index = this.rows.findIndex((row) => row.node.key === key);
    const row = this.rows[index];
    if (!row) return;
    const moves = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: this.rows.length - 1 };
    if (event.key in moves) this.focusRow(this.rows[moves[event.key]]);
    else if (event.key === "ArrowRight" && row.node.children.length) {
      if (row.isOpen) this.focusRow(this.rows[index + 1]);
      else this.choices.set(key, true);
    } else if (event.key === "ArrowLeft") {
      if (row.isOpen) this.choices.set(key, false);
      else if (row.parent) this.focusRow(row.parent);
    } else if (event.key === "Enter" || event.key === " ") {
      if (row.node.state.seq) this.select(row.node.state.seq);
    } else return;
    event.preventDefault();
    this.draw();
    this.querySelector("[tabindex='0']")?.focus();
  }

  focusRow(row) {
    if (row) this.focused = row.node.key;
  }
}

customElements.define("tree-pane", TreePane);
