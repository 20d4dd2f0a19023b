//! `declare` lists and single values, as written (LANGUAGE.md section 3).

use serde_json::Value;

use crate::script::fields::Fields;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::value::declared::DeclaredType;
use crate::value::scopes::{Declaration, Scope};

/// An item of a `declare` list.
#[derive(Clone, Debug)]
pub struct Declared {
    /// What it declares.
    pub declaration: Declaration,
    /// Where its name stands.
    pub span: Span,
    /// The scope it asks for, when it is another than that of its list.
    pub scope: Option<Scope>,
}

/// Reads the `declare` list of the node whose fields these are; what is wrong with an item is reported and the item left out.
pub fn declare(fields: &Fields<'_>) -> Vec<Declared> {
    let Some(items) = fields.list("declare") else { return vec![] };
    items
        .iter()
        .filter_map(|item| {
            let inner = Fields::of(item, "an item of `declare`", fields.file(), fields.findings())?;
            let declared = one(&inner);
            inner.finish();
            declared
        })
        .collect()
}

fn one(fields: &Fields<'_>) -> Option<Declared> {
    let var = fields.required_words("var");
    let declared = declared_type(fields);
    let choices = choices(fields);
    let value_node = fields.take("value");
    let define = fields.words("define").map(|words| words.text);
    let sensitive = fields.boolean("sensitive").unwrap_or(false);
    // Only `scope: global` says something that the place of the list does not say already.
    let scope = fields.choice("scope", &["global", "session", "phase", "topic"]).and_then(Scope::parse);
    let var = var?;
    let name = variable_name(&Spanned { value: var.text, span: var.node.span }, fields)?;
    let mut value = value_node.map_or(Value::Null, |node| node.to_json());
    if let (Some(declared), Some(node)) = (declared, value_node)
        && !value.is_null()
    {
        match declared.coerce(&value) {
            Some(coerced) => value = coerced,
            None => {
                let message =
                    format!("`{name}` is declared as {}, but its value is {}", declared.name(), node.describe());
                let help = "change its value or its `type`; without a `value` it is empty at first";
                let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span);
                fields.findings().report(diagnostic.with_help(help));
            }
        }
    }
    if let Some(node) = value_node
        && !value.is_null()
        && !choices.is_empty()
        && !choices.contains(&value)
    {
        let message = format!("the value of `{name}` is none of its `enum`");
        let help = "take one of these values, add this one to them, or leave `value` out";
        let diagnostic = Diagnostic::error("not-a-choice", message, fields.file(), node.span);
        fields.findings().report(diagnostic.with_help(help));
    }
    let declaration = Declaration { name, value, declared, choices, define, sensitive, implied: false };
    Some(Declared { declaration, span: var.node.span, scope })
}

/// The `type:` of a declaration or an output.
pub fn declared_type(fields: &Fields<'_>) -> Option<DeclaredType> {
    let words = fields.words("type")?;
    let declared = DeclaredType::parse(&words.text);
    if declared.is_none() {
        let names = DeclaredType::ALL.map(DeclaredType::name);
        let message = format!("`{}` is no type", crate::script::fields::shortened(&words.text));
        let help = match near_miss(&words.text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("types are {}", names.join(", ")),
        };
        let diagnostic = Diagnostic::error("not-a-choice", message, fields.file(), words.node.span);
        fields.findings().report(diagnostic.with_help(help));
    }
    declared
}

/// The `enum:` of a declaration or an output.
pub fn choices(fields: &Fields<'_>) -> Vec<Value> {
    fields.list("enum").map(|items| items.iter().map(|item| item.to_json()).collect()).unwrap_or_default()
}

/// Reports a name that no expression could ever use: letters (of any script), digits and `_`, not beginning with a digit.
pub fn variable_name(name: &Spanned<String>, fields: &Fields<'_>) -> Option<String> {
    const LONGEST: usize = 100;
    let mut characters = name.value.chars();
    let begins = characters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    if begins && characters.all(|c| c.is_alphanumeric() || c == '_') && name.value.len() <= LONGEST {
        return Some(name.value.clone());
    }
    let message = format!("`{}` cannot be the name of a variable", crate::script::fields::shortened(&name.value));
    let help =
        "names are letters of any script, digits and `_`, and begin with a letter, so that `{{ name }}` can use them";
    let diagnostic = Diagnostic::error("invalid-name", message, fields.file(), name.span).with_help(help);
    fields.findings().report(diagnostic);
    None
}
