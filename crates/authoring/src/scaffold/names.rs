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
const RULE: &str = "a name is made of letters, digits, `_` and `-`, as in `first_talk` or `初次访谈`";

/// The name that `given` means: itself, without an ending `.yaml`.
/// Errors: `Usage`, with what is wrong and, where there is one, a name that would do.
pub fn name(given: &str) -> Result<&str, EngineError> {
    let name = given.strip_suffix(".yaml").or_else(|| given.strip_suffix(".yml")).unwrap_or(given);
    let refused = |why: Message| Err(EngineError::usage(why).with_help(RULE));
    let shown = name.escape_debug();
    if name.is_empty() {
        return refused(msg!("a name is needed, and this one is empty"));
    }
    if name.contains(['/', '\\']) {
        return refused(msg!(
            "`{shown}` is a path: each file has its folder in the project, and only its name is given"
        ));
    }
    if name.chars().count() > LONGEST || name.len() > MOST_BYTES {
        return refused(msg!("this name is too long: {LONGEST} characters are the most"));
    }
    if name.starts_with(['.', '-']) {
        return refused(msg!("`{shown}` cannot be a name: it begins with `{}`", name.get(..1).unwrap_or_default()));
    }
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if let Some(strange) = name.chars().find(|c| !fits(*c)) {
        let error =
            EngineError::usage(msg!("`{shown}` cannot be a name: `{}` may not stand in it", strange.escape_debug()));
        let words: Vec<&str> = name.split(|c| !fits(c)).filter(|word| !word.is_empty()).collect();
        let near = words.join("_");
        let help = if near.is_empty() || near.starts_with(['.', '-']) {
            Message::word(RULE)
        } else {
            msg!("`{near}` would do; {rule}", rule = Message::word(RULE))
        };
        return Err(error.with_help(help));
    }
    if is_device(name) {
        return refused(msg!("`{shown}` cannot be a name: Windows keeps it for a device"));
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
            ("", "empty", "made of letters"),
            (".yaml", "empty", "made of letters"),
            ("a/b", "is a path", "made of letters"),
            ("..\\b", "is a path", "made of letters"),
            (".hidden", "begins with `.`", "made of letters"),
            ("-x", "begins with `-`", "made of letters"),
            (&long, "too long", "made of letters"),
            ("my talk", "` ` may not stand in it", "`my_talk` would do"),
            ("tea?", "`?` may not stand in it", "`tea` would do"),
            ("a\nb", "`\\n` may not stand in it", "`a_b` would do"),
            ("？", "may not stand in it", "made of letters"),
            ("NUL", "Windows", "made of letters"),
            ("com1", "Windows", "made of letters"),
            ("aux.first", "Windows", "made of letters"),
        ];
        for (given, why, help) in table {
            let error = name(given).unwrap_err();
            assert!(error.to_string().contains(why), "{given:?}: {error}");
            assert!(error.help().unwrap().to_string().contains(help), "{given:?}: {:?}", error.help());
        }
    }
}
