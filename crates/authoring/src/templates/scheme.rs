//! Validates the names of new template schemes (docs/templates.md).

use bcc_engine::error::EngineError;
use bcc_engine::portable::is_device;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::template::layers::{DEFAULT_SCHEME, MAX_SCHEME_BYTES, is_scheme_name};

const RULE: &str = "the name of a scheme consists of letters, digits, `_` and `-`, as in `gentle` or `访谈_2`";

/// Errors: `Usage`, with the reason: the name is empty, a path, too long, reserved, or contains other characters.
pub(crate) fn check_new_name(name: &str) -> Result<(), EngineError> {
    let reject = |reason: Message| Err(EngineError::usage(reason).with_help(RULE));
    let shown = name.escape_debug();
    if name.is_empty() {
        return reject(msg!("a scheme needs a name, but this one is empty"));
    }
    if name.contains(['/', '\\']) || name == "." || name.contains("..") {
        return reject(msg!(
            "`{shown}` is a path: a scheme is a folder in _system/config/custom; specify only its name"
        ));
    }
    if name.len() > MAX_SCHEME_BYTES {
        return reject(msg!("the name of a scheme must not be longer than {MAX_SCHEME_BYTES} bytes"));
    }
    if !is_scheme_name(name) {
        let is_invalid = |c: &char| !(c.is_alphanumeric() || matches!(c, '_' | '-'));
        let invalid = name.chars().find(is_invalid).map(|c| c.escape_debug().to_string()).unwrap_or_default();
        return reject(msg!("`{shown}` cannot be the name of a scheme: `{invalid}` is not allowed"));
    }
    if name.starts_with('-') {
        return reject(msg!("`{shown}` cannot be the name of a scheme: commands would interpret it as an option"));
    }
    if name.to_lowercase() == DEFAULT_SCHEME {
        return Err(EngineError::usage(msg!(
            "`{shown}` is the name of the templates in `_system/config/default`, and no other scheme can use it"
        ))
        .with_help("choose another name; to change those templates for all schemes, put files into that folder"));
    }
    if is_device(name) {
        return reject(msg!("`{shown}` cannot be the name of a scheme: Windows reserves it for a device"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_single_plain_component_is_rejected_with_the_reason() {
        let table = [
            ("", "is empty"),
            ("..", "is a path"),
            ("../x", "is a path"),
            ("/etc", "is a path"),
            ("a/b", "is a path"),
            ("a\\b", "is a path"),
            (".", "is a path"),
            ("a b", "` ` is not allowed"),
            (".hidden", "`.` is not allowed"),
            ("c:", "`:` is not allowed"),
            ("a\0b", "`\\0` is not allowed"),
            ("a\u{1b}[31m", "`\\u{1b}` is not allowed"),
            ("-x", "as an option"),
            ("default", "`_system/config/default`"),
            ("Default", "`_system/config/default`"),
            ("NUL", "Windows"),
            ("com1", "Windows"),
            (&"长".repeat(40), "longer than 100 bytes"),
        ];
        for (name, why) in table {
            let error = check_new_name(name).unwrap_err();
            assert!(error.to_string().contains(why), "{name:?}: {error}");
            assert!(error.help().is_some(), "{name:?}");
        }
    }

    #[test]
    fn letters_of_any_script_digits_hyphens_and_underscores_are_allowed() {
        for name in ["gentle", "焦虑-2_b", "english", "custom", "com", "lpt10", "defaults", "2"] {
            check_new_name(name).unwrap();
        }
    }
}
