//! Reads the API keys that a trusted configuration names. No message contains one.

use std::path::Path;

use bcc_lang::message::msg;
use secrecy::SecretString;

use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::read_configured;

/// The limit on the size of a key file, in bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// The key in the environment variable `variable` or in `file`, which is relative to the directory `project`; none if neither is set.
/// `place` is the table of the configuration in messages.
///
/// # Errors
/// `Usage` when the variable is not set or the file cannot be read.
pub fn api_key(
    project: &Path,
    environment: &Environment,
    place: &str,
    variable: Option<&str>,
    file: Option<&str>,
) -> Result<Option<SecretString>, EngineError> {
    if let Some(variable) = variable {
        return match environment.get(variable) {
            Some(key) => Ok(Some(SecretString::from(key.to_owned()))),
            None => Err(EngineError::usage(msg!("{place}: the environment variable {variable} is not set"))
                .with_help("set it to the API key, or remove `api_key_env` if the server needs none")),
        };
    }
    let Some(file) = file else { return Ok(None) };
    let path = project.join(file);
    let bytes = read_configured(project, file.as_ref(), MAX_KEY_BYTES).map_err(|error| {
        EngineError::usage(msg!("{place}: the key file {path} cannot be read: {error}", path = path.display()))
            .with_help("put the API key in it, or remove `api_key_file` if the server needs none")
    })?;
    if bytes.len() as u64 > MAX_KEY_BYTES {
        return Err(EngineError::usage(msg!("{place}: the key file {path} is too large", path = path.display())));
    }
    // The bytes themselves must not appear in any message.
    let key = String::from_utf8(bytes).map_err(|_| {
        EngineError::usage(msg!("{place}: the key file {path} is not UTF-8 text", path = path.display()))
    })?;
    Ok(Some(SecretString::from(key.trim().to_owned())))
}
