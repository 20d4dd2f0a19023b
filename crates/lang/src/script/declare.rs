//! Reads `declare` lists and single declarations (docs/language.md "Variables").

use crate::message::message::Message;
use crate::message::msg;
use serde_json::Value;

use crate::script::fields::Fields;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::value::declared::DeclaredType;
use crate::value::exact::ExactValue;
use crate::value::scopes::{Declaration, Scope};

#[derive(Clone, Debug)]
pub struct Declared {
    pub declaration: Declaration,
    pub span: Span,
    /// The scope given by `scope`, if any.
    pub scope: Option<Scope>,
}

/// Type names of other languages, with the names used here.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("int", "integer"),
    ("str", "string"),
    ("text", "string"),
    ("bool", "boolean"),
    ("float", "number"),
    ("double", "number"),
    ("array", "list"),
    ("dict", "object"),
    ("map", "object"),
    ("json", "object"),
    ("datetime", "date"),
    ("time", "date"),
];

/// Reserved words of the template language, which cannot be used as names.
const TEMPLATE_WORDS: [&str; 13] =
    ["true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else"];

/// Reads `declare` of the node with these fields. Invalid items are reported and left out.
pub fn declare(fields: &Fields<'_>) -> Vec<Declared> {
    declare_list(fields, "declare")
}

/// Like [`declare`], for a list with another name, such as the `inputs` of a skill.
pub(crate) fn declare_list(fields: &Fields<'_>, name: &'static str) -> Vec<Declared> {
    let Some(items) = fields.list(name) else { return vec![] };
    items
        .iter()
        .filter_map(|item| {
            if let Some(scalar) = item.as_scalar() {
                fields.report_bare_name(name, "var", &scalar.text, item.span);
                return None;
            }
            let inner = fields.inner(item, msg!("an item of `{name}`"))?;
            let declared = read_item(&inner);
            inner.finish();
            declared
        })
        .collect()
}

fn read_item(fields: &Fields<'_>) -> Option<Declared> {
    let var = fields.required_text("var");
    let declared = declared_type(fields);
    let choices = choices(fields, declared, "wrong-type");
    let value_node = fields.take("value");
    let define = fields.text("define").map(|words| words.text);
    let sensitive = fields.boolean("sensitive").unwrap_or(false);
    // Only `scope: global` differs from what the position of the list implies.
    let scope = fields.choice("scope", &["global", "session", "phase", "topic"]).and_then(Scope::parse);
    let var = var?;
    let name = variable_name(&Spanned { value: var.text, span: var.node.span }, fields)?;
    let mut value = value_node.map_or_else(ExactValue::default, |node| node.to_exact());
    if let (Some(declared), Some(node)) = (declared, value_node)
        && !value.is_null()
    {
        match declared.coerce_exact(&value) {
            Some(coerced) => value = coerced,
            None => {
                let written = match node.as_scalar() {
                    Some(scalar) => format!("`{}`", crate::script::fields::shortened(&scalar.text)),
                    None => node.describe().to_string(),
                };
                let wanted = declared.name();
                let message = msg!("`{name}` is declared as {wanted}, but its value {written} is not of type {wanted}");
                let help = match declared {
                    DeclaredType::Date => "write a valid date, as in 2026-11-21",
                    _ => "change its value or its `type`; without a `value`, it is initially empty",
                };
                fields.error("wrong-type", message, node.span, help);
            }
        }
    }
    if let Some(node) = value_node
        && !value.is_null()
        && !choices.is_empty()
        && !choices.contains(&value)
    {
        let message = msg!("the value of `{name}` is not in its `enum`");
        let listed = Message::names(choices.iter().map(display_text));
        let help = msg!("use one of {}, add this value to the list, or omit `value`", listed);
        fields.error("not-a-choice", message, node.span, help);
    }
    let declaration = Declaration { name, value, declared, choices, define, sensitive, implied: false };
    Some(Declared { declaration, span: var.node.span, scope })
}

