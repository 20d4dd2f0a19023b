//! Whether a YAML file below a folder is meant as a document of the language (docs/language.md "The file"). Other programs keep
//! YAML files too, and nobody wants to be told that theirs is no script; a script whose author mistyped `session:` is one
//! all the same.

use bcc_lang::source::near::near_miss;

/// Keys that say what a document is when they stand at its root; deeper, they are other programs' too.
const ROOT_KEYS: [&str; 8] =
    ["session", "skill", "technique_id", "workflow_id", "dialogue", "session_id", "skill_id", "phases"];

/// Keys that hardly any other program uses, wherever they stand: whoever writes one means a script, however broken.
const OWN_KEYS: [&str; 2] = ["phase_id", "topic_id"];

/// What stands near to these below a mistyped root is a script's too.
const DEEP_KEYS: [&str; 3] = ["phase_id", "topic_id", "action_type"];

/// What stands below the root of a script in the oldest form.
const OLDEST_KEYS: [&str; 4] = ["session", "phases", "phase", "topic"];

/// Whether the file holds a key that makes it a document of the language, or one that is near to it with phases, topics or
/// actions below. Looks at bytes, so that a file in a foreign encoding, a torn one or one with broken syntax is recognised as
/// well.
pub fn seems_ours(bytes: &[u8]) -> bool {
    // In UTF-16 every second byte of a key is nothing.
    let narrowed: Vec<u8>;
    let bytes = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        narrowed = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        &narrowed
    } else {
        bytes
    };
    let braces = bytes.trim_ascii_start().first() == Some(&b'{');
    let (mut mistyped, mut test, mut script, mut sessions) = (false, false, false, false);
    // A key stands at the start of a line, or behind what can stand before one on the same line.
    for piece in bytes.split(|byte| matches!(byte, b'\n' | b'\r' | b'{' | b',')) {
        let Some(Key { word, indented, value }) = key(piece) else { continue };
        let one_of = |keys: &[&str]| keys.iter().any(|own| own.as_bytes() == word);
        let near =
            |keys: [&'static str; 3]| std::str::from_utf8(word).is_ok_and(|word| near_miss(word, keys).is_some());
        let at_root = braces || !indented;
        if one_of(&OWN_KEYS) || at_root && one_of(&ROOT_KEYS) {
            return true;
        }
        // Only below a mistyped root is anything compared, and at a root stand but a few keys.
        if mistyped && (one_of(&DEEP_KEYS) || near(DEEP_KEYS)) {
            return true;
        }
        // Other programs have sessions too; in the oldest form, each begins with its name.
        if sessions && one_of(&OLDEST_KEYS) {
            return true;
        }
        sessions |= at_root && word == b"sessions";
        mistyped |= !indented && !mistyped && near(["session", "skill", "skill"]);
        // Other programs have either at their roots; of a test, the second names a script.
        test |= at_root && word == b"test";
        script |= at_root && word == b"script" && names_yaml(value);
        if test && script {
            return true;
        }
    }
    false
}

/// A word before a colon.
struct Key<'b> {
    word: &'b [u8],
    indented: bool,
    /// What stands behind its colon.
    value: &'b [u8],
}

/// The key that `piece` begins with. The full-width colon of Chinese input methods counts as one.
fn key(piece: &[u8]) -> Option<Key<'_>> {
    let start = piece.iter().position(u8::is_ascii_alphanumeric)?;
    // `- "key": …` at most; a comment is no key.
    let lead = piece.get(..start)?;
    if lead.contains(&b'#') {
        return None;
    }
    let rest = piece.get(start..)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
    let (word, behind) = rest.split_at_checked(end)?;
    let colon = behind.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'"' | b'\''))?;
    let behind = behind.get(colon..)?;
    let value = behind.strip_prefix(b":").or_else(|| behind.strip_prefix("：".as_bytes()))?;
    Some(Key { word, indented: lead.iter().any(u8::is_ascii_whitespace), value })
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
    fn documents_of_the_language_are_told_from_those_of_other_programs() {
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
            assert!(seems_ours(bytes), "{}", String::from_utf8_lossy(bytes));
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
            assert!(!seems_ours(bytes), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
