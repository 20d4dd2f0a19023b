//! Limits how many diagnostics are shown to people, and describes the omitted ones.

use crate::message::message::Message;
use crate::message::msg;
use std::collections::BTreeMap;

use crate::source::diagnostic::{Diagnostic, Severity};
use crate::source::render::visible::visible_line;

/// The maximum number of reports of one rule in one file.
const MAX_PER_RULE: usize = 10;

/// The maximum number of reports of one file.
const MAX_PER_FILE: usize = 50;

/// The maximum number of reports in total.
const MAX_TOTAL: usize = 200;

/// The maximum number of rules named in the line about the omitted reports of a file.
const MAX_NAMED: usize = 5;

/// Which of the diagnostics, in file order, are shown. Errors are chosen before warnings, so that none is hidden by less
/// important diagnostics.
pub(crate) fn chosen(sorted: &[&Diagnostic]) -> Vec<bool> {
    let mut chosen = vec![false; sorted.len()];
    let mut per_file: BTreeMap<&str, usize> = BTreeMap::new();
    let mut per_rule: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut total = 0;
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let of_severity = sorted.iter().zip(&mut chosen).filter(|(diagnostic, _)| diagnostic.severity == severity);
        for (diagnostic, shown) in of_severity {
            if total == MAX_TOTAL {
                return chosen;
            }
            let name = diagnostic.file.name();
            let file = per_file.entry(name).or_default();
            let rule = per_rule.entry((name, diagnostic.rule)).or_default();
            if *file < MAX_PER_FILE && *rule < MAX_PER_RULE {
                (*file, *rule, total, *shown) = (*file + 1, *rule + 1, total + 1, true);
            }
        }
    }
    chosen
}

/// One line about the omitted reports of a file; `None` if all of them are shown.
pub(crate) fn omitted_in_file(name: &str, hidden: impl Iterator<Item = &'static str>) -> Option<Message> {
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    hidden.for_each(|rule| *rules.entry(rule).or_default() += 1);
    let total: usize = rules.values().sum();
    let mut rules: Vec<(&str, usize)> = rules.into_iter().collect();
    // The largest counts first; equal counts stay in the order of the names.
    rules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let file = visible_line(name);
    match rules.as_slice() {
        [] => None,
        [(rule, count)] => Some(msg!("… and {count} more `{rule}` in {file} (`validate --all` shows all of them)")),
        several => {
            let named = several.iter().take(MAX_NAMED).map(|(rule, count)| format!("{count} `{rule}`"));
            let named = Message::values(named);
            let left: usize = several.iter().skip(MAX_NAMED).map(|(_, count)| count).sum();
            Some(match left {
                0 => msg!("… and {total} more in {file}: {named} (`validate --all` shows all of them)"),
                _ => msg!("… and {total} more in {file}: {named}, {left} others (`validate --all` shows all of them)"),
            })
        }
    }
}

/// One line about files of which no report is shown; `None` if there are no such files.
pub(crate) fn omitted_files(files: usize, findings: usize) -> Option<Message> {
    match files {
        0 => None,
        1 => Some(msg!("… and {findings} more in 1 other file (`validate --all` shows all of them)")),
        _ => Some(msg!("… and {findings} more in {files} other files (`validate --all` shows all of them)")),
    }
}
