//! Variables from the command line: `--var NAME=VALUE` and `--vars FILE`.

use bcc_lang::message::msg;
use std::path::Path;

use serde_json::Value;

use crate::error::EngineError;
use crate::files::read_bounded;
use bcc_lang::source::near::near_miss;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Declaration;
use bcc_runtime::program::program::Program;

const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// The values for the variables of `program`: those of the file, then those given one by one, which win.
///
/// # Errors
/// When a name is declared neither for the session nor globally, or a value does not fit its declaration.
pub fn given(program: &Program, file: Option<&Path>, pairs: &[String]) -> Result<Vec<(String, Value)>, EngineError> {
    let mut values: Vec<(String, Value)> = Vec::new();
    if let Some(path) = file {
        for (name, value) in from_file(path)? {
            let declaration = declaration(program, &name)?;
            values.push((name, fitting(declaration, value, false)?));
        }
    }
    for pair in pairs {
        let (name, text) = pair_of(pair)?;
        let declaration = declaration(program, name)?;
        values.push((name.to_owned(), fitting(declaration, Value::from(text), true)?));
    }
    Ok(values)
}

pub fn pair_of(pair: &str) -> Result<(&str, &str), EngineError> {
    let (name, text) = pair
        .split_once('=')
        .ok_or_else(|| EngineError::usage(msg!("`--var {pair}` has no `=`")).with_help("write `--var NAME=VALUE`"))?;
    Ok((name.trim(), text))
}

/// A value for a variable of `program`, as its declaration wants it.
pub fn given_value(program: &Program, name: &str, value: Value) -> Result<Value, EngineError> {
    fitting(declaration(program, name)?, value, false)
}

/// What stands in a `--vars` file: a mapping of names to values, as JSON or YAML.
pub fn from_file(path: &Path) -> Result<serde_json::Map<String, Value>, EngineError> {
    let shown = path.display();
    let bytes = read_bounded(path, MOST_BYTES)
        .map_err(|error| EngineError::usage(msg!("the variables file {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(EngineError::usage(msg!("the variables file {shown} is larger than {MOST_BYTES} bytes")));
    }
    match serde_yaml::from_slice::<Value>(&bytes) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err(EngineError::usage(msg!("{shown} must be a mapping of names to values"))),
        Err(error) => Err(EngineError::usage(msg!("{shown} is neither JSON nor YAML: {error}"))),
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

/// `value` as its declaration wants it. What was typed is text; a list or an object is then read as JSON.
pub fn fitting(declaration: &Declaration, value: Value, typed: bool) -> Result<Value, EngineError> {
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
        let choices: Vec<String> = declaration.choices.iter().map(ToString::to_string).collect();
        return Err(EngineError::usage(msg!("the value given for `{name}` is not one of {}", choices.join(", "))));
    }
    Ok(value)
}
