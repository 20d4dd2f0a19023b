//! One text, mended: its sure fixes are made, and those of what then comes to light, until none is left. After each pass it is
//! looked at anew, and a change after which more would be wrong than before is not made.

use std::collections::HashSet;
use std::sync::Arc;

use crate::engine::mend::rules::{OLDEST_NESTING, Rules};
use crate::script::read::root_key;
use crate::source::diagnostic::{Diagnostic, Edit, Fix, order};
use crate::source::edits::{apart, apply};
use crate::source::text::SourceFile;
use crate::source::yaml::parse;

/// One mistake of the syntax may hide the next: so many are mended one after the other.
const MOST_PASSES: usize = 100;

/// When fixes do not go together, so many of them are tried alone; each takes a check of the text.
const MOST_TRIED_ALONE: usize = 200;

/// A text with what is wrong with it.
#[derive(Clone, Debug)]
pub struct Look {
    /// The text.
    pub file: Arc<SourceFile>,
    /// What is wrong with it.
    pub findings: Vec<Diagnostic>,
    /// How many mistakes keep it from being read at all. While there is one, nothing can be said of the rest.
    pub unread: usize,
    /// How many bytes of it stand behind the first of them.
    behind: usize,
}

impl Look {
    /// At a document.
    pub fn of_document(file: &Arc<SourceFile>, findings: Vec<Diagnostic>) -> Self {
        let parsed = parse(file);
        let broken = || parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let strange = parsed.root.as_deref().is_none_or(|root| root_key(root).is_none());
        let oldest = findings.iter().filter(|diagnostic| diagnostic.rule == OLDEST_NESTING).count();
        let first = broken().map(|diagnostic| diagnostic.span.start).min();
        let behind = first.map_or(0, |first| file.text().len().saturating_sub(first));
        Self { file: Arc::clone(file), findings, unread: broken().count() + usize::from(strange) + oldest, behind }
    }

    /// At a template, which is always read.
    pub fn of_template(file: &Arc<SourceFile>, findings: Vec<Diagnostic>) -> Self {
        Self { file: Arc::clone(file), findings, unread: 0, behind: 0 }
    }

    fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_error()).count()
    }

    fn of_rule(&self, rule: &str) -> usize {
        self.findings.iter().filter(|finding| finding.rule == rule).count()
    }

    /// Whether the fixes of these rules led from `before` to here without making anything worse, and settled something.
    fn improves(&self, before: &Self, rules: &[&'static str]) -> bool {
        if before.unread > 0 && (self.unread < before.unread || self.behind < before.behind) {
            // More of it can be read than before, and what was hidden cannot be compared.
            return true;
        }
        let errors = self.errors() < before.errors();
        let settled = |rule: &&'static str| errors || self.of_rule(rule) < before.of_rule(rule);
        self.unread <= before.unread && self.errors() <= before.errors() && rules.iter().all(settled)
    }
}

/// A mended text.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The last look at it: what is left.
    pub look: Look,
    /// The rules of the findings that were mended, in the order in which that was done; none when the text is as it was.
    pub made: Vec<&'static str>,
}

/// Mends the text of `first`, whose findings are known; `look` says what is wrong with another one in its place.
pub fn passes(first: Look, rules: Rules, look: impl Fn(&Arc<SourceFile>) -> Look) -> Passed {
    let mut now = first;
    let mut made = Vec::new();
    let mut refused = HashSet::new();
    let mut seen = HashSet::from([now.file.text().to_owned()]);
    let mut alone = MOST_TRIED_ALONE;
    for _ in 0..MOST_PASSES {
        let chosen = chosen(&now, rules, &refused);
        if chosen.is_empty() {
            break;
        }
        let tried = |fixes: &[Chosen<'_>]| attempt(&now, fixes, &look).filter(|next| !seen.contains(next.file.text()));
        let (next, done) = match tried(&chosen) {
            Some(next) => (Some(next), chosen),
            None => {
                let mut good = Vec::new();
                for fix in chosen {
                    if alone > 0 && tried(std::slice::from_ref(&fix)).is_some() {
                        good.push(fix);
                    } else {
                        refused.insert(fix.key(&now.file));
                    }
                    alone = alone.saturating_sub(1);
                }
                match tried(&good) {
                    Some(next) => (Some(next), good),
                    // Each alone is good, and all of them are not: the first then, and the others are looked at anew.
                    None => {
                        good.truncate(1);
                        (tried(&good), good)
                    }
                }
            }
        };
        match next {
            Some(next) => {
                made.extend(done.iter().map(|fix| fix.rule));
                seen.insert(next.file.text().to_owned());
                now = next;
            }
            None if done.is_empty() => {}
            None => break,
        }
    }
    Passed { look: now, made }
}

/// A fix that is to be made.
#[derive(Clone)]
struct Chosen<'l> {
    rule: &'static str,
    fix: &'l Fix,
    line: usize,
}

