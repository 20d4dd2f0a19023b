//! Validates the names of new scripts, skills and tests, which become ids and file names.

use bcc_engine::error::EngineError;
use bcc_engine::portable::is_device;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The maximum length of a name, in characters: the same as for an id.
const MAX_CHARACTERS: usize = 100;

/// The maximum length of a file name, in bytes, that every file system supports; the extension takes five of them.
const MAX_BYTES: usize = 250;

/// The rule for names, as help text.
const RULE: &str = "a name consists of letters, digits, `_` and `-`, as in `first_talk`";

/// Validates `given`, without the extension `.yaml`.
/// Errors: `Usage`, with the reason and, if possible, a valid name.
pub fn name(given: &str) -> Result<&str, EngineError> {
    let name = given.strip_suffix(".yaml").or_else(|| given.strip_suffix(".yml")).unwrap_or(given);
    let reject = |reason: Message| Err(EngineError::usage(reason).with_help(RULE));
    let shown = name.escape_debug();
    if name.is_empty() {
        return reject(msg!("a name is required, but this one is empty"));
    }
    if name.contains(['/', '\\']) {
        return reject(msg!(
            "`{shown}` is a path: specify only the name, because each kind of file has its own folder in the project"
        ));
    }
    if name.chars().count() > MAX_CHARACTERS || name.len() > MAX_BYTES {
        return reject(msg!("this name is too long: the maximum is {LONGEST} characters", LONGEST = MAX_CHARACTERS));
    }
    if name.starts_with(['.', '-']) {
        return reject(msg!("`{shown}` cannot be a name: it starts with `{}`", name.get(..1).unwrap_or_default()));
    }
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if let Some(invalid) = name.chars().find(|c| !fits(*c)) {
        let error = EngineError::usage(msg!("`{shown}` cannot be a name: `{}` is not allowed", invalid.escape_debug()));
        let words: Vec<&str> = name.split(|c| !fits(c)).filter(|word| !word.is_empty()).collect();
        let near = words.join("_");
        let help = if near.is_empty() || near.starts_with(['.', '-']) {
            Message::word(RULE)
        } else {
            msg!("`{near}` would be valid; {rule}", rule = Message::word(RULE))
        };
        return Err(error.with_help(help));
    }
    if is_device(name) {
        return reject(msg!("`{shown}` cannot be a name: Windows reserves it for a device"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_used_without_its_extension() {
        for (given, taken) in
            [("intake", "intake"), ("intake.yaml", "intake"), ("初次访谈.yml", "初次访谈"), ("a.b-c_2", "a.b-c_2")]
        {
            assert_eq!(name(given).unwrap(), taken);
        }
    }

    #[test]
    fn a_name_that_is_no_valid_id_or_file_name_is_rejected_with_a_reason() {
        let long = "长".repeat(101);
        let table = [
            ("", "empty", "consists of letters"),
            (".yaml", "empty", "consists of letters"),
            ("a/b", "is a path", "consists of letters"),
            ("..\\b", "is a path", "consists of letters"),
            (".hidden", "starts with `.`", "consists of letters"),
            ("-x", "starts with `-`", "consists of letters"),
            (&long, "too long", "consists of letters"),
            ("my talk", "` ` is not allowed", "`my_talk` would be valid"),
            ("tea?", "`?` is not allowed", "`tea` would be valid"),
            ("a\nb", "`\\n` is not allowed", "`a_b` would be valid"),
            ("？", "is not allowed", "consists of letters"),
            ("NUL", "Windows", "consists of letters"),
            ("com1", "Windows", "consists of letters"),
            ("aux.first", "Windows", "consists of letters"),
        ];
        for (given, why, help) in table {
            let error = name(given).unwrap_err();
            assert!(error.to_string().contains(why), "{given:?}: {error}");
            assert!(error.help().unwrap().to_string().contains(help), "{given:?}: {:?}", error.help());
        }
    }
}
