// A form made from a JSON Schema: a field for each property, by its type.

import { visible } from "./display.js";
import { html, nothing } from "./libraries/lit-html.js";
import { texts } from "./texts.js";

// What kind of field a schema is: `choice`, `boolean`, `number`, `integer`, `text`, or `json` for everything else.
export function fieldKind(schema) {
  if (Array.isArray(schema?.enum)) return "choice";
  const types = [schema?.type].flat().filter((type) => type && type !== "null");
  if (types.length === 1 && ["boolean", "number", "integer"].includes(types[0])) return types[0];
  return types.length === 1 && types[0] === "string" ? "text" : "json";
}

export function schemaForm(schema, { id, values, errors, change }) {
  const properties = Object.entries(schema?.properties ?? {});
  if (properties.length === 0) return nothing;
  const required = new Set(schema.required ?? []);
  return html`<fieldset class="form"><legend>${texts.form}</legend>
    ${properties.map(([name, field]) => formField({ id: `${id}-${name}`, name, field, isRequired: required.has(name), value: values[name], error: errors[name], change: (value) => change(name, value) }))}
  </fieldset>`;
}

function formField({ id, name, field, isRequired, value, error, change }) {
  const kind = fieldKind(field);
  const described = [field.description ? `${id}-help` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  const common = { id, described, isInvalid: Boolean(error) };
  return html`<div class="field">
    <label for=${id}>${visible(field.title ?? name)}${isRequired ? html` <span class="hint">${texts.required}</span>` : nothing}</label>
    ${control(kind, field, value, change, common)}
    ${field.description ? html`<p class="hint" id="${id}-help">${visible(field.description)}</p>` : nothing}
    ${error ? html`<p class="warning" id="${id}-error">${error}</p>` : nothing}
  </div>`;
}

function control(kind, field, value, change, { id, described, isInvalid }) {
  const text = (event) => change(event.target.value);
  const aria = described || nothing;
  switch (kind) {
    case "choice":
      return html`<select id=${id} aria-describedby=${aria} aria-invalid=${isInvalid} @change=${text}>
        <option value="" ?selected=${value === undefined || value === ""}>${texts.choose}</option>
        ${field.enum.map((option) => html`<option value=${JSON.stringify(option)} ?selected=${value === JSON.stringify(option)}>${visible(typeof option === "string" ? option : JSON.stringify(option))}</option>`)}
      </select>`;
    case "boolean":
      return html`<select id=${id} aria-describedby=${aria} aria-invalid=${isInvalid} @change=${text}>
        <option value="" ?selected=${!value}>${texts.choose}</option>
        <option value="true" ?selected=${value === "true"}>${texts.yes}</option>
        <option value="false" ?selected=${value === "false"}>${texts.no}</option>
      </select>`;
    case "number":
    case "integer":
      return html`<input id=${id} type="text" inputmode="decimal" .value=${value ?? ""} aria-describedby=${aria} aria-invalid=${isInvalid} @input=${text}>`;
    case "text":
      return html`<textarea id=${id} rows="1" dir="auto" .value=${value ?? ""} aria-describedby=${aria} aria-invalid=${isInvalid} @input=${text}></textarea>`;
    default:
      return html`<textarea id=${id} class="code" rows="3" spellcheck="false" .value=${value ?? ""} placeholder="JSON" aria-describedby=${aria} aria-invalid=${isInvalid} @input=${text}></textarea>`;
  }
}

// The values of the form as JSON, which keeps the digits of numbers; or what is wrong with each.
export function formJson(schema, values) {
  const errors = {};
  const parts = [];
  const required = new Set(schema?.required ?? []);
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const kind = fieldKind(field);
    const given = kind === "text" ? values[name] ?? "" : (values[name] ?? "").trim();
    if (given === "") {
      if (required.has(name)) errors[name] = texts.isRequired;
      continue;
    }
    let written = given;
    if (kind === "text") written = JSON.stringify(given);
    else if (kind === "number" || kind === "integer") {
      if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(given) || (kind === "integer" && /[.eE]/.test(given))) {
        errors[name] = kind === "integer" ? texts.notInteger : texts.notNumber;
        continue;
      }
      // JSON permits no zeros in front.
      written = given.replace(/^(-?)0+(?=\d)/, "$1");
    } else if (kind === "json") {
      try {
        JSON.parse(given);
      } catch {
        errors[name] = texts.notJson;
        continue;
      }
    }
    parts.push(`${JSON.stringify(name)}:${written}`);
  }
  return Object.keys(errors).length ? { errors } : { json: `{${parts.join(",")}}`, errors };
}