pub fn declared_type(fields: &Fields<'_>) -> Option<DeclaredType> {
    let words = fields.text("type")?;
    let declared = DeclaredType::parse(&words.text);
    if declared.is_none() {
        let names = DeclaredType::ALL.map(DeclaredType::name);
        let message = msg!("`{}` is not a type", crate::script::fields::shortened(&words.text));
        let foreign_name = OTHER_NAMES.iter().find(|(other, _)| *other == words.text.to_ascii_lowercase());
        let near = foreign_name.map(|(_, name)| *name).or_else(|| near_miss(&words.text, names));
        let diagnostic = Diagnostic::error("not-a-choice", message, fields.file(), words.node.span);
        fields
            .findings()
            .report(diagnostic.with_suggestion_or(near, || msg!("valid types are {}", Message::names(names))));
    }
    declared
}

/// Reads `enum` of a declaration or an output of type `declared`. Choices of another type are reported as `rule`.
pub fn choices(fields: &Fields<'_>, declared: Option<DeclaredType>, rule: &'static str) -> Vec<Value> {
    let mut choices = Vec::new();
    let items = fields.list("enum");
    if let (Some([]), Some(entry)) = (items, fields.entry("enum")) {
        let message = msg!("`enum` of {} is empty", fields.subject());
        fields.error("empty-list", message, entry.value.span, "add at least one choice, or remove `enum`");
    }
    for item in items.unwrap_or_default() {
        let choice = item.to_json();
        match declared {
            Some(declared) if !choice.is_null() && declared.coerce(&choice).is_none() => {
                let message =
                    msg!("`{}` is not of type {}, so it cannot be a choice", display_text(&choice), declared.name());
                let commas = choice.as_str().is_some_and(|text| text.contains(['，', '、']));
                let help = if commas {
                    "separate the choices with ASCII commas: YAML reads `，` and `、` as text"
                } else {
                    "change the `type` or the choice"
                };
                let diagnostic = Diagnostic::error(rule, message, fields.file(), item.span).with_help(help);
                fields.findings().report(diagnostic);
            }
            // In the form in which values have it.
            Some(declared @ DeclaredType::Date) => choices.push(declared.coerce(&choice).unwrap_or(choice)),
            _ => choices.push(choice),
        }
    }
    choices
}

fn display_text(value: &Value) -> String {
    crate::script::fields::shortened(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Returns a valid variable name and reports any other: letters (of any script), digits and `_`, not starting with a digit.
pub fn variable_name(name: &Spanned<String>, fields: &Fields<'_>) -> Option<String> {
    const MAX_BYTES: usize = 100;
    let mut characters = name.value.chars();
    let valid_start = characters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let valid = valid_start && characters.all(|c| c.is_alphanumeric() || c == '_') && name.value.len() <= MAX_BYTES;
    let reserved = TEMPLATE_WORDS.contains(&name.value.as_str());
    if valid && !reserved {
        return Some(name.value.clone());
    }
    let message = match () {
        () if name.value.is_empty() => msg!("the name of a variable is empty"),
        () if reserved => {
            msg!("`{}` is a reserved word of the template language and cannot be the name of a variable", name.value)
        }
        () => msg!("`{}` cannot be the name of a variable", crate::script::fields::shortened(&name.value)),
    };
    let joined: String = name.value.chars().map(|c| if matches!(c, '-' | ' ' | '.') { '_' } else { c }).collect();
    let help = match () {
        () if reserved => msg!("choose another name, as in `{}_`", name.value),
        () if valid_start && joined != name.value && joined.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            msg!("write `{joined}`: names consist of letters of any script, digits and `_`")
        }
        () => Message::word(
            "names consist of letters of any script, digits and `_`, and start with a letter, so that `{{ name }}` can use them",
        ),
    };
    let diagnostic = Diagnostic::error("invalid-name", message, fields.file(), name.span).with_help(help);
    fields.findings().report(diagnostic);
    None
}
