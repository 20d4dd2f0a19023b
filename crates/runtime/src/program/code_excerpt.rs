//! The beginning of code, short enough for a question about it: whoever is asked has seen all of it before, and only needs to recognize it.

use bcc_lang::message::language::Language;

/// The lines that are shown of code, without blank ones. One line more is shown than announced as left out.
const MAX_LINES: usize = 4;

/// The characters that are shown of a line.
const MAX_CHARS: usize = 76;

/// Before each line, which is code also where the question is read as Markdown.
const INDENT: &str = "    ";

/// The first lines of code, indented, with the number of lines that are left out.
pub fn code_excerpt(code: &str, language: Language) -> String {
    let lines: Vec<&str> = code.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let shown = if lines.len() <= MAX_LINES + 1 { lines.len() } else { MAX_LINES };
    let mut excerpt: Vec<String> =
        lines.iter().take(shown).map(|line| format!("{INDENT}{}", cut(&line.replace('\t', INDENT)))).collect();
    let count = lines.len() - shown;
    if count > 0 {
        let more = language.format("… {count} more lines", &[("count", &count.to_string())]);
        excerpt.push(format!("{INDENT}{more}"));
    }
    excerpt.join("\n")
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_are_shown_and_the_others_counted() {
        let table = [
            ("x = 1", "    x = 1".to_owned()),
            ("", String::new()),
            // One more line takes no more space than its number.
            ("a\n\nb\n  \nc\nd\ne\n", "    a\n    b\n    c\n    d\n    e".to_owned()),
            ("a\nb:\n\tc\nd\ne\nf", "    a\n    b:\n        c\n    d\n    … 2 more lines".to_owned()),
            (&"长".repeat(80), format!("    {}…", "长".repeat(76))),
        ];
        for (code, expected) in table {
            assert_eq!(code_excerpt(code, Language::English), expected, "{code:?}");
        }
        assert!(code_excerpt("a\nb\nc\nd\ne\nf", Language::Chinese).ends_with("\n    ……还有 2 行"));
    }
}
