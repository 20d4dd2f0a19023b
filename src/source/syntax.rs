//! The parser's complaints in words for people who do not program: what is wrong, where it began, what to do.

use std::sync::Arc;

use granit_parser::{ErrorKind, ScanError};

use crate::source::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::lines::Line;
use crate::source::misreading::{self, Misreading};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::MAX_DEPTH;

/// The diagnostic for what ended the reading of a file. `last_node` is where the last node that was read begins.
pub(crate) fn diagnose(file: &Arc<SourceFile>, error: &ScanError, last_node: usize) -> Diagnostic {
    let at = file.clamp(Span::point(error.marker().byte_offset().unwrap_or(last_node))).start;
    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return too_deep(file, Span::point(at));
    }
    let rule = if matches!(error.kind(), ErrorKind::UndeclaredTagHandle) { "unknown-tag" } else { "yaml-syntax" };
    let place = Place { file, line: Line::at(file, at), at };
    match place.explain(error.kind()) {
        Some(found) => found.into_diagnostic(rule, file),
        None => {
            let message = format!("this is not YAML: {}", error.kind());
            Diagnostic::error(rule, message, file, place.character())
                .with_help("look at the indentation, the colons and the quotes here and in the lines above")
        }
    }
}

/// The diagnostic for nesting beyond [`MAX_DEPTH`].
pub(crate) fn too_deep(file: &Arc<SourceFile>, span: Span) -> Diagnostic {
    let message = format!("lists and mappings stand more than {MAX_DEPTH} deep in one another here");
    Diagnostic::error("too-deep", message, file, span).with_help("is a bracket or an indentation repeated by mistake?")
}

/// Where the parser stopped.
struct Place<'f> {
    file: &'f SourceFile,
    line: Line<'f>,
    at: usize,
}

impl<'f> Place<'f> {
    fn explain(&self, kind: &ErrorKind) -> Option<Misreading> {
        use ErrorKind as Kind;
        match kind {
            Kind::TabInBlockIndentation
            | Kind::TabInIndentation
            | Kind::TabInPlainScalar
            | Kind::TabAtBlockScalarStart
            | Kind::TabNotAllowed
            | Kind::InvalidBlockEntryWhitespace
            | Kind::InvalidMappingValueWhitespace => Some(self.tab()),
            Kind::MappingValueNotAllowed => self.misread_line().or_else(|| self.second_colon()),
            Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => self.misread_line().or_else(|| self.no_colon()),
            Kind::ExpectedBlockMappingKey => self.misread_line().or_else(|| self.no_key()),
            Kind::ExpectedBlockSequenceEntry => self.misread_line().or_else(|| self.no_item()),
            Kind::BlockSequenceEntryNotAllowed => Some(self.list_on_key_line()),
            Kind::UnclosedQuotedScalar | Kind::InvalidQuotedScalarIndent | Kind::DocumentIndicatorInQuotedScalar => {
                Some(self.unclosed_quote())
            }
            Kind::InvalidTrailingSingleQuotedScalar => Some(self.after_quote('\'')),
            Kind::InvalidTrailingDoubleQuotedScalar => Some(self.after_quote('"')),
            Kind::UnknownQuotedScalarEscape
            | Kind::InvalidQuotedScalarHexEscape
            | Kind::InvalidLowSurrogateHexEscape
            | Kind::InvalidLowSurrogate
            | Kind::MissingLowSurrogate
            | Kind::UnpairedLowSurrogate
            | Kind::InvalidUnicodeEscape => Some(self.escape()),
            Kind::UnclosedFlowCollection { open } => Some(self.unclosed(*open, self.at)),
            Kind::MismatchedFlowCollectionEnd { open, close } => {
                let message = format!("this `{open}` is closed by `{close}`");
                let help = format!("close it with `{}`", counterpart(*open));
                Some(Misreading::new(message, help, self.character()))
            }
            Kind::MisplacedFlowCollectionEnd => self.special_value().or_else(|| {
                let message = format!("this `{}` closes nothing", self.file.slice(self.character()));
                let help = "remove it, or put the text in quotes if it belongs to one";
                Some(Misreading::new(message, help, self.character()))
            }),
            Kind::InvalidColonPlacement
            | Kind::ExpectedFlowMappingSeparator
            | Kind::ExpectedFlowSequenceSeparator
            | Kind::FlowMappingValueAdjacentCollection
            | Kind::BlockEntryInFlowCollection
            | Kind::InvalidFlowScalarIndent
            | Kind::UnexpectedEofFlowSequence
            | Kind::UnexpectedEofFlowMapping
            | Kind::UnexpectedEofImplicitFlowMapping => Some(self.inside_brackets()),
            Kind::InvalidBlockScalarHeader => Some(self.block_header()),
            Kind::InvalidBlockScalarIndent => Some(Misreading::new(
                "this line is indented less than the text that it belongs to",
                "indent all lines of a text below `|` or `>` by the same number of spaces",
                self.line.content(),
            )),
            Kind::CommentNotSeparated => Some(Misreading::new(
                "a space is missing before this `#`",
                "a comment begins with a space and `#`; a text that holds `#` behind a quote must stand in quotes as a whole",
                self.character(),
            )),
            Kind::BomInsideDocument => Some(Misreading::new(
                "an invisible byte-order mark stands inside the file",
                "delete the line and type it again; files put together with a copy tool often have one",
                self.character(),
            )),
            Kind::UnexpectedCharacter { character } if character.is_control() => {
                let code = u32::from(*character);
                let message = format!("the control character U+{code:04X} may not stand in a YAML file");
                Some(Misreading::new(message, "delete it; it cannot be seen in most editors", self.character()))
            }
            Kind::UnexpectedCharacter { .. }
            | Kind::MissingAnchorOrAliasName
            | Kind::ExpectedTagBang
            | Kind::MissingTagUri
            | Kind::UnclosedVerbatimTag
            | Kind::UndeclaredTagHandle
            | Kind::InvalidTagTerminator
            | Kind::InvalidTagEscape
            | Kind::PlainScalarStartsWithDashFlowIndicator
            | Kind::UnexpectedEofBlockMapping
            | Kind::UnexpectedEofBlockSequence
            | Kind::ExpectedNodeContent => self.special_value(),
            Kind::ExpectedDocumentStart | Kind::InvalidDocumentEnd => self.special_value().or_else(|| {
                let help = "a file holds one mapping, list or text: everything in it must belong to the same one";
                Some(Misreading::new("the document has ended before this line", help, self.line.content()))
            }),
            _ => None,
        }
    }

