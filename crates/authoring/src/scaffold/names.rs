//! The names that new scripts, skills and tests may have: they become ids and names of files.

use bcc_engine::error::EngineError;
use bcc_engine::portable::is_device;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The longest name, in characters: as long as an id may be.
const LONGEST: usize = 100;

/// The longest name of a file, in bytes, that every file system takes; the ending takes five of them.
const MOST_BYTES: usize = 250;

/// What a name may be.
const RULE: &str = "a name consists of letters, digits, `_` and `-`, as in `first_talk` or `初次访谈`";

/// The name that `given` means: itself, without an ending `.yaml`.
/// Errors: `Usage`, with what is wrong and, where there is one, a name that would do.
pub fn name(given: &str) -> Result<&str, EngineError> {
    let name = given.strip_suffix(".yaml").or_else(|| given.strip_suffix(".yml")).unwrap_or(given);
    let refused = |why: Message| Err(EngineError::usage(why).with_help(RULE));
    let shown = name.escape_debug();
    if name.is_empty() {
        return refused(msg!("a name is required, but this one is empty"));
    }
    if name.contains(['/', '\\']) {
        return refused(msg!(
            "`{shown}` is a path: specify only the name, because each kind of file has its own folder in the project"
        ));
    }
    if name.chars().count() > LONGEST || name.len() > MOST_BYTES {
        return refused(msg!("this name is too long: the maximum is {LONGEST} characters"));
    }
    if name.starts_with(['.', '-']) {
        return refused(msg!("`{shown}` cannot be a name: it starts with `{}`", name.get(..1).unwrap_or_default()));
    }
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if let Some(strange) = name.chars().find(|c| !fits(*c)) {
        let error = EngineError::usage(msg!("`{shown}` cannot be a name: `{}` is not allowed", strange.escape_debug()));
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
        return refused(msg!("`{shown}` cannot be a name: Windows reserves it for a device"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_without_its_ending() {
        for (given, taken) in
            [("intake", "intake"), ("intake.yaml", "intake"), ("初次访谈.yml", "初次访谈"), ("a.b-c_2", "a.b-c_2")]
        {
            assert_eq!(name(given).unwrap(), taken);
        }
    }

    #[test]
    fn a_name_that_could_be_no_id_or_no_file_is_refused_with_a_reason() {
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
