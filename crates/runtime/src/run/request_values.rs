//! The values of a decision: those of the form of an approval, of the decisions about calls of tools, and those that a tool asked for
//! (docs/requests.md).

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::template::names::MAX_VALUE_BYTES;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use serde_json::{Map, Value, json};

use crate::actions::notebook::review::{CODE, is_about_code};
use crate::actions::tools::call::{ANSWER, ARGUMENTS};
use crate::program::decision::DecisionKind;
use crate::program::output::OutputVariable;
use crate::run::approval_decision::DecisionError;
use crate::run::decisions::{rejected, unreadable_request};
use bcc_store::rows::RequestRow;

/// The maximum number of violations of a schema that one message names.
const MAX_VIOLATIONS: usize = 5;

/// The values of a form, each as the type of its field.
pub(crate) fn form_values(
    form: &[OutputVariable],
    decision: DecisionKind,
    mut given: ExactValues,
) -> Result<ExactValues, DecisionError> {
    let known: Vec<&str> = form.iter().map(|field| field.get.as_str()).collect();
    if let Some(unknown) = given.keys().find(|name| !known.contains(&name.as_str())) {
        let message = msg!("the form has no field `{unknown}`");
        let help = match known.as_slice() {
            [] => Message::word("this request has no form"),
            known => msg!("its fields are {}", Message::names(known)),
        };
        return Err(rejected("form-field-unknown", message, help));
    }
    let mut values = ExactValues::new();
    for field in form {
        let given = given.shift_remove(&field.get).filter(|value| !value.is_null());
        let Some(given) = given else {
            // A rejection needs no values.
            if field.required && decision == DecisionKind::Approve {
                let message = msg!("the form needs a value for `{}`", field.get);
                return Err(rejected("form-field-missing", message, form_help(field)));
            }
            continue;
        };
        let is_structure = matches!(field.declared, Some(DeclaredType::List | DeclaredType::Object));
        let given = if is_structure { structured(given, |_| true) } else { given };
        let value: Option<ExactValue> = match field.declared {
            _ if !is_short(&given) => None,
            Some(declared) => declared.coerce_exact(&given),
            None => Some(given),
        };
        let is_choice =
            |value: &ExactValue| field.choices.is_empty() || field.choices.iter().any(|choice| choice == &**value);
        let Some(value) = value.filter(is_choice) else {
            let message = msg!("the value for `{}` does not fit its field", field.get);
            return Err(rejected("form-field-misfit", message, form_help(field)));
        };
        values.insert(field.get.clone(), value);
    }
    Ok(values)
}

/// The values of a decision about a call of a tool, or those that a tool asked for, as the schema of the request describes them.
pub(crate) fn schema_values(
    request: &RequestRow,
    decision: DecisionKind,
    given: ExactValues,
) -> Result<ExactValues, DecisionError> {
    let schema: Value = match request.schema.as_deref() {
        Some(schema) => serde_json::from_str(schema).map_err(|_| unreadable_request(request))?,
        None => json!({ "type": "object", "additionalProperties": false }),
    };
    let permits = |decision: DecisionKind| {
        request.decisions.as_deref().is_some_and(|list| list.contains(&format!("\"{}\"", decision.name())))
    };
    let wanted = match decision {
        DecisionKind::Edit if is_about_code(&schema) => Some(CODE),
        DecisionKind::Edit => Some(ARGUMENTS),
        DecisionKind::Answer => Some(ANSWER),
        DecisionKind::Approve if !permits(DecisionKind::Edit) => None,
        // These decisions have no values.
        DecisionKind::Approve | DecisionKind::Reject | DecisionKind::PushBack => {
            return match given.keys().next() {
                Some(name) => Err(unknown_value(name, decision)),
                None => Ok(given),
            };
        }
    };
    if let Some(unknown) = given.keys().find(|name| wanted.is_some_and(|wanted| wanted != name.as_str())) {
        return Err(unknown_value(unknown, decision));
    }
    if let Some(missing) = wanted.filter(|wanted| !given.contains_key(*wanted)) {
        let message = msg!("the decision `{}` needs a value for `{missing}`", decision.name());
        return Err(rejected("form-field-missing", message, None));
    }
    let mut values = ExactValues::new();
    for (name, value) in given {
        if !is_short(&value) {
            return Err(misfit(&name, Message::word("it is too long")));
        }
        values.insert(name.clone(), read_value(&schema, &name, value));
    }
    let fields: Map<String, Value> = values.iter().map(|(name, value)| (name.clone(), Value::clone(value))).collect();
    let compiled = Compiled::new(&schema).map_err(|_| unreadable_request(request))?;
    let violations = compiled.violations(&Value::Object(fields));
    if violations.is_empty() {
        return Ok(values);
    }
    let named = violations.iter().take(MAX_VIOLATIONS).map(|violation| match violation.path.as_str() {
        "" => violation.message.clone(),
        path => msg!("`{}`: {}", path, violation.message),
    });
    Err(rejected(
        "form-field-misfit",
        msg!("the values do not fit the request: {}", Message::list(Joint::Semicolon, named)),
        None,
    ))
}

fn unknown_value(name: &str, decision: DecisionKind) -> DecisionError {
    let message = msg!("the decision `{}` has no value `{name}`", decision.name());
    let help = msg!("`edit` takes `{ARGUMENTS}`, or `{CODE}` if it is about code; `answer` takes `{ANSWER}`");
    rejected("form-field-unknown", message, help)
}

fn misfit(name: &str, why: Message) -> DecisionError {
    rejected("form-field-misfit", msg!("the value for `{name}` cannot be used: {why}"), None)
}

/// A value that may be a text although another type is wanted, as on a command line.
fn read_value(schema: &Value, name: &str, given: ExactValue) -> ExactValue {
    let kinds = schema.pointer("/properties").and_then(|properties| properties.get(name)?.get("type"));
    let names = |wanted: &str| match kinds {
        Some(Value::String(kind)) => kind == wanted,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    };
    match kinds {
        _ if names("string") => given,
        // Without a type, a text stays one unless it is clearly a structure.
        None | Some(Value::Null) => structured(given, |value| value.is_object() || value.is_array()),
        Some(_) => structured(given, |_| true),
    }
}

/// The JSON in a text, if there is any that is wanted.
fn structured(given: ExactValue, wanted: impl Fn(&Value) -> bool) -> ExactValue {
    let parsed = given.as_str().and_then(|text| ExactValue::parse(text).ok()).filter(|value| wanted(value));
    parsed.unwrap_or(given)
}

fn is_short(value: &ExactValue) -> bool {
    value.number_text().map_or_else(|| value.to_string().len(), str::len) <= MAX_VALUE_BYTES
}

fn form_help(field: &OutputVariable) -> Message {
    if !field.choices.is_empty() {
        return msg!(
            "one of {}",
            Message::names(
                field.choices.iter().map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
            )
        );
    }
    match field.declared {
        Some(DeclaredType::Boolean) => Message::word("`true` or `false`"),
        Some(declared @ (DeclaredType::List | DeclaredType::Object)) => {
            msg!("a value of type {}; on a command line, its JSON", declared.name())
        }
        Some(declared) => msg!("a value of type {}", declared.name()),
        None => Message::word("any text"),
    }
}
