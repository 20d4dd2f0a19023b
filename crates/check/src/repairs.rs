//! From a repair of an expression or a text, in bytes of what it says, to a fix of the file in which it stands.

use bcc_lang::message::message::Message;
use bcc_lang::source::diagnostic::{Edit, Fix};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{ScalarStyle, YamlNode};
use bcc_lang::template::unknown::SourceRepair;

/// The fix of the file that makes `repair` in the scalar `node`, in whose decoded text the repaired source begins at `start`.
/// `None` where that cannot be written the way the scalar is written.
pub fn fix(file: &SourceFile, node: &YamlNode, start: usize, repair: &SourceRepair) -> Option<Fix> {
    let scalar = node.as_scalar()?;
    let shifted: Vec<_> =
        repair.edits.iter().map(|(range, text)| (range.start + start..range.end + start, text.clone())).collect();
    let title = repair.title.clone();
    if scalar.style == ScalarStyle::Plain {
        let after =
            SourceRepair { title: Message::default(), edits: shifted.clone(), sure: false }.apply(&scalar.text)?;
        let brackets = |text: &str| text.matches([',', '[', ']', '{', '}']).count();
        if !may_stand_plain(&after) || brackets(&after) > brackets(&scalar.text) {
            let text = quoted(&after)?;
            return Some(Fix { title, edits: vec![Edit::replace(node.span, text)], sure: repair.sure });
        }
    }
    let escaped = |text: String| match scalar.style {
        ScalarStyle::DoubleQuoted => text.replace('\\', "\\\\").replace('"', "\\\""),
        ScalarStyle::SingleQuoted => text.replace('\'', "''"),
        ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => text,
    };
    let edits = shifted.into_iter().map(|(range, text)| Edit::replace(locate_bytes(file, node, range), escaped(text)));
    Some(Fix { title, edits: edits.collect(), sure: repair.sure })
}

/// Whether YAML reads this text without quotes as the text that it is.
fn may_stand_plain(text: &str) -> bool {
    const MEANING: &[char] =
        &['!', '&', '*', '{', '}', '[', ']', '|', '>', '@', '`', '"', '\'', '%', '#', ',', '?', ':', '-'];
    let inside = !text.contains(": ") && !text.contains(" #") && !text.contains('\n');
    inside && !text.is_empty() && text.trim() == text && !text.starts_with(MEANING) && !text.ends_with(':')
}

/// The text in quotes, if one pair of them needs no escapes.
fn quoted(text: &str) -> Option<String> {
    if !text.contains(['"', '\\', '\n']) {
        return Some(format!("\"{text}\""));
    }
    (!text.contains(['\'', '\n'])).then(|| format!("'{text}'"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use bcc_lang::source::compose;

    #[test]
    fn a_repair_is_written_the_way_its_scalar_is() {
        // The file, what is replaced in `a`, by what, and the file afterwards.
        let table = [
            ("a: x = 1\n", "=", "==", "a: x == 1\n"),
            ("a: \"x = 1\"\n", "=", "== \"1\"", "a: \"x == \\\"1\\\" 1\"\n"),
            ("a: 'x = 1'\n", "=", "'='", "a: 'x ''='' 1'\n"),
            ("a: |\n  x = 1\n", "=", "==", "a: |\n  x == 1\n"),
            ("a: x = 1\n", "x = 1", "'x' == 1", "a: \"'x' == 1\"\n"),
            ("b: { a: x }\n", "x", "x in [1, 2]", "b: { a: \"x in [1, 2]\" }\n"),
        ];
        for (text, old, new, after) in table {
            let file = Arc::new(SourceFile::new("a.yaml", text));
            let root = compose::parse(&file).root.unwrap();
            let node = root.get("a").or_else(|| root.get("b")?.get("a")).unwrap();
            let at = node.as_scalar().unwrap().text.find(old).unwrap();
            let fix = fix(&file, node, 0, &SourceRepair::one("", at..at + old.len(), new)).unwrap();
            let mut mended = text.to_owned();
            for edit in fix.edits.iter().rev() {
                mended.replace_range(edit.span.range(), &edit.text);
            }
            assert_eq!(mended, after);
        }
    }
}
