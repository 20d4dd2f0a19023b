// The metrics of the rounds: as charts where they are numbers, and as what was written.

import { own, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { metricNumber } from "./session_fold.js";
import { texts } from "./texts.js";

// How many rounds are listed with their texts at first.
const LISTED = 40;

export class MetricsTab extends HTMLElement {
  constructor() {
    super();
    this.limit = LISTED;
  }

  show(store, { select }) {
    this.store = store;
    this.select = select;
    // The library of charts is loaded when there is a chart.
    this.charts ??= null;
    this.draw();
  }

  draw() {
    const { metrics } = this.store.shown;
    const names = [...new Set(metrics.flatMap((event) => Object.keys(event.metrics)))];
    const series = names.map((name) => ({ name, points: metrics.map((event, index) => [index + 1, metricNumber(event.metrics[name])]).filter(([, value]) => value !== null && Number.isFinite(value)) }));
    const drawn = series.filter(({ points }) => points.length > 1);
    if (drawn.length && !this.charts) this.charts = import("./chart.js");
    const more = () => {
      this.limit += LISTED;
      this.draw();
    };
    render(
      html`${metrics.length === 0 ? html`<p class="empty">${texts.noMetrics}</p>` : nothing}
        ${drawn.map(({ name, points }) => this.chart(name, points))}
        ${metrics.length ? html`<h2>${texts.rounds} <span class="hint">${metrics.length}</span></h2>` : nothing}
        <ul class="plain">${metrics.slice(-this.limit).reverse().map((event) => this.round(event))}</ul>
        ${metrics.length > this.limit ? html`<button type="button" class="quiet" @click=${more}>${texts.showMore}</button>` : nothing}`,
      this,
    );
  }

  chart(name, points) {
    const values = points.map(([, value]) => value);
    const label = texts.chartLabel(texts.metricNames[name] ?? name, values.length, values[0], values.at(-1), Math.min(...values), Math.max(...values));
    return html`<figure class="chart"><figcaption>${texts.metricNames[name] ?? own(name)} <span class="hint">${values.at(-1)}</span></figcaption>
      <studio-chart role="img" aria-label=${label} .points=${points}></studio-chart></figure>`;
  }

  round(event) {
    return html`<li class="round"><p><button type="button" class="place" @click=${() => this.select(event.seq)}>${own(event.location?.action_id)} · ${texts.round(event.location?.round ?? 1)}</button> ${stamp(event.at)}
        ${event.progress_suggestion ? html`<span class="tag">${texts.suggestions[event.progress_suggestion] ?? event.progress_suggestion}</span>` : nothing}</p>
      <dl class="facts">${Object.entries(event.metrics).map(([name, value]) => html`<div><dt>${texts.metricNames[name] ?? own(name)}</dt><dd dir="auto">${visible(valueText(value))}</dd></div>`)}</dl></li>`;
  }
}

customElements.define("metrics-tab", MetricsTab);
