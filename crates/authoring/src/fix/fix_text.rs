//! Fixes one text: applies its safe fixes repeatedly until none is left. The text is checked again after each pass, and
//! a change that increases the number of errors is rejected.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::fix::rules::{OLDEST_NESTING, Rules};
use bcc_lang::script::legacy::engine::SLUG;
use bcc_lang::script::read::root_key;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix, order};
use bcc_lang::source::edits::apply;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// One syntax error may hide the next, so this many passes are allowed.
const MAX_PASSES: usize = 100;

/// If fixes conflict, the compatible ones are found by bisection; each try checks the text once.
const MAX_TRIES: usize = 400;

/// The rule of errors that prevent a template from being read.
const TEMPLATE_SYNTAX: &str = "template-syntax";

#[derive(Clone, Debug)]
pub(crate) struct PassInput {
    pub file: Arc<SourceFile>,
    pub findings: Vec<Diagnostic>,
    /// The number of errors that prevent the text from being read. While there are any, other findings are unknown.
    pub blocking_errors: usize,
    /// The number of bytes after the first of these errors.
    bytes_after_error: usize,
    readable: bool,
    /// Whether the text has the oldest nesting. No other findings are reported for such a text.
    oldest_nesting: bool,
}

impl PassInput {
    pub(crate) fn of_document(file: &Arc<SourceFile>, findings: Vec<Diagnostic>) -> Self {
        let parsed = parse(file);
        let broken = || parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let has_no_root_key = parsed.root.as_deref().is_none_or(|root| root_key(root).is_none());
        let oldest_nesting = findings.iter().filter(|diagnostic| diagnostic.rule == OLDEST_NESTING).count();
        let first = broken().map(|diagnostic| diagnostic.span.start).min();
        let bytes_after_error = first.map_or(0, |first| file.text().len().saturating_sub(first));
        Self {
            file: Arc::clone(file),
            blocking_errors: broken().count() + usize::from(has_no_root_key) + oldest_nesting,
            bytes_after_error,
            // Of a document that is one text, nothing else is known.
            readable: parsed.root.is_some_and(|root| root.as_scalar().is_none()),
            oldest_nesting: oldest_nesting > 0,
            findings,
        }
    }

    /// A template. While it has syntax errors, its names are unknown.
    pub(crate) fn of_template(file: &Arc<SourceFile>, findings: Vec<Diagnostic>) -> Self {
        // A value that an older engine wrote as a tag is a syntax error here.
        let is_tag = |span: Span| file.text().get(span.start..span.end).is_some_and(|text| text.starts_with("{%"));
        let is_syntax = |finding: &&Diagnostic| {
            finding.is_error() && (finding.rule == TEMPLATE_SYNTAX || finding.rule == SLUG && is_tag(finding.span))
        };
        let blocking_errors = findings.iter().filter(is_syntax).count();
        // Only the first syntax error is known. A fix that moves it towards the end may have uncovered the next one.
        let first = findings.iter().filter(is_syntax).map(|finding| finding.span.start).min();
        Self {
            file: Arc::clone(file),
            blocking_errors,
            bytes_after_error: first.map_or(0, |first| file.text().len().saturating_sub(first)),
            readable: blocking_errors == 0,
            oldest_nesting: false,
            findings,
        }
    }

    fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_error()).count()
    }

    fn of_rule(&self, rule: &str) -> usize {
        self.findings.iter().filter(|finding| finding.rule == rule).count()
    }

    /// Whether applying the fixes of these rules to `before` made nothing worse and resolved something.
    fn improves(&self, before: &Self, rules: &[&'static str]) -> bool {
        let further = !before.readable && self.bytes_after_error < before.bytes_after_error;
        if before.blocking_errors > 0 && (self.blocking_errors < before.blocking_errors || further) {
            // More of the text can be read than before. Newly detected errors may be fixed next;
            // [`PassInput::is_acceptable`] compares the results then.
            return true;
        }
        let errors = self.errors() < before.errors();
        let resolved = |rule: &&'static str| errors || self.of_rule(rule) < before.of_rule(rule);
        self.blocking_errors <= before.blocking_errors && self.errors() <= before.errors() && rules.iter().all(resolved)
    }

    /// Whether the text may be kept as a replacement of `before`. `errors`: whether an error was fixed in between.
    fn is_acceptable(&self, before: &Self, errors: bool) -> bool {
        if !before.readable {
            return self.readable || self.errors() < before.errors();
        }
        // For the oldest nesting nothing else is reported: other errors are not new.
        let comparison = self.errors().cmp(&before.errors());
        (before.oldest_nesting && !self.oldest_nesting) || comparison.is_lt() || (comparison.is_eq() && !errors)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FixedText {
    /// The last state of the text, with the remaining findings.
    pub input: PassInput,
    /// The rules of the fixed findings, in the order of the fixes; empty if the text is unchanged.
    pub fixed_rules: Vec<&'static str>,
    /// Whether some fixes were not tried, because too many others conflict.
    pub incomplete: bool,
    /// The findings whose safe fixes are left out, because the text would have more errors with them.
    pub rejected: Vec<Diagnostic>,
}

#[derive(Clone)]
struct State {
    input: PassInput,
    made: Vec<&'static str>,
}

/// Fixes the text of `first`, whose findings are known. `examine` checks a replacement text.
pub(crate) fn apply_fixes(
    first: PassInput,
    rules: Rules,
    examine: impl Fn(&Arc<SourceFile>) -> PassInput,
) -> FixedText {
    // The last acceptable state, and the current state derived from it.
    let mut accepted = State { input: first, made: Vec::new() };
    let mut current = accepted.clone();
    let mut first_batch: Vec<Key> = Vec::new();
    let mut errors = false;
    let mut rejected = HashSet::new();
    let mut seen = HashSet::from([current.input.file.text().to_owned()]);
    let mut tries = MAX_TRIES;
    for _ in 0..MAX_PASSES {
        let candidates = candidates(&current.input, rules, &rejected);
        let try_fixes = |fixes: &[Candidate<'_>]| {
            attempt(&current.input, fixes, &examine).filter(|next| !seen.contains(next.file.text()))
        };
        let (next, applied) = match try_fixes(&candidates) {
            Some(next) => (Some(next), candidates),
            None => {
                let mut good = Vec::new();
                let mut bad = Vec::new();
                let mut counted = |fixes: &[Candidate<'_>]| {
                    tries = tries.checked_sub(1)?;
                    try_fixes(fixes)
                };
                bisect(candidates, &mut counted, &mut good, &mut bad);
                rejected.extend(bad);
                match try_fixes(&good) {
                    Some(next) => (Some(next), good),
                    // The fixes work individually but not together: apply one, then check the others again.
                    None => {
                        good.truncate(1);
                        (try_fixes(&good), good)
                    }
                }
            }
        };
        let Some(next) = next else {
            // Fixes that overlapped a rejected one can be tried now.
            if tries > 0 && has_candidates(&current.input, rules, &rejected) {
                continue;
            }
            if current.input.file.text() == accepted.input.file.text() || tries == 0 {
                break;
            }
            // The result is worse than the start: revert, and reject the fixes that started the sequence.
            current = accepted.clone();
            rejected = first_batch.drain(..).collect();
            errors = false;
            continue;
        };
        let of_errors = |fix: &&Candidate<'_>| fix.error;
        if first_batch.is_empty() {
            first_batch = applied.iter().filter(of_errors).map(Candidate::key).collect();
        }
        errors |= applied.iter().any(|fix| fix.error);
        let mut made = current.made.clone();
        made.extend(applied.iter().map(|fix| fix.rule));
        seen.insert(next.file.text().to_owned());
        rejected.clear();
        current = State { input: next, made };
        if current.input.is_acceptable(&accepted.input, errors) {
            accepted = current.clone();
            first_batch.clear();
            errors = false;
        }
    }
    let incomplete = tries == 0;
    let rejected = if incomplete { Vec::new() } else { rejected_fixes(&accepted.input, rules) };
    FixedText { input: accepted.input, fixed_rules: accepted.made, incomplete, rejected }
}

/// The findings that still have safe fixes.
fn rejected_fixes(input: &PassInput, rules: Rules) -> Vec<Diagnostic> {
    let keys: HashSet<Key> = candidates(input, rules, &HashSet::new()).iter().map(Candidate::key).collect();
    let is_rejected = |finding: &&Diagnostic| keys.contains(&(finding.rule, finding.span));
    input.findings.iter().filter(is_rejected).cloned().collect()
}

fn has_candidates(input: &PassInput, rules: Rules, rejected: &HashSet<Key>) -> bool {
    !candidates(input, rules, rejected).is_empty()
}

/// Finds the fixes that work, in a set that does not work as a whole.
fn bisect<'l>(
    mut fixes: Vec<Candidate<'l>>,
    try_fixes: &mut impl FnMut(&[Candidate<'_>]) -> Option<PassInput>,
    good: &mut Vec<Candidate<'l>>,
    bad: &mut Vec<Key>,
) {
    if fixes.len() <= 1 {
        bad.extend(fixes.iter().map(Candidate::key));
        return;
    }
    let second = fixes.split_off(fixes.len() / 2);
    for half in [fixes, second] {
        if try_fixes(&half).is_some() {
            good.extend(half);
        } else {
            bisect(half, try_fixes, good, bad);
        }
    }
}

#[derive(Clone)]
struct Candidate<'l> {
    rule: &'static str,
    error: bool,
    fix: &'l Fix,
    place: Span,
}

/// Identifies a fix within the same text.
type Key = (&'static str, Span);

impl Candidate<'_> {
    fn key(&self) -> Key {
        (self.rule, self.place)
    }
}

/// The preferred safe fix of each finding, without overlaps; skipped fixes are tried in the next pass.
fn candidates<'l>(input: &'l PassInput, rules: Rules, rejected: &HashSet<Key>) -> Vec<Candidate<'l>> {
    let file = &input.file;
    let same = |other: &SourceFile| other.name() == file.name() && other.text() == file.text();
    let own = |finding: &&Diagnostic| Arc::ptr_eq(&finding.file, file) || same(&finding.file);
    let mut findings: Vec<&Diagnostic> =
        input.findings.iter().filter(own).filter(|finding| rules.includes(finding.rule)).collect();
    findings.sort_by(|a, b| order(a, b));
    let mut candidates: Vec<Candidate<'l>> = Vec::new();
    // The start and end of each edit that was selected. They do not overlap, so the last one before a position is
    // enough to check.
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    for finding in findings {
        let Some(fix) = finding.fixes.iter().find(|fix| fix.sure && !fix.edits.is_empty()) else { continue };
        let fix = Candidate { rule: finding.rule, error: finding.is_error(), fix, place: finding.span };
        let touches =
            |edit: &Edit| taken.range(..=edit.span.end).next_back().is_some_and(|(_, end)| *end >= edit.span.start);
        if !fix.fix.edits.iter().any(touches) && !rejected.contains(&fix.key()) {
            for edit in &fix.fix.edits {
                let end = taken.entry(edit.span.start).or_insert(edit.span.end);
                *end = edit.span.end.max(*end);
            }
            candidates.push(fix);
        }
    }
    candidates
}

