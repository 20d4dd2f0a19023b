//! Variables from the command line: `--var NAME=VALUE` and `--vars FILE`.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use serde_json::Value;

use crate::error::EngineError;
use crate::files::read_bounded;
use bcc_lang::source::near::near_miss;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Declaration;
use bcc_runtime::program::program::Program;

const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The values for the variables of `program`: those of the file, overridden by `pairs`.
///
/// # Errors
/// When a name is declared neither for the session nor globally, or a value does not match its declaration.
pub(crate) fn variable_values(
    program: &Program,
    file: Option<&Path>,
    pairs: &[String],
) -> Result<Vec<(String, Value)>, EngineError> {
    let mut values: Vec<(String, Value)> = Vec::new();
    if let Some(path) = file {
        for (name, value) in read_variables_file(path)? {
            let declaration = declaration(program, &name)?;
            values.push((name, coerce_value(declaration, value, false)?));
        }
    }
    for pair in pairs {
        let (name, text) = parse_pair(pair)?;
        let declaration = declaration(program, name)?;
        values.push((name.to_owned(), coerce_value(declaration, Value::from(text), true)?));
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
pub fn convert_value(program: &Program, name: &str, value: Value) -> Result<Value, EngineError> {
    coerce_value(declaration(program, name)?, value, false)
}

/// Reads a `--vars` file: a mapping of names to values, in JSON or YAML.
pub fn read_variables_file(path: &Path) -> Result<serde_json::Map<String, Value>, EngineError> {
    let shown = path.display();
    let bytes = read_bounded(path, MAX_BYTES)
        .map_err(|error| EngineError::usage(msg!("the variables file {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = msg!("the variables file {shown} is larger than {MAX_BYTES} bytes");
        return Err(EngineError::usage(message));
    }
    match serde_yaml::from_slice::<Value>(&bytes) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err(EngineError::usage(msg!("{shown} must be a mapping of names to values"))),
        Err(error) => Err(EngineError::usage(msg!(
            "{shown} is neither JSON nor YAML: {error}",
            error = library(&error.to_string())
        ))),
    }
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
pub fn coerce_value(declaration: &Declaration, value: Value, typed: bool) -> Result<Value, EngineError> {
    let name = &declaration.name;
    let mut value = value;
    if let Some(declared) = declaration.declared.filter(|_| !value.is_null()) {
        if typed
            && matches!(declared, DeclaredType::List | DeclaredType::Object)
            && let Some(parsed) = value.as_str().and_then(|text| serde_json::from_str(text).ok())
        {
            value = parsed;
        }
        value = declared.coerce(&value).ok_or_else(|| {
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
