//! Full-width punctuation in the patterns of `regex`, which a Chinese input method writes: it has no special meaning there, so
//! `不想活｜自杀` matches only a text that contains this very `｜`.

use std::ops::Range;
use std::sync::Arc;

use crate::message::msg;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::template::pattern::compile;
use crate::template::unknown::SourceRepair;

/// The maximum number of patterns that are examined in one source.
const MAX_PATTERNS: usize = 200;

/// A longer part of a list is a sentence, not a keyword (in characters).
const MAX_KEYWORD_CHARS: usize = 8;

/// A pattern that probably does not mean what it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullWidthPattern {
    /// The first of its full-width marks, as a byte range of the source.
    pub mark: Range<usize>,
    pub character: char,
    /// Whether it may be a text that is meant literally: words separated by `、` or `，`.
    pub keywords: bool,
    /// The pattern with ASCII marks, if that is a valid pattern.
    pub repair: Option<SourceRepair>,
}

impl FullWidthPattern {
    /// The finding about its mark, which is at `span`; without a fix.
    pub fn diagnostic(&self, file: &Arc<SourceFile>, span: Span) -> Diagnostic {
        const SLUG: &str = "full-width-pattern";
        let mark = self.character;
        if self.keywords {
            let message = msg!("this pattern matches only a text with this `{mark}` between the words");
            let help = "to match any of the words, separate them with `|`";
            return Diagnostic::warning(SLUG, message, file, span).with_help(help);
        }
        let message = msg!("`{mark}` is full-width: in a pattern, it matches only this character itself");
        let help = "write the ASCII character; to match the full-width one, write it in `[ ]`";
        Diagnostic::error(SLUG, message, file, span).with_help(help)
    }
}

/// The patterns with full-width marks in the literal arguments of `regex(…)`. `tags_only`: only those inside `{{ … }}` and
/// `{% … %}`, for a source that is a text.
pub fn full_width_patterns(source: &str, tags_only: bool) -> Vec<FullWidthPattern> {
    let literals = literals(source).take(MAX_PATTERNS);
    let found = literals.filter(|range| !tags_only || in_tag(source.get(..range.start).unwrap_or_default()));
    found.filter_map(|range| full_width_marks(source.get(range.clone())?, range.start)).collect()
}

/// The full-width marks of one pattern, which starts at byte `start` of its source.
pub fn full_width_marks(pattern: &str, start: usize) -> Option<FullWidthPattern> {
    let chars: Vec<(usize, char)> = pattern.char_indices().collect();
    let mut edits = operators(&chars);
    let keywords = edits.is_empty();
    if keywords {
        edits = separators(pattern);
    }
    let edits: Vec<(Range<usize>, String)> =
        edits.into_iter().map(|(range, ascii)| (range.start + start..range.end + start, ascii.to_owned())).collect();
    let mark = edits.first()?.0.clone();
    let character = pattern.get(mark.start - start..)?.chars().next()?;
    let relative = |range: &Range<usize>| range.start - start..range.end - start;
    let after = SourceRepair {
        title: msg!("write ASCII punctuation in the pattern"),
        edits: edits.iter().map(|(range, text)| (relative(range), text.clone())).collect(),
        sure: false,
    };
    let valid = after.apply(pattern).is_some_and(|pattern| compile(&pattern).is_ok());
    let repair = valid.then_some(SourceRepair { edits, sure: !keywords, ..after });
    Some(FullWidthPattern { mark, character, keywords, repair })
}

/// The byte ranges of the literal patterns in a source, without their quotes.
fn literals(source: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    source.match_indices("regex").filter_map(|(at, name)| {
        let rest = source.get(at + name.len()..)?;
        let open = rest.trim_start().strip_prefix('(')?.trim_start();
        let quote = open.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let start = source.len() - open.len() + 1;
        let mut escaped = false;
        let end = source.get(start..)?.find(|c: char| {
            let closes = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        })?;
        Some(start..start + end)
    })
}

/// Whether a text ends inside a tag.
fn in_tag(before: &str) -> bool {
    let last = |marks: [&str; 2]| marks.iter().filter_map(|mark| before.rfind(mark)).max();
    last(["{{", "{%"]).is_some_and(|open| last(["}}", "%}"]).is_none_or(|close| close < open))
}

