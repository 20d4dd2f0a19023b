//! Recognizes YAML files that are documents of the language (docs/language.md "The file"). YAML files of other programs must
//! not be reported as invalid scripts; a script with a mistyped `session:` must still be recognized.

use bcc_lang::source::near::near_miss;

/// Keys that identify a document at its root. Deeper, other programs use them too.
const ROOT_KEYS: [&str; 8] =
    ["session", "skill", "technique_id", "workflow_id", "dialogue", "session_id", "skill_id", "phases"];

/// Keys that identify a script, or a file of an older engine, at any depth, because hardly any other program uses them.
const OWN_KEYS: [&str; 3] = ["consciousness_id", "phase_id", "topic_id"];

/// Below a mistyped root key, a key similar to one of these identifies a script.
const DEEP_KEYS: [&str; 3] = ["phase_id", "topic_id", "action_type"];

/// Keys below `sessions` in a legacy script.
const LEGACY_KEYS: [&str; 4] = ["session", "phases", "phase", "topic"];

/// Whether the file contains a key that identifies a document of the language, or a similar key with phases, topics or actions
/// below it. Searches bytes, so that files in another encoding, truncated files and files with syntax errors are recognized.
pub fn is_document(bytes: &[u8]) -> bool {
    // In UTF-16, every second byte of a key is zero.
    let without_zeros: Vec<u8>;
    let bytes = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        without_zeros = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        &without_zeros
    } else {
        bytes
    };
    let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
    let (mut mistyped, mut test, mut script, mut sessions) = (false, false, false, false);
    // A key is at the start of a line, or after `{` or `,`.
    for piece in bytes.split(|byte| matches!(byte, b'\n' | b'\r' | b'{' | b',')) {
        let Some(Key { word, indented, value }) = key(piece) else { continue };
        let one_of = |keys: &[&str]| keys.iter().any(|own| own.as_bytes() == word);
        let near =
            |keys: [&'static str; 3]| std::str::from_utf8(word).is_ok_and(|word| near_miss(word, keys).is_some());
        let at_root = is_json || !indented;
        if one_of(&OWN_KEYS) || at_root && one_of(&ROOT_KEYS) {
            return true;
        }
        // Similarity is computed only below a mistyped root key, for speed.
        if mistyped && (one_of(&DEEP_KEYS) || near(DEEP_KEYS)) {
            return true;
        }
        // Other programs use `sessions` too; in a legacy script, it is followed by one of these keys.
        if sessions && one_of(&LEGACY_KEYS) {
            return true;
        }
        sessions |= at_root && word == b"sessions";
        mistyped |= !indented && !mistyped && near(["session", "skill", "skill"]);
        // Other programs use either key at the root; in a test, `script` names a YAML file.
        test |= at_root && word == b"test";
        script |= at_root && word == b"script" && names_yaml(value);
        if test && script {
            return true;
        }
    }
    false
}

/// The value of the key `test` at the root of a text that may have syntax errors, up to the end of its line: what a file says that was
/// meant as a conversation test. In JSON, keys in deeper objects are not its own.
pub fn test_value(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
    let pieces =
        if is_json { root_entries(bytes) } else { bytes.split(|byte| matches!(byte, b'\n' | b'\r')).collect() };
    let value = pieces.into_iter().filter_map(key).find(|key| key.word == b"test" && (is_json || !key.indented))?.value;
    let line = value.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    std::str::from_utf8(line).ok().map(str::trim)
}

/// The texts that begin with the entries of a JSON object. The object need not be closed.
fn root_entries(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let mut entries = Vec::new();
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 1 && !in_string && matches!(byte, b'{' | b',') {
            entries.extend(bytes.get(index + 1..));
        }
    }
    entries
}

/// A word before a colon.
struct Key<'b> {
    word: &'b [u8],
    indented: bool,
    /// The text after the colon.
    value: &'b [u8],
}

