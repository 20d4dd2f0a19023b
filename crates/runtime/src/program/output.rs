//! `output`: what an action takes out of a reply into the author's variables (docs/actions/).

use std::ops::Deref;

use serde_json::{Value, json};

use bcc_lang::template::names::SharedValue;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::mask::{MASK, is_short};
use bcc_lang::value::scopes::Scope;
use bcc_llm::reply::coerce::{Coercion, CoercionRecord};

/// An item of `output`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputVariable {
    /// The variable, and the key of the reply that carries it.
    pub get: String,
    /// What to extract, in the author's words.
    pub define: Option<String>,
    /// Its type, when the author gave one.
    pub declared: Option<DeclaredType>,
    /// The values it may take, when the author listed them.
    pub choices: Vec<Value>,
    /// While it is null, EXIT counts as no.
    pub required: bool,
    /// Where it is written; without one, where the name is declared.
    pub scope: Option<Scope>,
    /// Adds to a list instead of replacing.
    pub append: bool,
}

/// The outputs of an action, with what its prompts show of them, which is the same in every turn.
pub struct Outputs {
    items: Vec<OutputVariable>,
    lines: SharedValue,
    values: SharedValue,
}

impl Outputs {
    /// The outputs `items`, in the author's order.
    pub fn new(items: Vec<OutputVariable>) -> Self {
        let lines: Vec<String> = items.iter().map(OutputVariable::prompt_line).collect();
        let lines = SharedValue::new(Value::from(lines.join(",\n")));
        let values = SharedValue::new(items.iter().map(OutputVariable::as_value).collect());
        Self { items, lines, values }
    }

    pub fn into_required(self) -> Self {
        Self::new(self.items.into_iter().map(|item| OutputVariable { required: true, ..item }).collect())
    }

    /// The lines that ask a model for them: `output_list` of a prompt.
    pub fn lines(&self) -> &SharedValue {
        &self.lines
    }

    /// The items that templates can walk: `outputs` of a prompt.
    pub fn values(&self) -> &SharedValue {
        &self.values
    }
}

impl Deref for Outputs {
    type Target = [OutputVariable];

    fn deref(&self) -> &[OutputVariable] {
        &self.items
    }
}

impl OutputVariable {
    /// `"name": "what it means (number | null)"`: the line that asks a model for it.
    fn prompt_line(&self) -> String {
        let shape = if self.choices.is_empty() {
            self.declared.map(|declared| declared.name().to_owned())
        } else {
            Some(self.choices.iter().map(plain).collect::<Vec<_>>().join(" | "))
        };
        let shape = shape.unwrap_or_else(|| "string".into());
        let meaning = match &self.define {
            Some(define) => format!("{define} ({shape} | null)"),
            None => format!("({shape} | null)"),
        };
        format!("  {}: {}", Value::from(self.get.as_str()), Value::from(meaning))
    }

    /// What may be shown in the place of `value` of a sensitive variable: of the same type, and as long where it is a list, for
    /// something may be done for each of its elements.
    pub fn placeholder(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            _ if !self.choices.is_empty() => self.choices.first().cloned().unwrap_or_default(),
            Value::String(_) if self.declared == Some(DeclaredType::Date) => Value::from("1970-01-01"),
            value => nothing_said(value, false),
        }
    }

    /// What a recording holds in the place of `value`, which became `bent`: it is read in the same way. What is too short to be
    /// masked in prompts stays, for a replay must ask the same.
    pub fn stand_in(&self, value: &Value, bent: Option<&CoercionRecord>, read: &Value) -> Value {
        match bent.map(|bent| bent.bending) {
            Some(Coercion::Coerced) => self.stand_in(read, None, read),
            // It must not fit either.
            Some(_) => nothing_said(value, true),
            None if !value.is_array() && !value.is_object() && is_short(value) => value.clone(),
            None if !self.choices.is_empty() || !(value.is_array() || value.is_object()) => self.placeholder(value),
            None => nothing_said(value, true),
        }
    }

    fn as_value(&self) -> Value {
        json!({
            "get": self.get, "define": self.define, "type": self.declared.map(DeclaredType::name),
            "enum": self.choices, "required": self.required,
        })
    }
}

/// `value` with nothing in it but its structure, and what is too short to be masked where that is kept.
fn nothing_said(value: &Value, keep_short: bool) -> Value {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) if keep_short && is_short(value) => value.clone(),
        Value::Null => Value::Null,
        Value::Bool(_) => Value::from(false),
        Value::Number(_) => Value::from(0),
        Value::String(_) => Value::from(MASK),
        Value::Array(items) => items.iter().map(|item| nothing_said(item, keep_short)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), nothing_said(value, keep_short))).collect()
        }
    }
}

fn plain(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}
