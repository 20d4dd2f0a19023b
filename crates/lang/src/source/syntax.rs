//! Explains parser errors to people who do not program: what is wrong, where it started, what to do.

use crate::message::library::library;
use crate::message::msg;
use std::sync::Arc;

use granit_parser::{ErrorKind, ScanError};

use crate::source::broken_marks::counterpart;
use crate::source::diagnostic::Diagnostic;
use crate::source::lines::SourceLine;
use crate::source::misreading::{self, Misreading};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::MAX_DEPTH;

/// The longest key that the parser accepts without a `?` before it, in characters (YAML 1.2, section 7.4).
const MAX_KEY_CHARS: usize = 1024;

/// The diagnostic of the error that ended the reading of a file. `last_node` is the start of the last node that was read.
pub(crate) fn diagnose(file: &Arc<SourceFile>, error: &ScanError, last_node: usize) -> Diagnostic {
    let at = file.clamp(Span::point(error.marker().byte_offset().unwrap_or(last_node))).start;
    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return too_deep(file, Span::point(at));
    }
    let rule = if matches!(error.kind(), ErrorKind::UndeclaredTagHandle) { "unknown-tag" } else { "yaml-syntax" };
    let place = SyntaxLocation { file, line: SourceLine::at(file, at), at };
    match place.explain(error.kind()) {
        Some(found) => found.into_diagnostic(rule, file),
        None => {
            let message = msg!("this is not valid YAML: {}", library(&error.kind().to_string()));
            Diagnostic::error(rule, message, file, place.character())
                .with_help("check the indentation, the colons and the quotes here and in the lines above")
        }
    }
}

/// The diagnostic for nesting beyond [`MAX_DEPTH`].
pub(crate) fn too_deep(file: &Arc<SourceFile>, span: Span) -> Diagnostic {
    let message = msg!("lists and mappings are nested more than {MAX_DEPTH} levels deep here");
    Diagnostic::error("too-deep", message, file, span)
        .with_help("is a bracket or an indentation level repeated by mistake?")
}

/// Where the parser stopped.
pub(crate) struct SyntaxLocation<'f> {
    pub(crate) file: &'f SourceFile,
    pub(crate) line: SourceLine<'f>,
    pub(crate) at: usize,
}