/// The key at the start of `piece`. The full-width colon of Chinese input methods is accepted.
fn key(piece: &[u8]) -> Option<Key<'_>> {
    let start = piece.iter().position(u8::is_ascii_alphanumeric)?;
    // Only punctuation as in `- "key"` may precede a key; a comment is not a key.
    let prefix = piece.get(..start)?;
    if prefix.contains(&b'#') {
        return None;
    }
    let rest = piece.get(start..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
    let (word, after) = rest.split_at_checked(end)?;
    let colon = after.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'"' | b'\''))?;
    let after = after.get(colon..)?;
    let value = after.strip_prefix(b":").or_else(|| after.strip_prefix("：".as_bytes()))?;
    Some(Key { word, indented: prefix.iter().any(u8::is_ascii_whitespace), value })
}

/// Whether a value is the name of a YAML file.
fn names_yaml(value: &[u8]) -> bool {
    let value = value.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
    let name = value.strip_suffix(b"\"").or_else(|| value.strip_suffix(b"'")).unwrap_or(value).to_ascii_lowercase();
    name.ends_with(b".yaml") || name.ends_with(b".yml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_the_language_are_distinguished_from_those_of_other_programs() {
        let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(b"session:".iter().flat_map(|byte| [*byte, 0])).collect();
        let ours: [&[u8]; 18] = [
            b"session:\n  session_id: a\n",
            b"\xef\xbb\xbfsession:\n",
            b"# about\n---\n\"session\" : {}\n",
            b"{ \"session\" : {} }",
            b"sesion:\n  phases:\n    - phase_id: a\n",
            b"# old\nsessions:\n  - session: a\n",
            b"{ \"sessions\": [ { \"session\": 1 } ] }",
            b"skil:\n  actions:\n    - action_type: ai_say\n",
            b"skill:\n  skill_id: a\n",
            b"technique_id: a\ntopic: {}\n",
            b"workflow_id: a\nsteps: []\n",
            b"test: greets\nscript: a.yaml\ndialogue: []\n",
            b"test: greets\nscript: ../scripts/a.yaml # its script\ndialog:\n  - user: hi\n",
            "session：\n  session_id：x\n".as_bytes(),
            "- phase_id：x\n".as_bytes(),
            b"sesion:\n  sesion_id: x\n  phase:\n    - phaseid: p\n",
            b"session:\n\tbroken: [\n\xc4\xe3",
            &utf16,
        ];
        for bytes in ours {
            assert!(is_document(bytes), "{}", String::from_utf8_lossy(bytes));
        }
        let others: [&[u8]; 13] = [
            b"actions:\n  - action_type: ai_say\nexpect: []\n",
            b"spring:\n  session:\n    timeout: 5\n",
            b"",
            b"# session:\n",
            b"services:\n  web:\n    image: x\n",
            b"test:\n  stage: test\n  script:\n    - make\n",
            b"test: unit\nscript:\n  - make\n",
            b"test: unit\nscript: make test\n",
            b"sessions:\n  - id: a\n    timeout: 5\n",
            b"web:\n  sessions:\n    - session: a\n",
            b"database: { session_timeout: 5 }\n",
            b"text: the session is over\n",
            b"\0\0\0\0",
        ];
        for bytes in others {
            assert!(!is_document(bytes), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_text_with_errors_says_that_it_was_meant_as_a_test() {
        let tests = [
            ("test: asks\nscript: [\n", "asks"),
            ("# about\n---\n\"test\": \"asks\nscript: a\n", "\"asks"),
            ("'test' : asks\n", "asks"),
            ("script: a\ntest:\n", ""),
            ("{\"test\": \"json\", \"script\": ", "\"json\", \"script\":"),
            ("{ \"a\": { \"b\": \"}{\" },\n  \"test\" :\n", ""),
            ("{ script: a, test: asks", "asks"),
        ];
        for (text, value) in tests {
            assert_eq!(test_value(text), Some(value), "{text}");
        }
        let others = [
            "job:\n  test: a\n",
            "# test: a\n",
            "{ \"scripts\": { \"test\": \"jest\" ",
            "{ \"a\": \", test: b\" ",
            "tests: []\n",
            "",
        ];
        for text in others {
            assert_eq!(test_value(text), None, "{text}");
        }
    }
}
