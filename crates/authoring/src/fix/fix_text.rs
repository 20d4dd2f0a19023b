//! One text, mended: its sure fixes are made, and those of what then comes to light, until none is left. After each pass it is
//! looked at anew, and a change after which more would be wrong than before is not made.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::fix::rules::{OLDEST_NESTING, Rules};
use bcc_lang::script::read::root_key;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix, order};
use bcc_lang::source::edits::apply;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// One mistake of the syntax may hide the next: so many are mended one after the other.
const MOST_PASSES: usize = 100;

/// When fixes do not go together, those that do are looked for by halves; each try takes a check of the text.
const MOST_TRIES: usize = 400;

#[derive(Clone, Debug)]
pub struct PassInput {
    pub file: Arc<SourceFile>,
    pub findings: Vec<Diagnostic>,
    /// How many mistakes keep it from being read at all. While there is one, nothing can be said of the rest.
    pub unread: usize,
    /// How many bytes of it stand behind the first of them.
    behind: usize,
    readable: bool,
    /// Whether it is in the oldest nesting, of which nothing else is said.
    oldest: bool,
}

impl PassInput {
    pub fn of_document(file: &Arc<SourceFile>, findings: Vec<Diagnostic>) -> Self {
        let parsed = parse(file);
        let broken = || parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let strange = parsed.root.as_deref().is_none_or(|root| root_key(root).is_none());
        let oldest = findings.iter().filter(|diagnostic| diagnostic.rule == OLDEST_NESTING).count();
        let first = broken().map(|diagnostic| diagnostic.span.start).min();
        let behind = first.map_or(0, |first| file.text().len().saturating_sub(first));
        Self {
            file: Arc::clone(file),
            unread: broken().count() + usize::from(strange) + oldest,
            behind,
            readable: parsed.root.is_some(),
            oldest: oldest > 0,
            findings,
        }
    }

    /// At a template, which is always read.
    pub fn of_template(file: &Arc<SourceFile>, findings: Vec<Diagnostic>) -> Self {
        Self { file: Arc::clone(file), findings, unread: 0, behind: 0, readable: true, oldest: false }
    }

    fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_error()).count()
    }

    fn of_rule(&self, rule: &str) -> usize {
        self.findings.iter().filter(|finding| finding.rule == rule).count()
    }

    /// Whether the fixes of these rules led from `before` to here without making anything worse, and settled something.
    fn improves(&self, before: &Self, rules: &[&'static str]) -> bool {
        let further = !before.readable && self.behind < before.behind;
        if before.unread > 0 && (self.unread < before.unread || further) {
            // More of it can be read than before. What that shows may be mended next: [`PassInput::stands`] compares then.
            return true;
        }
        let errors = self.errors() < before.errors();
        let settled = |rule: &&'static str| errors || self.of_rule(rule) < before.of_rule(rule);
        self.unread <= before.unread && self.errors() <= before.errors() && rules.iter().all(settled)
    }

    /// Whether the text may stay like this after it was `before`. `errors`: whether an error was mended in between.
    fn stands(&self, before: &Self, errors: bool) -> bool {
        if !before.readable {
            return self.readable || self.errors() < before.errors();
        }
        // Of the oldest nesting nothing but that is told: what comes to light was wrong before.
        let compared = self.errors().cmp(&before.errors());
        (before.oldest && !self.oldest) || compared.is_lt() || (compared.is_eq() && !errors)
    }
}

#[derive(Clone, Debug)]
pub struct FixedText {
    /// The last look at it: what is left.
    pub look: PassInput,
    /// The rules of the findings that were mended, in the order in which that was done; none when the text is as it was.
    pub made: Vec<&'static str>,
    /// Whether fixes were not even tried, because too many others did not go together.
    pub cut: bool,
}

#[derive(Clone)]
struct State {
    look: PassInput,
    made: Vec<&'static str>,
}