/// The text with these fixes, if that improves it.
fn attempt(
    current: &PassInput,
    fixes: &[Candidate<'_>],
    examine: impl Fn(&Arc<SourceFile>) -> PassInput,
) -> Option<PassInput> {
    let edits: Vec<Edit> = fixes.iter().flat_map(|fix| fix.fix.edits.iter().cloned()).collect();
    let text =
        apply(current.file.text(), &edits).ok().filter(|text| !edits.is_empty() && text != current.file.text())?;
    let next = examine(&Arc::new(SourceFile::new(current.file.name(), text)));
    let rules: Vec<&'static str> = fixes.iter().map(|fix| fix.rule).collect();
    next.improves(current, &rules).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test language: every `x` is an error fixed by `y`, every `q` an error whose fix adds an `x`, every `w` a
    /// warning whose fix removes it unless it is the last one, and `z` without any `w` an error.
    fn examine(file: &Arc<SourceFile>) -> PassInput {
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
        PassInput::of_template(file, findings.collect())
    }

    fn fixed(text: &str, rules: Rules) -> (String, usize) {
        let passed = apply_fixes(examine(&Arc::new(SourceFile::new("a", text))), rules, examine);
        (passed.input.file.text().to_owned(), passed.fixed_rules.len())
    }

    #[test]
    fn fixes_that_would_cause_more_errors_are_named() {
        for (text, rejected) in [("q x", vec!["queue"]), ("x", vec![]), ("u", vec![]), ("w z w", vec![])] {
            let passed = apply_fixes(examine(&Arc::new(SourceFile::new("a", text))), Rules::All, examine);
            assert_eq!(passed.rejected.iter().map(|finding| finding.rule).collect::<Vec<_>>(), rejected, "{text}");
        }
    }

    #[test]
    fn safe_fixes_are_applied_until_none_is_left() {
        for (text, after, made) in [
            ("a x b x", "a y b y", 2),
            ("u x", "u y", 1),
            ("", "", 0),
            // Two adjacent fixes take one pass each.
            ("xx", "yy", 2),
            // A fix that makes the text worse is rejected and does not block the others.
            ("q x", "q y", 1),
            ("q x q", "q y q", 1),
            // Each fix works individually, but not both together.
            ("w z w", " z w", 1),
        ] {
            assert_eq!(fixed(text, Rules::All), (after.to_owned(), made), "{text}");
            assert_eq!(fixed(after, Rules::All), (after.to_owned(), 0), "a second time changes nothing: {after}");
        }
        assert_eq!(fixed("x", Rules::LegacyForms), ("x".to_owned(), 0), "no older form");
    }
}
