//! `snapshot` of a test: the parts of the conversation that are stored and compared between runs.

use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::Fields;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::yaml::{NodeKind, YamlNode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SnapshotSetting {
    /// The messages.
    Transcript,
    Variables,
    /// The outcome of every turn.
    Outcomes,
    Events,
    Prompts,
}

impl SnapshotSetting {
    /// All settings, in the order of their parts in a snapshot.
    pub const ALL: [Self; 5] = [Self::Transcript, Self::Variables, Self::Outcomes, Self::Events, Self::Prompts];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Transcript => "transcript",
            Self::Variables => "variables",
            Self::Outcomes => "outcomes",
            Self::Events => "events",
            Self::Prompts => "prompts",
        }
    }
}

/// Reads `snapshot`: one name, or a list of names. The result has no duplicates and the order of [`SnapshotSetting::ALL`].
pub fn snapshot(fields: &Fields<'_>) -> Vec<SnapshotSetting> {
    let Some(node) = fields.take("snapshot") else { return vec![] };
    let mut settings: Vec<SnapshotSetting> = match &node.kind {
        NodeKind::Sequence(items) if !items.is_empty() => {
            items.iter().filter_map(|item| read_setting(item, fields)).collect()
        }
        NodeKind::Sequence(_) => {
            fields.error("empty-list", "`snapshot` is empty", node.span, "write `snapshot: transcript`, or remove it");
            vec![]
        }
        _ => read_setting(node, fields).into_iter().collect(),
    };
    settings.sort_unstable();
    settings.dedup();
    settings
}

fn read_setting(node: &YamlNode, fields: &Fields<'_>) -> Option<SnapshotSetting> {
    let names = SnapshotSetting::ALL.map(SnapshotSetting::name);
    let text = node.as_scalar().map(|scalar| scalar.text.trim()).unwrap_or_default();
    if let Some(setting) = SnapshotSetting::ALL.into_iter().find(|setting| setting.name() == text) {
        return Some(setting);
    }
    let message = match node.as_scalar() {
        Some(_) => msg!("`{}` cannot be part of a snapshot", crate::script::fields::shortened(text)),
        None => msg!("`snapshot` must contain names, but this is {}", node.describe()),
    };
    let diagnostic = Diagnostic::error("not-a-choice", message, fields.file(), node.span);
    let listed = || msg!("its possible values are {}", Message::names(names));
    fields.findings().report(diagnostic.with_suggestion_or(near_miss(text, names), listed));
    None
}
