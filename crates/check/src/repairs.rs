//! Converts a repair of an expression or a text to a fix of the file that contains it.

use bcc_lang::message::message::Message;
use bcc_lang::source::diagnostic::{Edit, Fix};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{ScalarStyle, YamlNode};
use bcc_lang::template::unknown::SourceRepair;

/// The fix of the file that applies `repair` in the scalar `node`, in whose decoded text the repaired source starts at
/// `start`. `None` if the result cannot be written in the style of the scalar.
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

/// Whether YAML reads this text unchanged without quotes.
fn may_stand_plain(text: &str) -> bool {
    const SPECIAL: &[char] =
        &['!', '&', '*', '{', '}', '[', ']', '|', '>', '@', '`', '"', '\'', '%', '#', ',', '?', ':', '-'];
    let inside = !text.contains(": ") && !text.contains(" #") && !text.contains('\n');
    inside && !text.is_empty() && text.trim() == text && !text.starts_with(SPECIAL) && !text.ends_with(':')
}

/// The text in the kind of quotes that needs no escapes, if any.
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
    fn a_repair_keeps_the_style_of_its_scalar() {
        // The file, the text to replace in `a`, its replacement, and the resulting file.
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
            let mut fixed = text.to_owned();
            for edit in fix.edits.iter().rev() {
                fixed.replace_range(edit.span.range(), &edit.text);
            }
            assert_eq!(fixed, after);
        }
    }
}
