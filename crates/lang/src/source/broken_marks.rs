//! Explains errors in quotes, escapes, brackets and block headers.

use crate::message::msg;
use crate::source::full_width;
use crate::source::lines::SourceLine;
use crate::source::misreading::{self, Misreading};
use crate::source::span::Span;
use crate::source::syntax::SyntaxLocation;

/// How far to search for the closing bracket of a list or mapping, in bytes.
const MAX_BRACKET_BYTES: usize = 16 * 1024;

impl SyntaxLocation<'_> {
    pub(crate) fn unclosed_quote(&self) -> Misreading {
        let opens = |line: &SourceLine<'_>| {
            let value = line.value();
            let quote = self.file.slice(value).chars().next().filter(|c| matches!(c, '"' | '\''))?;
            Some((value.start, quote))
        };
        // The parser stops at the first line that cannot belong to the text; the quote is on this line or above.
        let in_line = opens(&self.line).filter(|(start, _)| *start == self.at);
        let found = in_line.or_else(|| self.line.above().find_map(|line| opens(&line))).or_else(|| opens(&self.line));
        let (start, quote) = found.unwrap_or((self.at, '"'));
        let message = msg!("this `{quote}` is never closed");
        let help = if quote == '"' {
            "put a `\"` at the end of the text; inside it, write `\\\"` for a quote"
        } else {
            "put a `'` at the end of the text; inside it, write `''` for an apostrophe"
        };
        Misreading::new(message, help, self.file.clamp(Span::new(start, start + 1)))
    }

    pub(crate) fn after_quote(&self, quote: char) -> Misreading {
        let rest = Span::new(self.at, self.line.content().end);
        let message = msg!("there is more text after the closing `{quote}`");
        let help = if quote == '"' {
            "put quotes around the whole text; inside them, write `\\\"` for a quote"
        } else {
            "put quotes around the whole text; inside them, write `''` for an apostrophe"
        };
        Misreading::new(message, help, rest)
    }

    pub(crate) fn escape(&self) -> Misreading {
        const KNOWN: &str = "0abtnvfre \"/\\N_LP\t\n\r";
        let help =
            "write `\\\\` for a backslash, or put the text in single quotes, where a backslash has no special meaning";
        // The parser reports the start of the scalar: find the invalid escape.
        let rest = self.file.text().get(self.at..).unwrap_or("");
        let mut characters = rest.char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            if character != '\\' {
                continue;
            }
            let Some((_, kind)) = characters.next() else { break };
            let digits = match kind {
                'x' => 2,
                'u' => 4,
                'U' => 8,
                _ if KNOWN.contains(kind) => continue,
                _ => {
                    let span = Span::new(self.at + offset, self.at + offset + 1 + kind.len_utf8());
                    return Misreading::new(msg!("`\\{kind}` is not a valid escape in double quotes"), help, span);
                }
            };
            let code = rest.get(offset + 2..offset + 2 + digits).and_then(|code| u32::from_str_radix(code, 16).ok());
            if code.and_then(char::from_u32).is_none() && !code.is_some_and(|code| (0xd800..0xdc00).contains(&code)) {
                let message = msg!("`\\{kind}` must be followed by the {digits} hexadecimal digits of a character");
                return Misreading::new(message, help, Span::new(self.at + offset, self.at + offset + 2));
            }
        }
        let message = "an escape in this text does not represent any character";
        Misreading::new(message, help, self.character())
    }

    pub(crate) fn unclosed(&self, open: char, at: usize) -> Misreading {
        let close = counterpart(open);
        let rest = self.file.slice(Span::new(at, self.line.span().end.max(at)));
        let wide = rest.contains(['】', '］', '｝', '，']);
        let message = msg!("this `{open}` is never closed");
        let help = if wide {
            msg!("close it with an ASCII `{close}`, and use ASCII commas: YAML treats full-width marks as text")
        } else {
            msg!("close it with `{close}`; if it is text that starts with `{open}`, put it in quotes")
        };
        Misreading::new(message, help, self.file.clamp(Span::new(at, at + 1)))
    }

    /// A comment in this line or in the one above that contains the brackets which the line lacks: `{ content: a # b }`.
    pub(crate) fn bracket_in_comment(&self) -> Option<Misreading> {
        // The parser may stop only at the end of the file.
        let lines_above = if self.line.content().is_empty() { 2 } else { 1 };
        std::iter::once(self.line).chain(self.line.above().take(lines_above)).find_map(|line| {
            let (comment, open) = comment_after_open_bracket(line).filter(|_| !self.is_in_text(line))?;
            let close = counterpart(open);
            let message = msg!("` #` starts a comment, and the `{close}` after it is part of the comment, so that the `{open}` before it is not closed");
            let help = msg!("put quotes around the text with the `#`; move a comment after the `{close}`");
            Some(Misreading::new(message, help, comment))
        })
    }

    /// Whether the line may belong to a text of several lines, so that its brackets are text.
    fn is_in_text(&self, line: SourceLine<'_>) -> bool {
        let mut column = line.indentation().len();
        let above = self.file.text().get(..line.span().start).unwrap_or_default();
        let mut above = above.lines().rev();
        line.in_text()
            || above.any(|text| {
                let content = text.trim_start_matches([' ', '\t']);
                let indentation = text.len() - content.len();
                if content.is_empty() || content.starts_with('#') || indentation >= column {
                    return false;
                }
                column = indentation;
                starts_block_text(content)
            })
    }

    pub(crate) fn inside_brackets(&self) -> Misreading {
        let opens = |line: &SourceLine<'_>| {
            let value = line.value();
            let open = self.file.slice(value).chars().next().filter(|c| matches!(c, '[' | '{'))?;
            Some((value.start, open))
        };
        if let Some((start, _)) = opens(&self.line) {
            if let Some(found) = misreading::template(self.file, start, false) {
                return found;
            }
        } else if let Some((start, open)) = self.line.above().find_map(|line| opens(&line)) {
            if let Some(found) = misreading::template(self.file, start, false) {
                return found;
            }
            if !self.is_closed(start) {
                return self.bracket_in_comment().unwrap_or_else(|| self.unclosed(open, start));
            }
        }
        if let Some(found) = full_width::comma(self.file, self.line).or_else(|| self.bracket_in_comment()) {
            return found;
        }
        let message = "a comma or a closing bracket is missing before this character";
        let help = "separate the parts of `[…]` and `{…}` with commas, and put text that contains `:`, `,`, `[` or `{` in quotes";
        Misreading::new(message, help, self.character())
    }

    /// Whether the bracket at `start` is closed, judging by the brackets only.
    fn is_closed(&self, start: usize) -> bool {
        let text = self.file.text();
        let end = text.floor_char_boundary(start.saturating_add(MAX_BRACKET_BYTES).min(text.len()));
        let mut depth = 0_usize;
        for character in self.file.slice(Span::new(start, end)).chars() {
            match character {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                return true;
            }
        }
        false
    }

    pub(crate) fn block_header(&self) -> Misreading {
        let value = Span::new(self.at, self.line.content().end);
        let indicator = self.file.slice(self.character());
        let message = msg!("nothing is allowed after `{indicator}` on the same line");
        let help = msg!(
            "start the text on the next line, indented; if it is text that starts with `{indicator}`, put it in quotes"
        );
        Misreading::new(message, help, value)
    }
}

