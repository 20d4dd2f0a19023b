// A small chart of one metric over the rounds.

import { upgrade } from "./display.js";

// Its smallest file is no module: the page loads it as a script.
const { uPlot } = globalThis;

const WIDTH = 320;
const HEIGHT = 84;

export class StudioChart extends HTMLElement {
  // `points` are pairs of a number and a value.
  set points(points) {
    this.data = [points.map(([x]) => x), points.map(([, y]) => y)];
    if (this.isConnected) this.draw();
  }

  connectedCallback() {
    upgrade(this, "points");
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this);
    this.theme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.draw();
    this.theme.addEventListener("change", this.redraw);
    this.draw();
  }

  disconnectedCallback() {
    this.observer.disconnect();
    this.theme.removeEventListener("change", this.redraw);
    this.plot?.destroy();
    this.plot = null;
  }

  draw() {
    if (!this.data) return;
    const style = getComputedStyle(this);
    const color = (name) => style.getPropertyValue(name).trim();
    const colors = color("--accent") + color("--line");
    if (this.plot && this.colors === colors) return this.plot.setData(this.data);
    this.colors = colors;
    this.plot?.destroy();
    const axis = { stroke: color("--faint"), font: "11px system-ui", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot(
      {
        width: this.clientWidth || WIDTH,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: { range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) } },
        axes: [{ ...axis, size: 20, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], space: 30 }, { ...axis, size: 34, space: 24 }],
        series: [{}, { stroke: color("--accent"), width: 1.5, points: { size: 5, fill: color("--accent") } }],
      },
      this.data,
      this,
    );
  }

  resize() {
    if (this.plot && this.clientWidth && Math.abs(this.plot.width - this.clientWidth) > 1) this.plot.setSize({ width: this.clientWidth, height: HEIGHT });
  }
}

customElements.define("studio-chart", StudioChart);