    /// The character at which the parser stopped.
    fn character(&self) -> Span {
        self.file.clamp(Span::new(self.at, self.at + 1))
    }

    /// Full-width colons and spaces, `key:value`, in this line or the text above that it was taken to belong to.
    fn misread_line(&self) -> Option<Misreading> {
        let indentation = self.line.indentation().end;
        misreading::wide_indentation(self.file, indentation)
            .or_else(|| misreading::colon_of_full_width(self.file, self.line))
            .or_else(|| misreading::colon_without_space(self.file, &self.line))
            .or_else(|| {
                let above = self.line.above().next()?;
                misreading::wide_indentation(self.file, above.indentation().end)
                    .or_else(|| misreading::colon_without_space(self.file, &above))
            })
    }

    /// A value that begins with a character that means something, in this line.
    fn special_value(&self) -> Option<Misreading> {
        let value = self.line.value();
        let first = misreading::needs_quotes(self.file, value);
        first.or_else(|| misreading::needs_quotes(self.file, Span::new(self.at, value.end)))
    }

    fn tab(&self) -> Misreading {
        // The parser stops before or behind the tab, sometimes a line above it.
        let lines = std::iter::once(self.line).chain(self.line.below());
        let indented = lines.filter(|line| !line.text().trim().is_empty()).take(2);
        let found = indented.map(|line| line.indentation()).find(|span| self.file.slice(*span).contains('\t'));
        match found {
            Some(span) => Misreading::new(
                "this line is indented with a tab; YAML allows only spaces",
                "replace each tab by two spaces; most editors can do so for the whole file",
                span,
            ),
            None => {
                Misreading::new("a tab stands where YAML allows only spaces", "replace it by a space", self.character())
            }
        }
    }