pub(crate) fn counterpart(open: char) -> char {
    if open == '[' { ']' } else { '}' }
}

/// Whether the line ends with the header of a block text: `|`, `>-`, …
fn starts_block_text(line: &str) -> bool {
    let value = line.split(" #").next().unwrap_or_default().trim_end();
    value.trim_end_matches(|c: char| matches!(c, '+' | '-') || c.is_ascii_digit()).ends_with(['|', '>'])
}

/// The comment of a line whose brackets are closed only at the end of the comment, and the last of the open brackets.
fn comment_after_open_bracket(line: SourceLine<'_>) -> Option<(Span, char)> {
    let text = line.text();
    let (mut open, mut quote, mut before) = (Vec::new(), None, ' ');
    let mut comment = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(mark), _) => quote = Some(mark).filter(|mark| *mark != character),
            (None, '"' | '\'') if matches!(before, ' ' | '\t' | '{' | '[' | ',') => quote = Some(character),
            (None, '{' | '[') => open.push(character),
            (None, '}' | ']') => drop(open.pop()),
            (None, '#') if matches!(before, ' ' | '\t') => {
                comment = Some(at);
                break;
            }
            _ => {}
        }
        before = character;
    }
    let (comment, last) = (comment?, *open.last()?);
    let after = text.get(comment..)?.trim_end();
    // After a comma or an opening bracket, a comment is meant as one.
    if text.get(..comment)?.trim_end().ends_with([',', '{', '[']) {
        return None;
    }
    for character in after.chars() {
        if matches!(character, '{' | '[') {
            open.push(character);
        } else if matches!(character, '}' | ']') && open.pop().map(counterpart) != Some(character) {
            return None;
        }
    }
    let is_closed = open.is_empty() && after.trim_end_matches([',', ' ']).ends_with(['}', ']']);
    let start = line.span().start + comment;
    is_closed.then(|| (Span::new(start, start + after.len()), last))
}
