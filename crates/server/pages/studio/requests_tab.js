// What the session waits for, and what was decided before.

import { ApiProblem, api, path } from "./api.js";
import { dateTime, own, problemNotice, stamp, valueText, visible } from "./display.js";
import { html, nothing, render } from "./libraries/lit-html.js";
import { formJson, schemaForm } from "./schema_form.js";
import { texts } from "./texts.js";

// How long, in milliseconds, nothing is decided after the list of requests has changed: the second click of a double click is about what was
// there before.
const SETTLING = 700;

export class RequestsTab extends HTMLElement {
  show(store) {
    this.store = store;
    this.draw();
  }

  draw() {
    this.forget();
    const open = this.store.past === null ? this.store.requests.filter((request) => request.kind !== "input") : [];
    const answered = [...this.store.shown.requests.values()].filter((request) => request.answered).reverse();
    render(
      html`${this.leftOver().map((draft) => this.overtaken(draft))}
        ${this.store.isAskingForRequests ? html`<p class="hint" role="status">${texts.loading}</p>` : open.length + answered.length === 0 ? html`<p class="empty">${texts.noRequests}</p>` : nothing}
        <div class="open-requests" role="group" aria-label=${texts.tabs.requests} tabindex="-1"></div>
        ${answered.length ? html`<h2>${texts.decided}</h2><ul class="plain">${answered.map((request) => this.answered(request))}</ul>` : nothing}`,
      this,
    );
    this.place(open);
  }

  // Each request has its own form, which stays what it is while others come and go.
  place(open) {
    const list = this.querySelector(".open-requests");
    const ids = open.map(({ id }) => id);
    if (this.ids && this.ids.join("\n") !== ids.join("\n")) {
      this.settled = performance.now() + SETTLING;
      setTimeout(() => this.isConnected && this.draw(), SETTLING + 1);
    }
    this.ids = ids;
    // Whoever has decided goes on with the next request.
    let leads = document.activeElement === list;
    for (const form of [...list.children].filter(({ request }) => !ids.includes(request.id))) {
      if (form.contains(document.activeElement) || (form.isSent && document.activeElement === document.body)) leads = true;
      form.remove();
    }
    const forms = new Map([...list.children].map((form) => [form.request.id, form]));
    open.forEach((request, index) => {
      const form = forms.get(request.id) ?? Object.assign(document.createElement("form"), { className: "request", onsubmit: (event) => event.preventDefault() });
      form.request = request;
      form.setAttribute("aria-labelledby", `request-${request.request_id}-title`);
      render(this.request(request, form), form);
      if (list.children[index] !== form) list.insertBefore(form, list.children[index] ?? null);
    });
    if (leads) (list.querySelector("h2") ?? list).focus();
  }

  // What is entered stays when another tab of the inspector is shown.
  draft(request) {
    const { drafts } = this.store;
    if (!drafts.has(request.id)) drafts.set(request.id, { request, values: {}, errors: {}, comment: "", by: "", problem: null, isSending: false });
    return drafts.get(request.id);
  }

  // What was decided here needs no form any more.
  forget() {
    const { drafts, requests } = this.store;
    for (const [id, draft] of drafts) if (draft.isAccepted && !requests.some((request) => request.id === id)) drafts.delete(id);
  }

  // What was entered for requests that are not open any more.
  leftOver() {
    // Whether they are still open is not known when nothing is read any more.
    if (this.store.connection === "gone") return [];
    const open = new Set(this.store.requests.map(({ id }) => id));
    return [...this.store.drafts.values()].filter((draft) => {
      if (draft.isSending || open.has(draft.request.id) || this.isStored(draft)) return false;
      return draft.problem || draft.comment.trim() || Object.values(draft.values).some(Boolean);
    });
  }

