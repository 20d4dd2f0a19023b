//! `output`: the values of a reply that an action stores in the author's variables (docs/actions/).

use std::ops::Deref;

use serde_json::{Value, json};

use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::names::SharedValue;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::mask::{MASK, is_short};
use bcc_lang::value::scopes::Scope;
use bcc_llm::reply::coerce::{Coercion, CoercionRecord};

/// An item of `output`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputVariable {
    /// The variable, and the key of the reply with its value.
    pub get: String,
    /// What to extract, as the author describes it.
    pub define: Option<String>,
    /// Its type, if declared.
    pub declared: Option<DeclaredType>,
    /// The allowed values, if the author listed them.
    pub choices: Vec<Value>,
    /// While it is null, EXIT counts as no.
    pub required: bool,
    /// The scope to write to; if not set, the scope where the name is declared.
    pub scope: Option<Scope>,
    /// Appends to a list instead of replacing it.
    pub append: bool,
    /// Whether it comes from a `hear` list around the action, and is not what the action itself asks for.
    pub heard: bool,
}

/// The outputs of an action, with their representation in its prompts, which is the same in every turn.
pub struct Outputs {
    items: Vec<OutputVariable>,
    /// The lines in Chinese prompts, and in English ones.
    lines: [SharedValue; 2],
    values: SharedValue,
}

impl Outputs {
    /// Creates outputs from `items`, in the author's order.
    pub fn new(items: Vec<OutputVariable>) -> Self {
        let lines = [PromptLanguage::Zh, PromptLanguage::En].map(|language| {
            let lines: Vec<String> = items.iter().map(|item| item.prompt_line(language)).collect();
            SharedValue::new(Value::from(lines.join(",\n")))
        });
        let values = SharedValue::new(items.iter().map(OutputVariable::as_value).collect());
        Self { items, lines, values }
    }

    pub(crate) fn into_required(self) -> Self {
        let required = |item: OutputVariable| OutputVariable { required: !item.heard, ..item };
        Self::new(self.items.into_iter().map(required).collect())
    }

    /// The lines that request them from a model: `output_list` of a prompt.
    pub fn lines(&self, language: PromptLanguage) -> &SharedValue {
        let [zh, en] = &self.lines;
        match language {
            PromptLanguage::Zh => zh,
            PromptLanguage::En => en,
        }
    }

    /// The items for loops in templates: `outputs` of a prompt.
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
    /// `"name": "what it means (number | null)"`: the line that requests it from a model.
    fn prompt_line(&self, language: PromptLanguage) -> String {
        // What is appended may be several elements.
        let shape = self.shape().unwrap_or_else(|| if self.append { "string | list" } else { "string" }.into());
        let mut meaning = match &self.define {
            Some(define) => format!("{define} ({shape} | null)"),
            None => format!("({shape} | null)"),
        };
        if self.append {
            meaning.push_str(match language {
                PromptLanguage::Zh => "；会追加到列表，只写这次新说到的",
                PromptLanguage::En => "; added to a list: only what is new in this answer",
            });
        }
        format!("  {}: {}", Value::from(self.get.as_str()), Value::from(meaning))
    }

    /// Its type, or the values that it may have, as text; `None` if neither is known.
    pub(crate) fn shape(&self) -> Option<String> {
        if self.choices.is_empty() {
            return self.declared.map(|declared| declared.name().to_owned());
        }
        Some(self.choices.iter().map(plain).collect::<Vec<_>>().join(" | "))
    }

    /// The value to show instead of a sensitive `value`: of the same type, and for lists of the same length, because templates may
    /// loop over the elements.
    pub fn placeholder(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            _ if !self.choices.is_empty() => self.choices.first().cloned().unwrap_or_default(),
            Value::String(_) if self.declared == Some(DeclaredType::Date) => Value::from("1970-01-01"),
            value => structure_only(value, false),
        }
    }

    /// The value to record instead of `value`, which was coerced to `read`: it parses in the same way. A value too short to be masked
    /// in prompts stays, because a replay must send the same prompt.
    pub(crate) fn recorded_placeholder(&self, value: &Value, coercion: Option<&CoercionRecord>, read: &Value) -> Value {
        match coercion.map(|coercion| coercion.kind) {
            Some(Coercion::Coerced) => self.recorded_placeholder(read, None, read),
            // The replacement must not fit the type either.
            Some(_) => structure_only(value, true),
            None if !value.is_array() && !value.is_object() && is_short(value) => value.clone(),
            None if !self.choices.is_empty() || !(value.is_array() || value.is_object()) => self.placeholder(value),
            None => structure_only(value, true),
        }
    }

    fn as_value(&self) -> Value {
        json!({
            "get": self.get, "define": self.define, "type": self.declared.map(DeclaredType::name),
            "enum": self.choices, "required": self.required, "append": self.append,
        })
    }
}

/// `value` with only its structure kept, and, with `keep_short`, values that are too short to be masked.
fn structure_only(value: &Value, keep_short: bool) -> Value {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) if keep_short && is_short(value) => value.clone(),
        Value::Null => Value::Null,
        Value::Bool(_) => Value::from(false),
        Value::Number(_) => Value::from(0),
        Value::String(_) => Value::from(MASK),
        Value::Array(items) => items.iter().map(|item| structure_only(item, keep_short)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), structure_only(value, keep_short))).collect()
        }
    }
}

fn plain(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}
