// Draws a graph of steps from top to bottom.

import { line, mark, upgrade } from "./display.js";
import dagre from "./libraries/dagre.esm.js";
import { html, render, svg } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

const HEIGHT = 34;
const MARGIN = 8;

// The width of a name in pixels, nearly.
const widthOf = (text) => Array.from(text).reduce((width, character) => width + (character.codePointAt(0) > 0x2e80 ? 13 : 7), 44);

export class WorkflowDrawing extends HTMLElement {
  set graph(graph) {
    const shape = JSON.stringify(graph);
    if (shape === this.shape) return;
    this.shape = shape;
    this.value = graph;
    if (this.isConnected) this.draw();
  }

  connectedCallback() {
    upgrade(this, "graph");
    this.draw();
  }

  draw() {
    if (!this.value) return;
    const layout = new dagre.graphlib.Graph({ multigraph: false });
    layout.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 28, marginx: MARGIN, marginy: MARGIN });
    layout.setDefaultEdgeLabel(() => ({}));
    const names = new Map();
    for (const node of this.value.nodes) {
      const name = line(node.id, 28);
      names.set(node.key, name);
      layout.setNode(node.key, { width: widthOf(name + (node.visits > 1 ? ` ×${node.visits}` : "")), height: HEIGHT });
    }
    for (const edge of this.value.edges) layout.setEdge(edge.from, edge.to, edge.label ? { width: widthOf(edge.label) - 30, height: 16, labelpos: "c" } : {});
    dagre.layout(layout);
    const { width, height } = layout.graph();
    render(
      html`<svg class="drawing" viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}" width=${Math.ceil(width)} height=${Math.ceil(height)} role="group" aria-label=${texts.drawing}>
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" class="arrow"></path></marker></defs>
        ${this.value.edges.map((edge) => this.edge(edge, layout.edge(edge.from, edge.to)))}
        ${this.value.nodes.map((node) => this.node(node, names.get(node.key), layout.node(node.key)))}
      </svg>`,
      this,
    );
  }

  edge(edge, { points, x, y }) {
    const way = points.map((point, index) => `${index ? "L" : "M"}${Math.round(point.x)} ${Math.round(point.y)}`).join("");
    return svg`<g class="edge"><path d=${way} marker-end="url(#arrow)"></path>${edge.label && x !== undefined ? svg`<text x=${Math.round(x)} y=${Math.round(y) + 4}>${line(edge.label, 30)}</text>` : ""}</g>`;
  }

  node(node, name, { x, y, width }) {
    const choose = () => this.dispatchEvent(new CustomEvent("chosen", { detail: node.seq }));
    const key = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    };
    const label = `${name}, ${texts.status[node.status] ?? node.status}`;
    return svg`<g class="step ${node.status}" role="button" tabindex="0" aria-label=${label} transform="translate(${Math.round(x - width / 2)} ${Math.round(y - HEIGHT / 2)})" @click=${choose} @keydown=${key}>
      <rect width=${Math.round(width)} height=${HEIGHT} rx="6"></rect>
      <text x="12" y="22" class="step-mark">${mark(node.status)}</text><text x="30" y="22">${name}${node.visits > 1 ? ` ×${node.visits}` : ""}</text>
    </g>`;
  }
}

customElements.define("workflow-drawing", WorkflowDrawing);
