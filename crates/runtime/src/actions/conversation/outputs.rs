//! Reads `output` from a configuration, and writes extracted values of a reply into variables.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;
use std::sync::Arc;

use crate::program::exchange::Exchange;
use crate::program::kind::KindChecker;
use crate::program::output::OutputVariable;
use crate::program::turn::Turn;
use bcc_lang::script::declare::{choices, declared_type, variable_name};
use bcc_lang::script::fields::Fields;
use bcc_lang::script::legacy::output::{as_output, remove_duplicate};
use bcc_lang::script::lines::is_alias;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{Scalar, ScalarStyle, YamlEntry, YamlNode};
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::Scope;
use bcc_llm::reply::read::Reply;

/// The maximum number of elements that `append` collects in a list, the same as for `for_each` (docs/actions/).
const MAX_ELEMENTS: usize = 1000;

/// Reads `output`, or the deprecated `target_variable` with `extraction_prompt`. `reserved` are the fields of the reply of the
/// kind.
pub(crate) fn read_outputs(
    fields: &Fields<'_>,
    reserved: &[String],
    checker: &mut dyn KindChecker,
) -> Option<Vec<OutputVariable>> {
    let legacy = legacy_output(fields);
    let items = fields.list("output").unwrap_or_default();
    read_items(fields, ("output", items, read_output), legacy, reserved, checker)
}

/// Reads `slots` as outputs. What else stands in a slot is read by its kind.
pub(crate) fn read_slots(
    fields: &Fields<'_>,
    reserved: &[String],
    checker: &mut dyn KindChecker,
) -> Option<Vec<OutputVariable>> {
    let items = fields.list("slots").unwrap_or_default();
    read_items(fields, ("slots", items, read_slot), None, reserved, checker)
}

/// Reads the `items` of a `hear` list. `fields` is only where they stand.
pub fn read_hear(
    fields: &Fields<'_>,
    items: &[Arc<YamlNode>],
    reserved: &[String],
    checker: &mut dyn KindChecker,
) -> Option<Vec<OutputVariable>> {
    let heard = read_items(fields, ("hear", items, read_hear_item), None, reserved, checker)?;
    Some(heard.into_iter().map(|output| OutputVariable { heard: true, ..output }).collect())
}

