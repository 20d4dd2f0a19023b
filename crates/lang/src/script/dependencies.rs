//! Checks `depends_on` among parts that have no other order: ids that do not exist, parts that depend on themselves, and circles.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::Spanned;
use crate::source::text::SourceFile;

/// The slug of these diagnostics.
pub const INVALID_DEPENDENCY: &str = "invalid-dependency";

/// The maximum number of ids of a circle in a message.
const MAX_LISTED: usize = 8;

/// A part, and the ids of the parts that must be over before it starts.
#[derive(Clone, Copy, Debug)]
pub struct DependentPart<'a> {
    pub id: &'a str,
    pub depends_on: &'a [Spanned<String>],
}

/// Reports the mistakes in the dependencies of these parts. Of several parts with one id, the first counts.
pub fn check_dependencies(parts: &[DependentPart<'_>], file: &Arc<SourceFile>, findings: &Findings) {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        numbers.entry(part.id).or_insert(number);
    }
    for part in parts {
        for id in part.depends_on {
            if id.value == part.id {
                findings.report(depends_on_itself(id, file));
            } else if !numbers.contains_key(id.value.as_str()) {
                let known = || numbers.keys().copied().filter(|known| !known.is_empty() && *known != part.id);
                findings.report(unknown_dependency(id, known, file, findings.may_suggest()));
            }
        }
    }
    for (at, circle) in circles(parts, &numbers) {
        let message = msg!("these depend on each other, so none of them could start: {}", listed(&circle));
        let help = "remove one of these dependencies";
        findings.report(Diagnostic::error(INVALID_DEPENDENCY, message, file, at.span).with_help(help));
    }
}

/// The diagnostic for a part that depends on itself.
pub fn depends_on_itself(id: &Spanned<String>, file: &Arc<SourceFile>) -> Diagnostic {
    let message = msg!("`{}` depends on itself", shortened(&id.value));
    Diagnostic::error(INVALID_DEPENDENCY, message, file, id.span).with_help("remove it, or write the id of another one")
}

/// The diagnostic for a dependency on an id that does not exist. `known` are the ids that exist.
pub fn unknown_dependency<'k, I: Iterator<Item = &'k str>>(
    id: &Spanned<String>,
    known: impl Fn() -> I,
    file: &Arc<SourceFile>,
    advise: bool,
) -> Diagnostic {
    let message = msg!("`depends_on` names `{}`, which does not exist here", shortened(&id.value));
    let near = advise.then(|| near_miss(&id.value, known())).flatten();
    let diagnostic = Diagnostic::error(INVALID_DEPENDENCY, message, file, id.span);
    let names: Vec<&str> = known().take(MAX_LISTED).collect();
    diagnostic.with_suggestion_or(near, || match names.as_slice() {
        [] => msg!("nothing here has an id that it could depend on"),
        names => msg!("it can be one of {}", Message::names(names)),
    })
}

fn listed(circle: &[&str]) -> Message {
    Message::names(circle.iter().take(MAX_LISTED).map(|id| shortened(id)))
}

/// The circles: each as the dependency that closes it, and the ids in it.
fn circles<'a>(
    parts: &[DependentPart<'a>],
    numbers: &BTreeMap<&'a str, usize>,
) -> Vec<(&'a Spanned<String>, Vec<&'a str>)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        Open,
        Done,
    }
    let mut visits = vec![Visit::New; parts.len()];
    let mut found = Vec::new();
    for start in 0..parts.len() {
        // The parts on the path, each with its number and the number of its next dependency. Every part is opened once.
        let mut path: Vec<(usize, usize)> = Vec::new();
        if visits.get(start) == Some(&Visit::New) {
            visits.get_mut(start).into_iter().for_each(|visit| *visit = Visit::Open);
            path.push((start, 0));
        }
        while let Some((number, next)) = path.last_mut() {
            let part = parts.get(*number);
            let Some(id) = part.and_then(|part| part.depends_on.get(*next)) else {
                visits.get_mut(*number).into_iter().for_each(|visit| *visit = Visit::Done);
                path.pop();
                continue;
            };
            *next += 1;
            let Some(to) = numbers.get(id.value.as_str()).copied().filter(|to| to != number) else { continue };
            match visits.get(to) {
                Some(Visit::New) => {
                    visits.get_mut(to).into_iter().for_each(|visit| *visit = Visit::Open);
                    path.push((to, 0));
                }
                Some(Visit::Open) => {
                    let from = path.iter().position(|(on_path, _)| *on_path == to).unwrap_or(0);
                    let circle = path.iter().skip(from).filter_map(|(number, _)| Some(parts.get(*number)?.id));
                    found.push((id, circle.collect()));
                }
                Some(Visit::Done) | None => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::span::Span;

    fn circles_of(parts: &[(&str, &[&str])]) -> Vec<Vec<String>> {
        let span = Span::new(0, 0);
        let ids = |ids: &[&str]| -> Vec<Spanned<String>> {
            ids.iter().map(|id| Spanned { value: (*id).to_owned(), span }).collect()
        };
        let depends: Vec<Vec<Spanned<String>>> = parts.iter().map(|(_, on)| ids(on)).collect();
        let parts: Vec<DependentPart<'_>> =
            parts.iter().zip(&depends).map(|((id, _), depends_on)| DependentPart { id, depends_on }).collect();
        let numbers = parts.iter().enumerate().map(|(number, part)| (part.id, number)).collect();
        let found = circles(&parts, &numbers);
        found.into_iter().map(|(_, circle)| circle.into_iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_circle_is_found_and_nothing_else() {
        assert!(circles_of(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &["c", "unknown", "d"])]).is_empty());
        assert_eq!(circles_of(&[("a", &["b"]), ("b", &["a"])]), [["a", "b"]]);
        assert_eq!(circles_of(&[("x", &["b"]), ("a", &["c"]), ("b", &["a"]), ("c", &["b"])]), [["b", "a", "c"]]);
        assert_eq!(circles_of(&[("a", &["b"]), ("b", &["a", "c"]), ("c", &["b"])]), [vec!["a", "b"], vec!["b", "c"]]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let ids: Vec<String> = (0..50_000).map(|number| number.to_string()).collect();
        let before: Vec<[&str; 1]> =
            (0..50_000).map(|number: usize| [ids[number.saturating_sub(1)].as_str()]).collect();
        let parts: Vec<(&str, &[&str])> =
            ids.iter().zip(&before).map(|(id, on)| (id.as_str(), on.as_slice())).collect();
        assert!(circles_of(&parts[1..]).is_empty());
    }
}
