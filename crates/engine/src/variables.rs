//! Variables from the command line: `--var NAME=VALUE` and `--vars FILE`.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::engine::RunRequest;
use crate::error::EngineError;
use crate::files::read_bounded;
use bcc_lang::source::compose::parse;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::scopes::Declaration;
use bcc_runtime::program::program::Program;

const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The values for the variables of `program`: those of the file, overridden by the typed ones, and then by the pairs of the command line.
///
/// # Errors
/// When a name is declared neither for the session nor globally, or a value does not match its declaration.
pub(crate) fn variable_values(
    program: &Program,
    request: &RunRequest,
) -> Result<Vec<(String, ExactValue)>, EngineError> {
    let mut values = Vec::new();
    let of_file = request.variables_file.as_deref().map(read_variables_file).transpose()?;
    for (name, value) in of_file.into_iter().flatten().chain(request.values.clone()) {
        values.push((name.clone(), convert_value(program, &name, value)?));
    }
    for pair in &request.variables {
        let (name, text) = parse_pair(pair)?;
        let declaration = declaration(program, name)?;
        values.push((name.to_owned(), coerce_value(declaration, Value::from(text).into(), true)?));
    }
    Ok(values)
}

pub fn parse_pair(pair: &str) -> Result<(&str, &str), EngineError> {
    let (name, text) = pair
        .split_once('=')
        .ok_or_else(|| EngineError::usage(msg!("`--var {pair}` has no `=`")).with_help("write `--var NAME=VALUE`"))?;
    Ok((name.trim(), text))
}

/// Converts a value for a variable of `program` to its declared type.
pub fn convert_value(program: &Program, name: &str, value: ExactValue) -> Result<ExactValue, EngineError> {
    coerce_value(declaration(program, name)?, value, false)
}

/// Reads a `--vars` file: a mapping of names to values, in JSON or YAML.
pub fn read_variables_file(path: &Path) -> Result<ExactValues, EngineError> {
    let shown = path.display();
    let bytes = read_bounded(path, MAX_BYTES)
        .map_err(|error| EngineError::usage(msg!("the variables file {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = msg!("the variables file {shown} is larger than {MAX_BYTES} bytes");
        return Err(EngineError::usage(message));
    }
    match serde_yaml::from_slice::<Value>(&bytes) {
        Ok(value @ Value::Object(_)) => {
            let value = ExactValue::new(value, written_digits(&bytes, path)?);
            Ok(value.fields().map(|(name, value)| (name.to_owned(), value)).collect())
        }
        Ok(_) => Err(EngineError::usage(msg!("{shown} must be a mapping of names to values"))),
        Err(error) => Err(EngineError::usage(msg!(
            "{shown} is neither JSON nor YAML: {error}",
            error = library(&error.to_string())
        ))),
    }
}

/// The digits of the numbers in a file in JSON or YAML.
///
/// # Errors
/// `Usage` for a key that is there twice: one of its values would be lost.
fn written_digits(bytes: &[u8], path: &Path) -> Result<Option<Digits>, EngineError> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(None) };
    let file = Arc::new(SourceFile::new("variables", text));
    let parsed = parse(&file);
    if let Some(twice) = parsed.diagnostics.iter().find(|found| found.rule == "duplicate-key") {
        let (shown, line) = (path.display(), file.line(twice.span.start));
        return Err(EngineError::usage(msg!("{shown}, line {line}: {found}", found = twice.message.clone()))
            .with_help("keep only one of them, or rename one"));
    }
    Ok(parsed.root.and_then(|root| root.to_exact().digits().cloned()))
}

fn declaration<'p>(program: &'p Program, name: &str) -> Result<&'p Declaration, EngineError> {
    program.declarations.get(name).or_else(|| program.globals.get(name)).ok_or_else(|| {
        let known = program.declarations.keys().chain(program.globals.keys()).map(String::as_str);
        let error = EngineError::usage(msg!("the script has no variable `{name}` that can be set"));
        match near_miss(name, known) {
            Some(near) => error.with_help(msg!("did you mean `{near}`?")),
            None => error.with_help("session variables are listed under `declare` in the script"),
        }
    })
}

/// Converts `value` to its declared type. A `typed` value is text; if a list or an object is declared, it is parsed as JSON.
pub fn coerce_value(declaration: &Declaration, value: ExactValue, typed: bool) -> Result<ExactValue, EngineError> {
    let name = &declaration.name;
    let mut value = value;
    if let Some(declared) = declaration.declared.filter(|_| !value.is_null()) {
        if typed
            && matches!(declared, DeclaredType::List | DeclaredType::Object)
            && let Some(parsed) = value.as_str().and_then(|text| ExactValue::parse(text).ok())
        {
            value = parsed;
        }
        value = declared.coerce_exact(&value).ok_or_else(|| {
            EngineError::usage(msg!("the value given for `{name}` is not of type {}", declared.name()))
        })?;
    }
    if !declaration.choices.is_empty() && !declaration.choices.contains(&value) {
        return Err(EngineError::usage(msg!(
            "the value given for `{name}` is not one of {}",
            Message::values(&declaration.choices)
        )));
    }
    Ok(value)
}