/// Reads `form`, whose items are like those of `output`, but come from a person who decides.
pub(crate) fn read_form(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Vec<OutputVariable>> {
    let items = fields.list("form").unwrap_or_default();
    read_items(fields, ("form", items, read_output), None, &[], checker)
}

/// Reads one item of a list of outputs.
type ReadItem = fn(&Fields<'_>) -> Option<(Spanned<String>, OutputVariable)>;

fn read_items(
    fields: &Fields<'_>,
    (list, items, read_item): (&'static str, &[Arc<YamlNode>], ReadItem),
    legacy: Option<(Spanned<String>, OutputVariable)>,
    reserved: &[String],
    checker: &mut dyn KindChecker,
) -> Option<Vec<OutputVariable>> {
    let mut spans: Vec<Spanned<String>> = Vec::new();
    let mut outputs: Vec<OutputVariable> = Vec::new();
    let mut is_valid = true;
    for item in items {
        if let Some(scalar) = item.as_scalar() {
            fields.report_bare_name(list, "get", &scalar.text, item.span);
            checker.may_have_value(&Spanned { value: scalar.text.clone(), span: item.span }, None);
            is_valid = false;
            continue;
        }
        let Some(inner) = Fields::of(item, msg!("an item of `{list}`"), fields.file(), fields.findings()) else {
            is_valid = false;
            continue;
        };
        let read = read_item(&inner);
        inner.finish();
        match read {
            Some((name, output)) => {
                spans.push(name);
                outputs.push(output);
            }
            None => is_valid = false,
        }
    }
    match legacy {
        Some((name, output)) if outputs.is_empty() => {
            spans.push(name);
            outputs.push(output);
        }
        Some((name, output)) if outputs.iter().all(|other| other.get != output.get) => {
            let message = "`target_variable` is the legacy spelling of `output`, and the two have different values";
            let help = "keep `output`, with one item for each variable";
            fields
                .findings()
                .report(Diagnostic::error("conflicting-spellings", message, fields.file(), name.span).with_help(help));
            is_valid = false;
        }
        _ => {}
    }
    let mut inherit = Vec::new();
    for (name, output) in spans.iter().zip(&outputs) {
        if reserved.contains(&output.get) {
            let message = msg!("`{}` is a field of the reply itself and cannot be an output", output.get);
            let help = msg!("choose another name; reserved here: {}", Message::names(reserved));
            let diagnostic = Diagnostic::error("reserved-output", message, fields.file(), name.span).with_help(help);
            fields.findings().report(diagnostic);
            is_valid = false;
        }
        if let Some(first) =
            spans.iter().take_while(|other| other.span != name.span).find(|other| other.value == name.value)
        {
            let message = msg!("`{}` is extracted twice by one action", output.get);
            let diagnostic = Diagnostic::error("duplicate-output", message, fields.file(), name.span);
            let help = "rename one of them, or describe everything in a single `define`";
            fields.findings().report(diagnostic.with_help(help).with_related(
                "first extracted here",
                fields.file(),
                first.span,
            ));
            is_valid = false;
        }
        checker.extracts(name, output);
        inherit.push(checker.declared(&output.get));
        checker.may_have_value(name, output.scope);
    }
    // An output without a type gets the type of its variable, so that the model is asked for a value that fits.
    for (output, declared) in outputs.iter_mut().zip(inherit) {
        let Some((declared, choices)) = declared else { continue };
        if output.append {
            continue;
        }
        output.declared = output.declared.or(declared);
        if output.choices.is_empty() {
            output.choices = choices;
        }
    }
    is_valid.then_some(outputs)
}

/// Reads what all such items have. `required` as given, and else `by_default`.
fn read_wanted(fields: &Fields<'_>, by_default: bool) -> Option<(Spanned<String>, OutputVariable)> {
    let get = fields.required_text("get");
    let define = fields.text("define").map(|field| field.text);
    let declared = declared_type(fields);
    let choices = choices(fields, declared, "reply-shape");
    let required = fields.boolean("required").unwrap_or(by_default);
    let get = get?;
    let name = Spanned { span: get.node.span, value: get.text };
    let get = variable_name(&name, fields)?;
    let (scope, append, heard) = (None, false, false);
    Some((name, OutputVariable { get, define, declared, choices, required, scope, append, heard }))
}

fn read_slot(fields: &Fields<'_>) -> Option<(Spanned<String>, OutputVariable)> {
    ["ask", "confirm", "when"].into_iter().for_each(|name| fields.ignore(name));
    read_wanted(fields, true)
}

fn read_hear_item(fields: &Fields<'_>) -> Option<(Spanned<String>, OutputVariable)> {
    let read = read_output(fields);
    if let Some(entry) = fields.entry("required") {
        let help = "remove it here, and require the output where it is asked for";
        fields.error(
            "conflicting-fields",
            "nothing asks for an output of `hear`, so it cannot be required",
            entry.key.span,
            help,
        );
    }
    read
}

fn read_output(fields: &Fields<'_>) -> Option<(Spanned<String>, OutputVariable)> {
    let read = read_wanted(fields, false);
    let scope = fields.choice("scope", &["global", "session", "phase", "topic"]).and_then(Scope::parse);
    let append = fields.boolean("append").unwrap_or(false);
    read.map(|(name, output)| (name, OutputVariable { scope, append, ..output }))
}

fn legacy_output(fields: &Fields<'_>) -> Option<(Spanned<String>, OutputVariable)> {
    let target = fields.text("target_variable");
    let define = fields.text("extraction_prompt");
    let entries = (fields.entry("target_variable"), fields.entry("extraction_prompt"));
    match entries {
        (Some(target), define) => fields.findings().report(legacy_target_warning(target, define, fields)),
        (None, Some(define)) => {
            let message = "`extraction_prompt` is a deprecated spelling of `define` in an item of `output`";
            let help = "write `output:` with an item `- get: …` and `define: …`";
            let diagnostic = Diagnostic::warning("deprecated-field", message, fields.file(), define.key.span);
            fields.findings().report(diagnostic.with_help(help));
        }
        (None, None) => {}
    }
    let target = target?;
    let name = Spanned { span: target.node.span, value: target.text };
    let get = variable_name(&name, fields)?;
    let define = define.map(|field| field.text);
    let (declared, choices, required, scope) = (None, vec![], false, None);
    let (append, heard) = (false, false);
    Some((name, OutputVariable { get, define, declared, choices, required, scope, append, heard }))
}

/// The warning about `target_variable`, with or without `extraction_prompt`, and its replacement.
fn legacy_target_warning(target: &YamlEntry, define: Option<&YamlEntry>, fields: &Fields<'_>) -> Diagnostic {
    let file = fields.file();
    let message = match define {
        Some(_) => "`target_variable` and `extraction_prompt` are a deprecated spelling of `output`",
        None => "`target_variable` is a deprecated spelling of `output`",
    };
    let source_text = |entry: &YamlEntry| file.slice(entry.value.span);
    let lines = |indent: &str| {
        let define = define.map(|define| format!("\n{indent}    define: {}", source_text(define))).unwrap_or_default();
        format!("output:\n{indent}  - get: {}{define}", source_text(target))
    };
    let diagnostic = Diagnostic::warning("deprecated-field", message, file, target.key.span);
    let edits = match fields.take("output") {
        None => as_output(file, fields.span(), fields.entries(), target, define),
        Some(output) if is_equivalent(output, target, define) => {
            remove_duplicate(file, fields.span(), fields.entries(), target, define)
        }
        Some(_) => None,
    };
    let is_one_line = fields.take("output").is_none() && [Some(target), define].into_iter().flatten().all(is_short);
    let help = if is_one_line { lines("") } else { String::new() };
    let diagnostic = match help.as_str() {
        "" => diagnostic.with_help("write `output:` with an item `- get: …` and `define: …`"),
        lines => diagnostic.with_help(msg!("write\n{lines}")),
    };
    match edits {
        Some(edits) => diagnostic.with_sure_fix("write `output:`", edits),
        None => diagnostic,
    }
}

/// Whether its value can be shown as written.
fn is_short(entry: &YamlEntry) -> bool {
    let quoted = |scalar: &Scalar| !matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
    entry.value.as_scalar().is_some_and(|scalar| quoted(scalar) && !scalar.text.contains('\n')) && !is_alias(entry)
}

/// Whether an item of `output` has the same values, so that both can be removed.
fn is_equivalent(output: &YamlNode, target: &YamlEntry, define: Option<&YamlEntry>) -> bool {
    let matches = |item: &YamlNode, key: &str, entry: &YamlEntry| {
        item.get(key).is_some_and(|value| value.to_json() == entry.value.to_json())
    };
    let same =
        |item: &YamlNode| matches(item, "get", target) && define.is_none_or(|define| matches(item, "define", define));
    output.as_sequence().into_iter().flatten().any(|item| same(item))
}

/// Writes extracted values of a reply into variables; null and missing values never overwrite. Returns the written values in
/// the form that may be shown.
///
/// A value that does not fit the declaration of its variable is omitted with a warning: a mistake of the model does not stop
/// the session.
pub(crate) fn write_outputs(turn: &Turn<'_>, outputs: &[OutputVariable], reply: &Reply) -> ExactValues {
    let mut extracted = ExactValues::new();
    for output in outputs {
        let Some(value) = reply.field(&output.get).filter(|value| !value.is_null()) else { continue };
        let Some(value) = value_to_write(turn, output, value) else { continue };
        match turn.set(&output.get, value, output.scope) {
            Ok(shown) => {
                extracted.insert(output.get.clone(), shown);
            }
            Err(error) => turn.warn("output-not-written", error.to_message(), None),
        }
    }
    extracted
}

/// What is written for a value of this output: with `append`, the list with the value added. `None`, with a warning, if nothing can be
/// added.
pub(crate) fn value_to_write(turn: &Turn<'_>, output: &OutputVariable, value: ExactValue) -> Option<ExactValue> {
    if !output.append {
        return Some(value);
    }
    // Of a list, each element: a model that hears of two people at once answers with a list. With another type, the value is none.
    let added: Vec<ExactValue> = if value.is_array() { value.items().collect() } else { vec![value] };
    let before = turn.written_variable(&output.get, output.scope).filter(|before| !before.is_null());
    match before.as_deref().map_or(Some(0), |before| Some(before.as_array()?.len())) {
        Some(items) if items.saturating_add(added.len()) > MAX_ELEMENTS => {
            let message = msg!("`{}` already has {MAX_ELEMENTS} elements; no more are added", output.get);
            turn.warn("output-not-written", message, None);
            None
        }
        Some(_) => Some(before.iter().flat_map(ExactValue::items).chain(added).collect()),
        None => {
            let message = msg!("`{}` is not a list, so nothing can be added to it", output.get);
            turn.warn("output-not-written", message, Some(Message::word("declare it with `type: list`")));
            None
        }
    }
}

/// Removes the values of sensitive outputs from the parts of the reply that the outcome stores. They may be too short to be
/// found by their text, or be written with escapes.
pub(crate) fn hide_sensitive(turn: &Turn<'_>, outputs: &[OutputVariable], exchange: &mut Exchange) {
    let sensitive: Vec<&str> =
        outputs.iter().map(|output| output.get.as_str()).filter(|name| turn.is_sensitive(name)).collect();
    if sensitive.is_empty() {
        return;
    }
    let shown = match &exchange.reading {
        Ok(reply) => {
            let mut object = reply.object.clone();
            for (_, value) in
                object.iter_mut().filter(|(name, value)| sensitive.contains(&name.as_str()) && !value.is_null())
            {
                *value = Value::from(MASK);
            }
            reply.with_digits(object).to_string()
        }
        Err(_) => MASK.to_owned(),
    };
    exchange.debug_info.insert("llm_response".into(), Value::from(shown.as_str()));
    exchange.raw = shown;
}
