// What the session waits for, and what was decided before.

import { ApiProblem, api, path } from "./api.js";
import { dateTime, own, problemNotice, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { formJson, schemaForm } from "./schema_form.js";
import { texts } from "./texts.js";

export class RequestsTab extends HTMLElement {
  constructor() {
    super();
    this.drafts = new Map();
  }

  show(store) {
    this.store = store;
    this.draw();
  }

  draw() {
    const open = this.store.past === null ? this.store.requests.filter((request) => request.kind !== "input") : [];
    const answered = [...this.store.shown.requests.values()].filter((request) => request.answered).reverse();
    render(
      html`${open.length + answered.length === 0 ? html`<p class="empty">${texts.noRequests}</p>` : nothing}
        ${open.map((request) => this.request(request))}
        ${answered.length ? html`<h2>${texts.decided}</h2><ul class="plain">${answered.map((request) => this.answered(request))}</ul>` : nothing}`,
      this,
    );
  }

  draft(id) {
    if (!this.drafts.has(id)) this.drafts.set(id, { values: {}, errors: {}, comment: "", by: "", problem: null, isSending: false });
    return this.drafts.get(id);
  }

  request(request) {
    const draft = this.draft(request.id);
    const id = `request-${request.request_id}`;
    const decisions = request.kind === "interrupted_effect" ? ["again", "skip", "fail"] : request.decisions;
    const change = (name, value) => {
      draft.values[name] = value;
      delete draft.errors[name];
    };
    return html`<form class="request" aria-labelledby="${id}-title" @submit=${(event) => event.preventDefault()}>
      <h2 id="${id}-title">${texts.requestOpened(request.kind)} <span class="hint">${stamp(request.opened_at, true)}</span></h2>
      <p class="text" dir="auto">${visible(request.prompt)}</p>
      ${request.due_at ? html`<p class="hint">${texts.due(dateTime(request.due_at))}</p>` : nothing}
      ${request.approvers.length ? html`<p class="hint">${texts.approvers}: ${visible(request.approvers.join(", "))}</p>` : nothing}
      ${schemaForm(request.schema, { id: `${id}-field`, values: draft.values, errors: draft.errors, change })}
      ${decisions.length === 0 ? nothing : html`
        <div class="field"><label for="${id}-comment">${texts.comment}</label><textarea id="${id}-comment" rows="2" dir="auto" .value=${draft.comment} @input=${(event) => (draft.comment = event.target.value)}></textarea></div>
        <div class="field"><label for="${id}-by">${texts.by}</label><input id="${id}-by" type="text" autocomplete="name" .value=${draft.by} @input=${(event) => (draft.by = event.target.value)}></div>
        ${problemNotice(draft.problem)}
        <div class="buttons">${decisions.map((decision) => html`<button type="button" class=${["approve", "again"].includes(decision) ? "main" : ""} ?disabled=${draft.isSending} @click=${() => this.decide(request, decision)}>${texts.decisions[decision] ?? decision}</button>`)}</div>
        <p class="hint" role="status">${draft.isSending ? texts.sending : ""}</p>`}
    </form>`;
  }

  async decide(request, decision) {
    const draft = this.draft(request.id);
    const { json, errors } = formJson(valuesOf(request, decision, draft.values), draft.values);
    draft.errors = errors;
    draft.problem = null;
    if (!json) {
      this.draw();
      return this.querySelector("[aria-invalid=true]")?.focus();
    }
    draft.isSending = true;
    this.draw();
    try {
      const body = { decision };
      if (draft.comment.trim()) body.comment = draft.comment;
      if (draft.by.trim()) body.by = draft.by.trim();
      await api.postText(path`/v1/requests/${request.session_id}/${request.request_id}`, `${JSON.stringify(body).slice(0, -1)},"values":${json}}`);
      this.drafts.delete(request.id);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      draft.problem = error;
      draft.isSending = false;
    }
    await this.store.loadRequests();
    this.draw();
  }

  answered({ opened, answered }) {
    const values = Object.entries(answered.values ?? {});
    return html`<li class="decision"><p><strong>${texts.decisions[answered.decision] ?? answered.decision ?? texts.timeCame}</strong>${answered.by ? html` · ${own(answered.by)}` : nothing} ${stamp(answered.at)}</p>
      <p class="hint" dir="auto">${visible(opened.prompt)}</p>
      ${answered.comment ? html`<p dir="auto">${visible(answered.comment)}</p>` : nothing}
      ${values.map(([name, value]) => html`<p><code>${visible(name)}</code> = ${visible(valueText(value))}</p>`)}</li>`;
  }
}

customElements.define("requests-tab", RequestsTab);

// The schema of the values that a decision takes: an approval those of the form, a correction what it corrects. Who rejects or pushes back
// need not fill the form.
function valuesOf({ schema, decisions }, decision, values) {
  const isForm = !decisions.includes("edit") && !decisions.includes("answer");
  if (decision === "approve" && isForm) return schema;
  const names = { edit: ["arguments", "code"], answer: ["answer"] }[decision] ?? [];
  const properties = Object.fromEntries(Object.entries(schema?.properties ?? {}).filter(([name]) => names.includes(name)));
  // An answer that is no JSON is a text.
  if (properties.answer && formJson({ properties }, values).errors.answer) properties.answer = { type: "string" };
  return { properties };
}
