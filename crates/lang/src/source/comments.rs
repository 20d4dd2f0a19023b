//! The comments of a YAML file, as the parser sees them: a `#` in a quoted, plain or block scalar is text.

use granit_parser::{Event, Parser};

use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::MAX_DEPTH;

/// The parts of a file that are not in the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// The spans of comments, each with its `#` and without the line break, in file order.
    pub comments: Vec<Span>,
    /// Texts over several lines, including those that are not in the tree, in file order.
    pub texts: Vec<LongText>,
}

/// A scalar over several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongText {
    /// The line on which it starts: that of the opening quote, of the first word, or of `|` and `>`.
    pub line: usize,
    /// Its first line of text.
    pub first: usize,
    pub last: usize,
}

/// Reads the comments up to the end of the first document, or to the first syntax error.
pub fn comments(file: &SourceFile) -> Comments {
    let mut options = granit_parser::options! {
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(true);
    // The text is in memory and bounded, and so is the number of its comments.
    options.max_buffered_comment_events = usize::MAX;
    let mut found = Comments::default();
    for event in Parser::new_from_str_with_options(file.text(), options) {
        let Ok((event, span)) = event else { break };
        let Some(range) = span.byte_range() else { continue };
        let span = file.clamp(Span::new(range.start, range.end));
        match event {
            Event::Comment(..) => found.comments.push(span),
            Event::Scalar(_, style, ..) => found.texts.extend(long_text(file, style, span)),
            Event::DocumentEnd => break,
            _ => {}
        }
    }
    // The parser reports comments above a node after it has looked ahead.
    found.comments.sort_unstable();
    found.comments.dedup();
    found
}

fn long_text(file: &SourceFile, style: granit_parser::ScalarStyle, span: Span) -> Option<LongText> {
    let written = file.slice(span);
    let first = file.line(span.start + (written.len() - written.trim_start().len()));
    let last = file.line(span.start + written.trim_end().len().saturating_sub(1));
    let block = matches!(style, granit_parser::ScalarStyle::Literal | granit_parser::ScalarStyle::Folded);
    if !block {
        return (first < last).then_some(LongText { line: first, first, last });
    }
    // The parser's span of a block scalar starts below its header; there may be empty lines between them.
    let header =
        (1..first).rev().find(|line| file.line_span(*line).is_some_and(|span| !file.slice(span).trim().is_empty()));
    header.map(|line| LongText { line, first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<(usize, usize, usize)>) {
        let file = SourceFile::new("a.yaml", text);
        let found = comments(&file);
        let comments = found.comments.iter().map(|span| file.slice(*span).to_owned()).collect();
        (comments, found.texts.iter().map(|text| (text.line, text.first, text.last)).collect())
    }

    #[test]
    fn only_comments_of_the_parser_are_found() {
        let text = "\u{feff}# 一\na: 'x # no' # 二\nb: \"x\n  # no\" #三\nc: d#no # 四\n\"e # no\": | # 五\n  text # no\n  # no\n# 六\nf: [1, # 七\n  2] #\ng: {a: b} # 八\n'a': 1\na: 'twice # no'\n? [k] # 九\n: 'v # no'\n<<: x # 十\nlast: x # 终";
        let expected = ["# 一", "# 二", "#三", "# 四", "# 五", "# 六", "# 七", "#", "# 八", "# 九", "# 十", "# 终"];
        assert_eq!(read(text).0, expected);
    }

    #[test]
    fn comments_are_read_up_to_the_first_syntax_error() {
        assert_eq!(read("a: b # 一\nc: ]\nd: e # no\n").0, ["# 一"]);
        assert_eq!(read("a: b # 一\n---\nd: e # no\n").0, ["# 一"]);
        assert_eq!(read("").0, Vec::<String>::new());
        assert_eq!(read(&"# x\n".repeat(5_000)).0.len(), 5_000);
        assert_eq!(read(&format!("a:\n{}  b: c\n", "  # x\n".repeat(5_000))).0.len(), 5_000);
    }

    #[test]
    fn texts_over_several_lines_have_the_line_where_they_start() {
        let text = "a: |\n  x\n  y\n\nb: >- # c\n\n  x\nc: \"x\n  y\"\nd: x\n  y\ne: short\nf:\n  |\n  x\n- no";
        assert_eq!(read(text).1, [(1, 2, 3), (5, 7, 7), (8, 8, 9), (10, 10, 11), (14, 15, 15)]);
    }
}
