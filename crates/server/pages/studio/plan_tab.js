// Plans: those by which the script was changed while it ran, and those of the user.

import { ApiProblem, api, query } from "./api.js";
import { count, own, problemNotice, stamp, statusBadge, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// Of a larger plan, its first tasks are drawn.
const MAX_TASKS = 500;

export class PlanTab extends HTMLElement {
  show(store) {
    const isOther = this.store !== store;
    this.store = store;
    const changes = store.fold.planChanges.length;
    if (store.outline && (isOther || this.changes !== changes)) {
      this.changes = changes;
      this.load();
    }
    this.draw();
  }

  async load() {
    const { user } = this.store.outline;
    try {
      const { plans } = await api.get(`/v1/plans${query({ user })}`);
      const own = plans.filter((plan) => plan.session_id === this.store.id);
      this.plans = await Promise.all(own.map((plan) => api.get(`/v1/plans/${plan.plan_id}${query({ user })}`)));
      this.problem = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.problem = error;
    }
    this.draw();
  }

  draw() {
    const { plans: changes } = this.store.shown;
    const plans = this.plans ?? [];
    render(
      html`${changes.length + plans.length === 0 ? html`<p class="empty">${texts.noPlans}</p>` : nothing}
        ${problemNotice(this.problem, () => this.load())}
        ${plans.map((plan) => this.plan(plan))}
        ${changes.length ? html`<h2>${texts.scriptChanges}</h2>` : nothing}
        <ul class="plain">${changes.slice().reverse().map((event) => this.change(event))}</ul>`,
      this,
    );
  }

  plan(plan) {
    return html`<section><h2>${own(plan.title ?? plan.goal ?? plan.plan_id)} ${plan.status ? statusBadge(plan.status) : nothing}</h2>
      ${plan.goal ? html`<p class="hint" dir="auto">${visible(plan.goal)}</p>` : nothing}
      ${this.tasks(Map.groupBy(plan.tasks.slice(0, MAX_TASKS), (task) => task.parent ?? null), null)}
      ${plan.tasks.length > MAX_TASKS ? html`<p class="hint">${texts.onlyFirst(MAX_TASKS, count(plan.tasks.length))}</p>` : nothing}</section>`;
  }

  // Tasks name the task that they are a part of.
  tasks(children, parent) {
    const tasks = children.get(parent) ?? [];
    if (!tasks.length) return nothing;
    return html`<ul class="tasks">${tasks.map((task) => html`<li>${statusBadge(task.status)} ${own(task.name)}
      ${task.error ? html`<p class="warning">${visible(task.error)}</p>` : nothing}${this.tasks(children, task.id)}</li>`)}</ul>`;
  }

  change(event) {
    return html`<li><p><strong>${event.accepted ? texts.planAccepted : texts.planRejected}</strong> · ${own(event.from)} ${stamp(event.at)}</p>
      <p class="hint">${visible(event.why)}</p>
      <p><code>${visible(event.original.join(" → "))}</code></p><p><code>${visible(event.now.join(" → "))}</code></p>
      <details><summary>${texts.details}</summary><pre class="raw">${visible(valueText(event.plan, 2))}</pre></details></li>`;
  }
}

customElements.define("plan-tab", PlanTab);