impl<'f> SyntaxLocation<'f> {
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
            Kind::SimpleKeyExpected | Kind::InvalidSimpleKey if self.line.key().chars().count() > MAX_KEY_CHARS => {
                let message = msg!("this key is longer than {MAX_KEY_CHARS} characters");
                let help = "put the text in quotes if its colon does not end a key";
                Some(Misreading::new(message, help, self.line.body()))
            }
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
            Kind::UnclosedFlowCollection { open } => {
                let found = self.template().or_else(|| self.bracket_in_comment());
                Some(found.unwrap_or_else(|| self.unclosed(*open, self.at)))
            }
            Kind::MismatchedFlowCollectionEnd { open, close } => self.template().or_else(|| {
                let message = msg!("this `{open}` is closed by `{close}`");
                let help = msg!("close it with `{}`", counterpart(*open));
                Some(Misreading::new(message, help, self.character()))
            }),
            Kind::MisplacedFlowCollectionEnd => {
                self.special_value().filter(|found| found.span.len() > 1).or_else(|| {
                    let message = msg!("this `{}` has no matching opening bracket", self.file.slice(self.character()));
                    let help = "remove it, or put the text in quotes if it is part of a text";
                    Some(Misreading::new(message, help, self.character()))
                })
            }
            Kind::InvalidColonPlacement
            | Kind::ExpectedFlowMappingSeparator
            | Kind::ExpectedFlowSequenceSeparator
            | Kind::FlowMappingValueAdjacentCollection
            | Kind::InvalidFlowScalarIndent
            | Kind::UnexpectedEofFlowSequence
            | Kind::UnexpectedEofFlowMapping
            | Kind::UnexpectedEofImplicitFlowMapping => Some(self.inside_brackets()),
            Kind::InvalidBlockScalarHeader | Kind::ZeroBlockScalarIndent => Some(self.block_header()),
            Kind::BlockEntryInFlowCollection => self.bracket_in_comment().or_else(|| {
                let help = "write `[a, b]` with commas, or a list of lines that start with `- `, without brackets";
                Some(Misreading::new("an item with a dash is not allowed inside brackets", help, self.character()))
            }),
            Kind::InvalidBlockScalarIndent => Some(self.less_indented()),
            Kind::CommentInterceptedScalar => Some(self.commented()),
            Kind::CommentNotSeparated => self.template().or_else(|| {
                let help =
                    "a comment starts with a space and `#`; text that contains `#` after a quote must be quoted as a whole";
                Some(Misreading::new("a space is missing before this `#`", help, self.character()))
            }),
            Kind::BomInsideDocument => Some(Misreading::new(
                "there is an invisible byte-order mark inside the file",
                "delete the line and type it again; files joined with a copy tool often contain one",
                self.character(),
            )),
            Kind::UnexpectedCharacter { character } if character.is_control() => {
                let code = u32::from(*character);
                let message = msg!("the control character U+{code:04X} is not allowed in a YAML file");
                Some(Misreading::new(message, "delete it; it is invisible in most editors", self.character()))
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
                // `%d` on the first line is a directive in YAML, and the parser stops after it.
                let above = self.line.above().next().map(|line| line.content());
                let directive = above.filter(|content| self.file.slice(*content).starts_with('%'));
                if let Some(found) = directive.and_then(|content| misreading::needs_quotes(self.file, content)) {
                    return Some(found);
                }
                if self.line.indentation().is_empty() && self.line.above().any(|line| !line.indentation().is_empty()) {
                    return self.no_key();
                }
                let help = "a file contains one mapping, list or text: everything in it must belong to that one";
                Some(Misreading::new("the document ends before this line", help, self.line.content()))
            }),
            _ => None,
        }
    }

    /// The character where the parser stopped.
    pub(crate) fn character(&self) -> Span {
        self.file.clamp(Span::new(self.at, self.at + 1))
    }

    /// A value on this line that starts with a character that has a meaning in YAML.
    pub(crate) fn special_value(&self) -> Option<Misreading> {
        let value = self.line.value();
        let first = misreading::needs_quotes(self.file, value);
        first.or_else(|| misreading::needs_quotes(self.file, Span::new(self.at, value.end)))
    }

    /// A template at the bracket where the parser stopped, which is the first or the second of the two.
    pub(crate) fn template(&self) -> Option<Misreading> {
        let start = if misreading::is_template(self.file, self.at) { self.at } else { self.at.checked_sub(1)? };
        misreading::template(self.file, start, false)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::source::compose;
    use crate::source::render::human::human;

    /// Each `tests/fixtures/yaml/<theme>.txt` contains files, each below a line `##### title`: themes, with their titles and texts.
    fn fixtures() -> Vec<(String, Vec<(String, String)>)> {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/fixtures/yaml");
        let mut themes: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        themes.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        themes.sort();
        assert!(themes.len() >= 8, "the fixtures are missing");
        let cases = |text: String| {
            let parts = text.split("##### ").skip(1).map(|case| case.split_once('\n').unwrap());
            parts.map(|(title, text)| (title.to_owned(), text.to_owned())).collect()
        };
        let theme = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
        themes.into_iter().map(|path| (theme(&path), cases(fs::read_to_string(path).unwrap()))).collect()
    }

    #[test]
    fn every_mistake_is_reported_in_plain_words() {
        for (theme, cases) in fixtures() {
            let mut out = String::new();
            for (title, text) in cases {
                let parsed = compose::parse(&Arc::new(SourceFile::new("a.yaml", text)));
                assert!(parsed.diagnostics.iter().any(Diagnostic::is_error), "no error in {theme}: {title}");
                out += &format!("##### {title}\n{}", human(&parsed.diagnostics, false));
            }
            insta::assert_snapshot!(theme, out);
        }
    }

    #[test]
    fn every_fix_resolves_its_error() {
        let mut fixed = 0;
        for (theme, cases) in fixtures() {
            for (title, text) in cases {
                let found = compose::parse(&Arc::new(SourceFile::new("a.yaml", text.as_str()))).diagnostics;
                for diagnostic in &found {
                    let Some(fix) = diagnostic.fixes.first() else { continue };
                    let mut edits = fix.edits.clone();
                    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
                    let mut after = text.clone();
                    edits.iter().for_each(|edit| after.replace_range(edit.span.range(), &edit.text));
                    let remaining = compose::parse(&Arc::new(SourceFile::new("a.yaml", after.as_str()))).diagnostics;
                    let near = |other: &Diagnostic| other.span.start.abs_diff(diagnostic.span.start) < 3;
                    assert!(!remaining.iter().any(near), "{theme}: {title}\n{after}\n{remaining:?}");
                    fixed += 1;
                }
            }
        }
        assert!(fixed >= 30, "{fixed}");
    }
}