/// By what a fix is known again after other places of the text have changed.
type Key = (&'static str, String, String);

impl Chosen<'_> {
    fn key(&self, file: &SourceFile) -> Key {
        let line = file.line_span(self.line).map(|span| file.slice(span).to_owned()).unwrap_or_default();
        (self.rule, self.fix.title.clone(), line)
    }
}

/// The best sure fix of each finding, as far as they do not touch one another; what is left out has its turn in the next pass.
fn chosen<'l>(look: &'l Look, rules: Rules, refused: &HashSet<Key>) -> Vec<Chosen<'l>> {
    let file = &look.file;
    let same = |other: &SourceFile| other.name() == file.name() && other.text() == file.text();
    let own = |finding: &&Diagnostic| Arc::ptr_eq(&finding.file, file) || same(&finding.file);
    let mut findings: Vec<&Diagnostic> =
        look.findings.iter().filter(own).filter(|finding| rules.have(finding.rule)).collect();
    findings.sort_by(|a, b| order(a, b));
    let mut chosen: Vec<Chosen<'l>> = Vec::new();
    for finding in findings {
        let Some(fix) = finding.fixes.iter().find(|fix| fix.sure && !fix.edits.is_empty()) else { continue };
        let fix = Chosen { rule: finding.rule, fix, line: file.line(finding.span.start) };
        let apart = chosen.iter().all(|other| apart(&other.fix.edits, &fix.fix.edits));
        if apart && !refused.contains(&fix.key(file)) {
            chosen.push(fix);
        }
    }
    chosen
}

/// The text with these fixes, if it is better for them.
fn attempt(now: &Look, fixes: &[Chosen<'_>], look: impl Fn(&Arc<SourceFile>) -> Look) -> Option<Look> {
    let edits: Vec<Edit> = fixes.iter().flat_map(|fix| fix.fix.edits.iter().cloned()).collect();
    let text = apply(now.file.text(), &edits).ok().filter(|text| !edits.is_empty() && text != now.file.text())?;
    let next = look(&Arc::new(SourceFile::new(now.file.name(), text)));
    let rules: Vec<&'static str> = fixes.iter().map(|fix| fix.rule).collect();
    next.improves(now, &rules).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::span::Span;

    /// A language in which every `x` is an error whose fix writes `y`, every `q` one whose fix adds another `x`, every `w` a
    /// warning whose fix takes it out, unless it is the last one, and `z` without any `w` an error.
    fn look(file: &Arc<SourceFile>) -> Look {
        let text = file.text();
        let findings = text.char_indices().filter_map(|(at, character)| {
            let span = Span::new(at, at + 1);
            Some(match character {
                'x' => Diagnostic::error("ex", "", file, span).with_sure_replacement(Some("y")),
                'q' => Diagnostic::error("queue", "", file, span).with_sure_replacement(Some("qx")),
                'w' if text.matches('w').count() > 1 => {
                    Diagnostic::warning("double", "", file, span).with_sure_replacement(Some(""))
                }
                'z' if !text.contains('w') => Diagnostic::error("zero", "", file, span),
                'u' => Diagnostic::error("unsure", "", file, span).with_replacement(Some("y")),
                _ => return None,
            })
        });
        Look::of_template(file, findings.collect())
    }

    fn mended(text: &str, rules: Rules) -> (String, usize) {
        let passed = passes(look(&Arc::new(SourceFile::new("a", text))), rules, look);
        (passed.look.file.text().to_owned(), passed.made.len())
    }

    #[test]
    fn sure_fixes_are_made_until_none_is_left() {
        for (text, after, made) in [
            ("a x b x", "a y b y", 2),
            ("u x", "u y", 1),
            ("", "", 0),
            // Two that touch take a pass each.
            ("xx", "yy", 2),
            // What would make it worse is left, and keeps the others from nothing.
            ("q x", "q y", 1),
            ("q x q", "q y q", 1),
            // Both alone are good, and not together.
            ("w z w", " z w", 1),
        ] {
            assert_eq!(mended(text, Rules::All), (after.to_owned(), made), "{text}");
            assert_eq!(mended(after, Rules::All), (after.to_owned(), 0), "a second time changes nothing: {after}");
        }
        assert_eq!(mended("x", Rules::OlderForms), ("x".to_owned(), 0), "no older form");
    }
}