/// Mends the text of `first`, whose findings are known; `look` says what is wrong with another one in its place.
pub fn passes(first: PassInput, rules: Rules, look: impl Fn(&Arc<SourceFile>) -> PassInput) -> FixedText {
    // The last one that may be left as it is, and how it goes on from there.
    let mut kept = State { look: first, made: Vec::new() };
    let mut now = kept.clone();
    let mut begun: Vec<Key> = Vec::new();
    let mut errors = false;
    let mut refused = HashSet::new();
    let mut seen = HashSet::from([now.look.file.text().to_owned()]);
    let mut tries = MOST_TRIES;
    for _ in 0..MOST_PASSES {
        let chosen = chosen(&now.look, rules, &refused);
        let tried =
            |fixes: &[Chosen<'_>]| attempt(&now.look, fixes, &look).filter(|next| !seen.contains(next.file.text()));
        let (next, done) = match tried(&chosen) {
            Some(next) => (Some(next), chosen),
            None => {
                let mut good = Vec::new();
                let mut bad = Vec::new();
                let mut counted = |fixes: &[Chosen<'_>]| {
                    tries = tries.checked_sub(1)?;
                    tried(fixes)
                };
                halves(chosen, &mut counted, &mut good, &mut bad);
                refused.extend(bad);
                match tried(&good) {
                    Some(next) => (Some(next), good),
                    // Each part is good, and all of them are not: one then, and the others are looked at anew.
                    None => {
                        good.truncate(1);
                        (tried(&good), good)
                    }
                }
            }
        };
        let Some(next) = next else {
            // What touched one that is refused now may have its turn.
            if tries > 0 && chosen_again(&now.look, rules, &refused) {
                continue;
            }
            if now.look.file.text() == kept.look.file.text() || tries == 0 {
                break;
            }
            // It ends worse than it began: it goes back, and what began it is not made.
            now = kept.clone();
            refused = begun.drain(..).collect();
            errors = false;
            continue;
        };
        let of_errors = |fix: &&Chosen<'_>| fix.error;
        if begun.is_empty() {
            begun = done.iter().filter(of_errors).map(Chosen::key).collect();
        }
        errors |= done.iter().any(|fix| fix.error);
        let mut made = now.made.clone();
        made.extend(done.iter().map(|fix| fix.rule));
        seen.insert(next.file.text().to_owned());
        refused.clear();
        now = State { look: next, made };
        if now.look.stands(&kept.look, errors) {
            kept = now.clone();
            begun.clear();
            errors = false;
        }
    }
    FixedText { look: kept.look, made: kept.made, cut: tries == 0 }
}

fn chosen_again(look: &PassInput, rules: Rules, refused: &HashSet<Key>) -> bool {
    !chosen(look, rules, refused).is_empty()
}

/// Finds those that are good in a set that as a whole is not.
fn halves<'l>(
    mut fixes: Vec<Chosen<'l>>,
    tried: &mut impl FnMut(&[Chosen<'_>]) -> Option<PassInput>,
    good: &mut Vec<Chosen<'l>>,
    bad: &mut Vec<Key>,
) {
    if fixes.len() <= 1 {
        bad.extend(fixes.iter().map(Chosen::key));
        return;
    }
    let second = fixes.split_off(fixes.len() / 2);
    for half in [fixes, second] {
        if tried(&half).is_some() {
            good.extend(half);
        } else {
            halves(half, tried, good, bad);
        }
    }
}

#[derive(Clone)]
struct Chosen<'l> {
    rule: &'static str,
    error: bool,
    fix: &'l Fix,
    place: Span,
}

/// By what a fix is known again in the same text.
type Key = (&'static str, Span);

impl Chosen<'_> {
    fn key(&self) -> Key {
        (self.rule, self.place)
    }
}

/// The best sure fix of each finding, as far as they do not touch one another; what is left out has its turn in the next pass.
fn chosen<'l>(look: &'l PassInput, rules: Rules, refused: &HashSet<Key>) -> Vec<Chosen<'l>> {
    let file = &look.file;
    let same = |other: &SourceFile| other.name() == file.name() && other.text() == file.text();
    let own = |finding: &&Diagnostic| Arc::ptr_eq(&finding.file, file) || same(&finding.file);
    let mut findings: Vec<&Diagnostic> =
        look.findings.iter().filter(own).filter(|finding| rules.have(finding.rule)).collect();
    findings.sort_by(|a, b| order(a, b));
    let mut chosen: Vec<Chosen<'l>> = Vec::new();
    // Where the edits of the chosen begin, and where they end: they lie apart, so that the last one before a place tells.
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    for finding in findings {
        let Some(fix) = finding.fixes.iter().find(|fix| fix.sure && !fix.edits.is_empty()) else { continue };
        let fix = Chosen { rule: finding.rule, error: finding.is_error(), fix, place: finding.span };
        let touches =
            |edit: &Edit| taken.range(..=edit.span.end).next_back().is_some_and(|(_, end)| *end >= edit.span.start);
        if !fix.fix.edits.iter().any(touches) && !refused.contains(&fix.key()) {
            for edit in &fix.fix.edits {
                let end = taken.entry(edit.span.start).or_insert(edit.span.end);
                *end = edit.span.end.max(*end);
            }
            chosen.push(fix);
        }
    }
    chosen
}

/// The text with these fixes, if it is better for them.
fn attempt(now: &PassInput, fixes: &[Chosen<'_>], look: impl Fn(&Arc<SourceFile>) -> PassInput) -> Option<PassInput> {
    let edits: Vec<Edit> = fixes.iter().flat_map(|fix| fix.fix.edits.iter().cloned()).collect();
    let text = apply(now.file.text(), &edits).ok().filter(|text| !edits.is_empty() && text != now.file.text())?;
    let next = look(&Arc::new(SourceFile::new(now.file.name(), text)));
    let rules: Vec<&'static str> = fixes.iter().map(|fix| fix.rule).collect();
    next.improves(now, &rules).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A language in which every `x` is an error whose fix writes `y`, every `q` one whose fix adds another `x`, every `w` a
    /// warning whose fix takes it out, unless it is the last one, and `z` without any `w` an error.
    fn look(file: &Arc<SourceFile>) -> PassInput {
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
