//! Which of very many findings people are shown, and what is said of the rest.

use crate::message::message::Message;
use crate::message::msg;
use std::collections::BTreeMap;

use crate::source::diagnostic::{Diagnostic, Severity};
use crate::source::render::visible::visible_line;

/// The most reports of one rule in one file.
const MOST_OF_RULE: usize = 10;

/// The most reports of one file.
const MOST_OF_FILE: usize = 50;

/// The most reports in all.
const MOST_IN_ALL: usize = 200;

/// The most rules that are named in the line about what is left out of one file.
const MOST_NAMED: usize = 5;

/// Which of the findings, in the order of their files, are shown. Errors are chosen before warnings, so that none is hidden
/// behind things that matter less.
pub(crate) fn chosen(sorted: &[&Diagnostic]) -> Vec<bool> {
    let mut chosen = vec![false; sorted.len()];
    let mut of_file: BTreeMap<&str, usize> = BTreeMap::new();
    let mut of_rule: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut in_all = 0;
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let of_severity = sorted.iter().zip(&mut chosen).filter(|(diagnostic, _)| diagnostic.severity == severity);
        for (diagnostic, shown) in of_severity {
            if in_all == MOST_IN_ALL {
                return chosen;
            }
            let name = diagnostic.file.name();
            let file = of_file.entry(name).or_default();
            let rule = of_rule.entry((name, diagnostic.rule)).or_default();
            if *file < MOST_OF_FILE && *rule < MOST_OF_RULE {
                (*file, *rule, in_all, *shown) = (*file + 1, *rule + 1, in_all + 1, true);
            }
        }
    }
    chosen
}

/// One line about what is not shown of a file; none where all of it is.
pub(crate) fn rest_of_file(name: &str, hidden: impl Iterator<Item = &'static str>) -> Option<Message> {
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    hidden.for_each(|rule| *rules.entry(rule).or_default() += 1);
    let total: usize = rules.values().sum();
    let mut rules: Vec<(&str, usize)> = rules.into_iter().collect();
    // Those with most first; the names keep their order among equals.
    rules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let file = visible_line(name);
    match rules.as_slice() {
        [] => None,
        [(rule, count)] => Some(msg!("… and {count} more `{rule}` in {file} (`validate --all` shows all of them)")),
        several => {
            let named = several.iter().take(MOST_NAMED).map(|(rule, count)| format!("{count} `{rule}`"));
            let named = named.collect::<Vec<_>>().join(", ");
            let left: usize = several.iter().skip(MOST_NAMED).map(|(_, count)| count).sum();
            Some(match left {
                0 => msg!("… and {total} more in {file}: {named} (`validate --all` shows all of them)"),
                _ => msg!("… and {total} more in {file}: {named}, {left} others (`validate --all` shows all of them)"),
            })
        }
    }
}

/// One line about files of which nothing is shown; none where there is no such file.
pub(crate) fn rest_of_files(files: usize, findings: usize) -> Option<Message> {
    match files {
        0 => None,
        1 => Some(msg!("… and {findings} more in 1 other file (`validate --all` shows all of them)")),
        _ => Some(msg!("… and {findings} more in {files} other files (`validate --all` shows all of them)")),
    }
}