  // Whether a decision whose response was lost was stored nevertheless.
  isStored({ request, problem, sent }) {
    const answered = this.store.fold.requests.get(request.request_id)?.answered;
    return Boolean(problem?.passes && answered) && answered.decision === sent.decision && (answered.comment ?? "") === (sent.comment ?? "");
  }

  overtaken({ request, comment, values, problem }) {
    const close = () => {
      this.store.drafts.delete(request.id);
      this.draw();
    };
    return html`<div class="problem overtaken" role="alert"><p dir="auto"><strong>${visible(request.prompt)}</strong></p><p>${texts.overtaken}</p>
      ${problem ? html`<p>${visible(problem.message)}</p>` : nothing}
      ${comment.trim() ? html`<p>${texts.comment}:</p><p class="text" dir="auto">${visible(comment)}</p>` : nothing}
      ${Object.entries(values).map(([name, value]) => (value ? html`<p><code>${visible(name)}</code> = ${visible(value)}</p>` : nothing))}
      <button type="button" @click=${close}>${texts.close}</button></div>`;
  }

  request(request, form) {
    const draft = this.draft(request);
    const isResting = draft.isSending || performance.now() < (this.settled ?? 0);
    const id = `request-${request.request_id}`;
    const decisions = request.kind === "interrupted_effect" ? ["again", "skip", "fail"] : request.decisions;
    const change = (name, value) => {
      draft.values[name] = value;
      delete draft.errors[name];
    };
    return html`<h2 id="${id}-title" tabindex="-1">${texts.requestOpened(request.kind)} <span class="hint">${stamp(request.opened_at, true)}</span></h2>
      <p class="text" dir="auto">${visible(request.prompt)}</p>
      ${request.due_at ? html`<p class="hint">${texts.due(dateTime(request.due_at))}</p>` : nothing}
      ${request.approvers.length ? html`<p class="hint">${texts.approvers}: ${visible(request.approvers.join(", "))}</p>` : nothing}
      ${schemaForm(request.schema, { id: `${id}-field`, values: draft.values, errors: draft.errors, change })}
      ${decisions.length === 0 ? nothing : html`
        <div class="field"><label for="${id}-comment">${texts.comment}</label><textarea id="${id}-comment" rows="2" dir="auto" .value=${draft.comment} @input=${(event) => (draft.comment = event.target.value)}></textarea></div>
        <div class="field"><label for="${id}-by">${texts.by}</label><input id="${id}-by" type="text" autocomplete="name" .value=${draft.by} @input=${(event) => (draft.by = event.target.value)}></div>
        ${problemNotice(draft.problem)}
        <div class="buttons">${decisions.map((decision) => html`<button type="button" class=${["approve", "again"].includes(decision) ? "main" : ""} ?disabled=${isResting} @click=${() => this.decide(form, decision)}>${texts.decisions[decision] ?? decision}</button>`)}</div>
        <p class="hint" role="status">${draft.isSending ? texts.sending : ""}</p>`}`;
  }

  async decide(form, decision) {
    const { request } = form;
    const draft = this.draft(request);
    const { json, errors } = formJson(valuesOf(request, decision, draft.values), draft.values);
    draft.errors = errors;
    draft.problem = null;
    if (!json) {
      this.draw();
      return form.querySelector("[aria-invalid=true]")?.focus();
    }
    const body = { decision };
    if (draft.comment.trim()) body.comment = draft.comment;
    if (draft.by.trim()) body.by = draft.by.trim();
    draft.sent = body;
    draft.isSending = form.isSent = true;
    this.draw();
    let problem = null;
    try {
      await api.postText(path`/v1/requests/${request.session_id}/${request.request_id}`, `${JSON.stringify(body).slice(0, -1)},"values":${json}}`);
      draft.isAccepted = true;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      problem = error;
    }
    // A form that was sent is not sent again, and whether the request is still open decides where a problem is shown.
    await this.store.loadRequests();
    Object.assign(draft, { problem, isSending: draft.isAccepted });
    this.store.changed();
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
