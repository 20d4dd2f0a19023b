// What ran as a drawing: a step for each action that ran, and an arrow for each way from one to the next.

import { duration, own } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// Larger drawings are not legible.
const MAX_NODES = 200;

export class WorkflowTab extends HTMLElement {
  show(store, { select }) {
    this.store = store;
    this.select = select;
    this.draw();
  }

  draw() {
    const { steps } = this.store.shown;
    const { nodes, edges, isCut } = graphOf(steps);
    if (nodes.length) this.drawing ??= import("./drawing.js");
    render(
      html`${steps.length === 0 ? html`<p class="empty">${texts.noSteps}</p>` : nothing}
        ${isCut ? html`<p class="hint">${texts.onlyLast(MAX_NODES)}</p>` : nothing}
        ${nodes.length ? html`<workflow-drawing .graph=${{ nodes, edges }} @chosen=${(event) => this.select(event.detail)}></workflow-drawing>` : nothing}
        ${steps.length ? html`<details><summary>${texts.asList}</summary><ol class="plain">${steps.slice(-MAX_NODES).map((step) => html`<li><button type="button" class="place" @click=${() => this.select(step.seq)}>${own(step.id)}</button> <span class="hint">${texts.status[step.status] ?? step.status}${step.ended ? ` · ${duration(Date.parse(step.ended) - Date.parse(step.at))}` : ""}${step.route ? ` · ${step.route.reason} → ${step.route.route}` : ""}</span></li>`)}</ol></details>` : nothing}`,
      this,
    );
  }
}

// The steps that ran: each action once, however often it ran.
export function graphOf(steps) {
  const nodes = new Map();
  const edges = new Map();
  const last = steps.slice(-MAX_NODES * 10);
  let before = null;
  for (const step of last) {
    const node = nodes.get(step.key) ?? { key: step.key, id: step.id, type: step.type, visits: 0 };
    Object.assign(node, { status: step.status, seq: step.seq, visits: node.visits + 1 });
    nodes.set(step.key, node);
    if (before) {
      const key = `${before.key}\u0001${step.key}`;
      const edge = edges.get(key) ?? { from: before.key, to: step.key, label: "", count: 0 };
      edge.count += 1;
      const reason = before.route?.reason;
      edge.label = reason && reason !== "exit_criteria_met" ? reason : "";
      edges.set(key, edge);
    }
    before = step;
  }
  const shown = [...nodes.values()].slice(-MAX_NODES);
  const known = new Set(shown.map((node) => node.key));
  return { nodes: shown, edges: [...edges.values()].filter((edge) => known.has(edge.from) && known.has(edge.to)), isCut: nodes.size > shown.length || last.length < steps.length };
}

customElements.define("workflow-tab", WorkflowTab);