/// The marks that stand where only an operator makes sense, each with the operator. A question mark or a parenthesis may be part
/// of what a person writes.
fn operators(chars: &[(usize, char)]) -> Vec<(Range<usize>, &'static str)> {
    let at = |index: usize| chars.get(index).map(|(_, c)| *c);
    let before = |index: usize| index.checked_sub(1).and_then(at);
    let groups = groups(chars);
    let operator = |index: usize, mark: char| {
        let (before, after) = (before(index), at(index + 1));
        let repeats = before.is_some_and(|c| matches!(c, '.' | '．' | ')' | '）' | ']' | '］'));
        Some(match mark {
            '｜' => "|",
            '＼' if after.is_some_and(|c| c.is_ascii_alphabetic()) => "\\",
            '＾' if before.is_none_or(|c| matches!(c, '|' | '｜' | '(' | '（')) => "^",
            '＄' if after.is_none_or(|c| matches!(c, '|' | '｜' | ')' | '）')) => "$",
            '＊' if repeats => "*",
            '＋' if repeats => "+",
            '？' if before.is_some_and(|c| matches!(c, '.' | '．' | '*' | '＊' | '+' | '＋')) => "?",
            '．' if after.is_some_and(|c| matches!(c, '*' | '＊' | '+' | '＋')) => ".",
            '（' if groups.contains(&index) => "(",
            '）' if groups.contains(&index) => ")",
            '［' if groups.contains(&index) => "[",
            '］' if groups.contains(&index) => "]",
            _ => return None,
        })
    };
    let mut found = Vec::new();
    // Between `[` and `]` every character stands for itself.
    let mut in_class = false;
    for (index, (byte, mark)) in chars.iter().enumerate() {
        let escaped = before(index) == Some('\\');
        in_class = !escaped && (*mark == '[' || in_class && *mark != ']') || escaped && in_class;
        if !escaped
            && !in_class
            && let Some(ascii) = operator(index, *mark)
        {
            found.push((*byte..*byte + mark.len_utf8(), ascii));
        }
    }
    found
}

/// The indexes of full-width brackets that are surely meant to group: with alternatives inside, or repeated.
fn groups(chars: &[(usize, char)]) -> Vec<usize> {
    let mut open: Vec<(usize, char, bool)> = Vec::new();
    let mut found = Vec::new();
    for (index, (_, c)) in chars.iter().enumerate() {
        match c {
            '（' | '［' => open.push((index, *c, false)),
            '|' | '｜' => open.iter_mut().for_each(|(_, _, alternatives)| *alternatives = true),
            '）' | '］' => {
                let Some((start, opening, alternatives)) = open.pop() else { continue };
                let fits = matches!((opening, c), ('（', '）') | ('［', '］'));
                let next = chars.get(index + 1).map(|(_, c)| *c);
                let repeated = next.is_some_and(|c| matches!(c, '*' | '+' | '{' | '＊' | '＋'));
                if fits && (alternatives && opening == '（' || repeated) {
                    found.extend([start, index]);
                }
            }
            _ => {}
        }
    }
    found
}

/// The separators of a pattern that is a list of keywords: `不想活、自杀`.
fn separators(pattern: &str) -> Vec<(Range<usize>, &'static str)> {
    const SEPARATORS: [char; 2] = ['、', '，'];
    let parts: Vec<&str> = pattern.split(SEPARATORS).map(str::trim).collect();
    let is_keyword = |part: &&str| {
        !part.is_empty() && part.chars().all(char::is_alphanumeric) && part.chars().count() <= MAX_KEYWORD_CHARS
    };
    if parts.len() < 2 || !parts.iter().all(is_keyword) {
        return Vec::new();
    }
    pattern.match_indices(SEPARATORS).map(|(at, mark)| (at..at + mark.len(), "|")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(source: &str, tags_only: bool) -> Option<String> {
        let found = full_width_patterns(source, tags_only);
        found.first()?.repair.as_ref()?.apply(source)
    }

    #[test]
    fn operators_are_replaced() {
        for (pattern, after) in [
            ("不想活｜自杀", "不想活|自杀"),
            ("（不想活｜自杀）了", "(不想活|自杀)了"),
            ("（不想活|自杀）", "(不想活|自杀)"),
            ("（真的）*不想", "(真的)*不想"),
            ("不想．＊活", "不想.*活"),
            ("不想.＊？活", "不想.*?活"),
            ("＾不想", "^不想"),
            ("不想＄", "不想$"),
            ("＼d岁", "\\d岁"),
            ("［一二］+次", "[一二]+次"),
            ("不想活、自杀", "不想活|自杀"),
            ("不想活，自杀，自残", "不想活|自杀|自残"),
        ] {
            let source = format!("last_user_message is regex('{pattern}')");
            let expected = format!("last_user_message is regex('{after}')");
            assert_eq!(repaired(&source, false), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn marks_that_people_write_are_kept() {
        for pattern in [
            "不想活|自杀",
            "真的吗？",
            "（笑）",
            "你好，我想问一下今天可不可以换个时间",
            "怎么办？|怎么办！",
            "甲[｜]乙",
            "a＋b",
            "甲[｜、]乙",
            "",
        ] {
            let source = format!("x is regex(\"{pattern}\")");
            assert_eq!(full_width_patterns(&source, false), [], "{pattern}");
        }
    }

    #[test]
    fn only_patterns_in_tags_of_a_text_count() {
        let text = "写 regex('甲｜乙')。{% if x is regex( '甲｜乙' ) %}好{% endif %}";
        let found = full_width_patterns(text, true);
        assert_eq!(found.len(), 1);
        assert!(found[0].mark.start > text.find("{%").unwrap() && !found[0].keywords);
    }
}