    fn second_colon(&self) -> Option<Misreading> {
        let first = self.line.colon();
        if first.is_some_and(|colon| colon < self.at) {
            let value = self.line.value();
            let message = format!("the text after `{}:` holds another `: `", self.line.key());
            let help = if self.file.slice(value).starts_with(['“', '”', '「', '‘', '’', '＂']) {
                "put quotes around the text: `\"` of the English keyboard; full-width quotes are a part of the text to YAML"
            } else {
                "put quotes around the text"
            };
            let quoted = self.file.slice(value).starts_with(['"', '\'']);
            let fix = (!quoted && !value.is_empty()).then(|| misreading::quote(self.file, value));
            return Some(Misreading::new(message, help, value).fixed_by(fix));
        }
        let above = self.line.above().next()?;
        if above.colon().is_none() {
            let word = self.file.slice(above.body());
            let message = "a colon is missing at the end of this line";
            let end = above.body().end;
            let fix = Fix { title: "put a colon behind it".to_owned(), edits: vec![Edit::insert(end, ":")] };
            let help = format!("the line below is indented or written as if `{word}` were a key: write `{word}:`");
            let short = word.chars().count() <= 40 && !word.contains(['"', '\'']);
            let help = if short { help } else { "a key ends with a colon and a space".to_owned() };
            return Some(Misreading::new(message, help, above.body()).fixed_by(short.then_some(fix)));
        }
        if !above.value().is_empty() && self.line.indentation().len() > above.indentation().len() {
            return Some(Misreading::new(
                "this line is indented further than the line above it, which has a value already",
                format!("begin it in the column of `{}`, or take the value after `{}:` away", above.key(), above.key()),
                self.line.content(),
            ));
        }
        None
    }

    fn no_colon(&self) -> Option<Misreading> {
        let content = self.line.content();
        let text = self.file.slice(content);
        if text.starts_with('-') && !text.starts_with("--") {
            let fix = Fix {
                title: "put a space behind the dash".to_owned(),
                edits: vec![Edit::insert(content.start + 1, " ")],
            };
            let help = "an item of a list begins with a dash and a space";
            let message = "a space is missing after this dash";
            let dash = Span::new(content.start, content.start + 1);
            return Some(Misreading::new(message, help, dash).fixed_by(Some(fix)));
        }
        if let Some(found) = self.special_value() {
            return Some(found);
        }
        let message = "this line has no colon, but stands where a `key: value` is expected";
        let help =
            "write `key: value`; if the line belongs to the text above, indent it further than the key of that text";
        Some(Misreading::new(message, help, content))
    }

    fn no_key(&self) -> Option<Misreading> {
        let content = self.line.content();
        if self.at > content.start {
            // Something complete ended in this line, and text goes on behind it.
            if let Some(found) = misreading::needs_quotes(self.file, self.line.value()) {
                return Some(found);
            }
        } else if let Some(above) = self.line.above().next()
            && self.line.indentation().len() > above.indentation().len()
            && let Some(found) = misreading::needs_quotes(self.file, above.value())
        {
            // The same over two lines; quotes around the first alone would not do.
            return Some(Misreading { fix: None, ..found });
        }
        if self.file.slice(content).starts_with("- ") {
            return Some(Misreading::new(
                "an item of a list stands where a `key: value` is expected",
                "begin all items of a list in the same column; a list stands below its key, not beside other keys",
                content,
            ));
        }
        let spaces = self.line.indentation().len();
        let message = format!("this line is indented by {spaces} spaces, which fits none of the lines above it");
        let help = "begin the keys of one mapping in the same column, and what belongs to a key further right";
        let span = if spaces == 0 { content } else { self.line.indentation() };
        Some(Misreading::new(message, help, span))
    }

    fn no_item(&self) -> Option<Misreading> {
        let message = "this line stands in a list, but does not begin with `- `";
        let help = "begin each item with a dash and a space, indent what belongs to an item, or begin a key left of the dashes";
        Some(Misreading::new(message, help, self.line.content()))
    }

    fn list_on_key_line(&self) -> Misreading {
        let value = Span::new(self.at, self.line.value().end);
        let message = "a list cannot begin in the line of its key";
        let help = "begin the list in the next line, indented below the key; if it is a text, put it in quotes";
        Misreading::new(message, help, value)
    }

