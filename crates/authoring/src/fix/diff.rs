//! The changes of a fix as a unified diff, readable by people and by `patch`.

use similar::{Algorithm, ChangeTag, TextDiff};

use bcc_lang::source::render::redaction::mask;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

const CONTEXT_LINES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffLineKind {
    /// The names of the two files, or a hunk header.
    Head,
    Same,
    Before,
    After,
}

/// The lines of the diff, each with its marker (`-`, `+` or a space) and its line break. Secrets are masked, so a diff
/// of a line with a secret cannot be applied.
pub fn diff(before: &SourceFile, after: &SourceFile) -> Vec<(DiffLineKind, String)> {
    let masked_text = |file: &SourceFile| mask(file, Span::new(0, file.text().len())).into_owned();
    let (old, new) = (masked_text(before), masked_text(after));
    // A migration may change most lines of a long file. Lines that occur once, such as those with ids, divide it into short parts.
    let text = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(&old, &new);
    let mut lines = vec![
        (DiffLineKind::Head, format!("--- {}\n", before.name())),
        (DiffLineKind::Head, format!("+++ {}\n", after.name())),
    ];
    for hunk in text.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        lines.push((DiffLineKind::Head, format!("{}\n", hunk.header())));
        for change in hunk.iter_changes() {
            let (kind, sign) = match change.tag() {
                ChangeTag::Equal => (DiffLineKind::Same, ' '),
                ChangeTag::Delete => (DiffLineKind::Before, '-'),
                ChangeTag::Insert => (DiffLineKind::After, '+'),
            };
            let end = if change.missing_newline() { "\n\\ No newline at end of file\n" } else { "" };
            lines.push((kind, format!("{sign}{}{end}", change.value())));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let file = |text: &str| SourceFile::new("scripts/a.yaml", text);
        diff(&file(before), &file(after)).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_diff_has_the_format_of_patch() {
        assert_eq!(
            shown("a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6", "a: 1\nb: 2\nc: 3\nd: 4\nE: 5\nf: 6"),
            "--- scripts/a.yaml\n+++ scripts/a.yaml\n@@ -2,5 +2,5 @@\n b: 2\n c: 3\n d: 4\n-e: 5\n+E: 5\n f: 6\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn line_breaks_are_preserved_and_secrets_are_masked() {
        let key = "sk-Zx81kQpL09vTqWnY3mB7rE5uHd2";
        let shown = shown(&format!("a: 1\r\nb: {key}\r\n"), &format!("A: 1\r\nb: {key}\r\n"));
        assert!(shown.contains("-a: 1\r\n+A: 1\r\n b: sk-*"), "{shown:?}");
        assert!(!shown.contains("Zx81kQpL"), "{shown}");
    }
}
