//! The report of who got which follow-up question, and which actions and branches were reached.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bcc_lang::message::language::Language;
use bcc_lang::source::render::markdown::code_span;
use indexmap::IndexMap;

use crate::data_set::interview::ActionVisit;
use crate::data_set::spool::InterviewSpool;
use crate::files::export_folder::ExportFolder;

/// What is counted of an action over all interviews.
#[derive(Default)]
struct ActionCounts {
    action_type: String,
    interviews: u64,
    visits: u64,
    /// Visits by the number of follow-up questions.
    follow_ups: BTreeMap<u64, u64>,
    exits: BTreeMap<String, u64>,
    branches: BTreeMap<String, u64>,
}

/// Writes `follow_ups.md`.
pub(crate) fn write_follow_ups(
    folder: &mut ExportFolder,
    prefix: &str,
    spool: &mut InterviewSpool,
    language: Language,
) -> io::Result<()> {
    let mut counts: IndexMap<(String, String, String), ActionCounts> = IndexMap::new();
    spool.each(|interview| {
        let mut reached = Vec::new();
        for action in &interview.actions {
            let key = (action.phase_id.clone(), action.topic_id.clone(), action.action_id.clone());
            let is_first = !reached.contains(&key);
            let count = counts.entry(key.clone()).or_default();
            count.interviews += u64::from(is_first);
            if is_first {
                reached.push(key);
            }
            count.add(action);
        }
        Ok(())
    })?;
    let word = |literal: &'static str| language.translate(literal);
    let mut page = folder.file(&format!("{prefix}follow_ups.md"))?;
    writeln!(page, "# {}\n\n## {}\n", word("Follow-ups"), word("Actions"))?;
    let heads = [
        word("phase"),
        word("topic"),
        word("action"),
        word("type"),
        word("interviews"),
        word("visits"),
        word("follow-ups: visits"),
        word("exit reasons"),
        word("branches"),
    ];
    writeln!(page, "| {} |\n|{}", heads.join(" | "), " --- |".repeat(heads.len()))?;
    for ((phase, topic, action), count) in &counts {
        let follow_ups = count.follow_ups.iter();
        let cells = [
            code_span(phase),
            code_span(topic),
            code_span(action),
            code_span(&count.action_type),
            count.interviews.to_string(),
            count.visits.to_string(),
            follow_ups.map(|(number, visits)| format!("{number}: {visits}")).collect::<Vec<_>>().join(", "),
            counted(&count.exits),
            counted(&count.branches),
        ];
        writeln!(page, "| {} |", cells.join(" | "))?;
    }
    writeln!(page, "\n## {}\n", word("Interviews"))?;
    spool.each(|interview| {
        let parts: Vec<String> = interview.actions.iter().filter_map(part).collect();
        let parts = if parts.is_empty() { word("no follow-ups").into_owned() } else { parts.join(", ") };
        writeln!(page, "- {} ({}): {parts}", code_span(&interview.id), code_span(&interview.participant))
    })?;
    folder.complete(page)
}

impl ActionCounts {
    fn add(&mut self, action: &ActionVisit) {
        self.action_type.clone_from(&action.action_type);
        self.visits += 1;
        if action.questions > 0 {
            *self.follow_ups.entry(action.follow_ups()).or_default() += 1;
        }
        for (counts, name) in [(&mut self.exits, &action.exit_reason), (&mut self.branches, &action.branch)] {
            if let Some(name) = name {
                *counts.entry(name.clone()).or_default() += 1;
            }
        }
    }
}

fn counted(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(name, count)| format!("{}: {count}", code_span(name))).collect::<Vec<_>>().join(", ")
}

/// What an interview had of an action beyond its first question.
fn part(action: &ActionVisit) -> Option<String> {
    let path = code_span(&action.path);
    match (action.follow_ups(), &action.branch) {
        (0, None) => None,
        (0, Some(branch)) => Some(format!("{path} → {}", code_span(branch))),
        (count, _) => Some(format!("{path} × {count}")),
    }
}