    fn unclosed_quote(&self) -> Misreading {
        let opens = |line: &Line<'_>| {
            let value = line.value();
            let quote = self.file.slice(value).chars().next().filter(|c| matches!(c, '"' | '\''))?;
            Some((value.start, quote))
        };
        // The parser stops in the first line that cannot belong to the text; the quote stands there or above.
        let here = opens(&self.line).filter(|(start, _)| *start == self.at);
        let found = here.or_else(|| self.line.above().find_map(|line| opens(&line))).or_else(|| opens(&self.line));
        let (start, quote) = found.unwrap_or((self.at, '"'));
        let message = format!("this `{quote}` is never closed");
        let help = if quote == '"' {
            "put a `\"` at the end of the text; inside of it, write `\\\"` for a quote"
        } else {
            "put a `'` at the end of the text; inside of it, write `''` for an apostrophe"
        };
        Misreading::new(message, help, self.file.clamp(Span::new(start, start + 1)))
    }

    fn after_quote(&self, quote: char) -> Misreading {
        let rest = Span::new(self.at, self.line.content().end);
        let message = format!("text goes on behind the closing `{quote}`");
        let help = if quote == '"' {
            "put the quotes around the whole text; inside of them, write `\\\"` for a quote"
        } else {
            "put the quotes around the whole text; inside of them, write `''` for an apostrophe"
        };
        Misreading::new(message, help, rest)
    }

    fn escape(&self) -> Misreading {
        const KNOWN: &str = "0abtnvfre \"/\\N_LP\t\n\r";
        let help = "write `\\\\` for a backslash, or put the text in single quotes, where a backslash is a backslash";
        // The parser gives the start of the scalar: find the escape that it choked on.
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
                    return Misreading::new(format!("`\\{kind}` means nothing in double quotes"), help, span);
                }
            };
            let code = rest.get(offset + 2..offset + 2 + digits).and_then(|code| u32::from_str_radix(code, 16).ok());
            if code.and_then(char::from_u32).is_none() && !code.is_some_and(|code| (0xd800..0xdc00).contains(&code)) {
                let message = format!("`\\{kind}` must be followed by the {digits} hexadecimal digits of a character");
                return Misreading::new(message, help, Span::new(self.at + offset, self.at + offset + 2));
            }
        }
        let message = "an escape in this text names no character";
        Misreading::new(message, help, self.character())
    }

    fn unclosed(&self, open: char, at: usize) -> Misreading {
        let close = counterpart(open);
        let rest = self.file.slice(Span::new(at, self.line.span().end.max(at)));
        let wide = rest.contains(['】', '］', '｝', '，']);
        let message = format!("this `{open}` is never closed");
        let help = if wide {
            format!(
                "close it with a `{close}` of the English keyboard, and use its comma: full-width marks are text to YAML"
            )
        } else {
            format!("close it with `{close}`; if it is a text that begins with `{open}`, put it in quotes")
        };
        Misreading::new(message, help, self.file.clamp(Span::new(at, at + 1)))
    }

    fn inside_brackets(&self) -> Misreading {
        let opens = |line: &Line<'_>| {
            let value = line.value();
            let open = self.file.slice(value).chars().next().filter(|c| matches!(c, '[' | '{'))?;
            Some((value.start, open))
        };
        if let Some((start, _)) = opens(&self.line) {
            if let Some(found) = misreading::template(self.file, start, false) {
                return found;
            }
        } else if let Some((start, open)) = self.line.above().find_map(|line| opens(&line)) {
            return misreading::template(self.file, start, false).unwrap_or_else(|| self.unclosed(open, start));
        }
        let message = "a comma or a closing bracket is missing before this";
        let help = "put commas between the parts of `[…]` and `{…}`, and texts with `:`, `,`, `[`, `{` in quotes";
        Misreading::new(message, help, self.character())
    }

    fn block_header(&self) -> Misreading {
        let value = Span::new(self.at, self.line.content().end);
        let indicator = self.file.slice(self.character());
        let message = format!("nothing may stand behind `{indicator}` in its line");
        let help = format!(
            "begin the text in the next line, indented; if it is a text that begins with `{indicator}`, put it in quotes"
        );
        Misreading::new(message, help, value)
    }
}

fn counterpart(open: char) -> char {
    if open == '[' { ']' } else { '}' }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::source::{render, yaml};

    /// Each `tests/fixtures/yaml/<theme>.txt` holds files, each under a line `##### title`; the reports are a snapshot.
    #[test]
    fn every_mistake_is_reported_in_plain_words() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/yaml");
        let mut themes: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        themes.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        themes.sort();
        assert!(themes.len() >= 8, "the fixtures are missing");
        for path in themes {
            let cases = fs::read_to_string(&path).unwrap();
            let mut out = String::new();
            for case in cases.split("##### ").skip(1) {
                let (title, text) = case.split_once('\n').unwrap();
                let file = Arc::new(SourceFile::new("a.yaml", text));
                let parsed = yaml::parse(&file);
                assert!(parsed.diagnostics.iter().any(Diagnostic::is_error), "no error in {path:?}: {title}");
                out += &format!("##### {title}\n{}", render::human(&parsed.diagnostics, false));
            }
            insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), out);
        }
    }
}
