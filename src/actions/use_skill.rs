//! `use_skill`: runs a skill in a scope of its own (LANGUAGE.md section 5). This release checks it and cannot run it yet.

use std::sync::Arc;

use crate::program::action::Action;
use crate::program::assignments::read_value;
use crate::program::kind::{Checking, Given, Kind};
use crate::script::declare::variable_name;
use crate::script::fields::Fields;
use crate::script::findings::LATER;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::Spanned;
use crate::source::yaml::{Node, NodeKind};

/// The kind.
pub struct UseSkill;

impl Kind for UseSkill {
    fn name(&self) -> &'static str {
        "use_skill"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../schemas/actions/use_skill.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../docs/actions/use_skill.md")
    }

    fn exits(&self) -> &'static [&'static str] {
        &["exit_criteria_met"]
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn Checking) -> Option<Box<dyn Action>> {
        let skill = fields.required_words("skill").map(|words| Spanned { value: words.text, span: words.node.span });
        let inputs = fields.take("input").map(|node| inputs(node, fields, checking)).unwrap_or_default();
        let outputs = fields.take("output").map(|node| outputs(node, fields)).unwrap_or_default();
        for (ours, _) in &outputs {
            checking.learn(ours, None);
        }
        let skill = skill?;
        checking.skill(&skill, inputs, outputs.into_iter().map(|(_, theirs)| theirs).collect());
        let message = "`use_skill` is a kind of the language, but this release checks it only and cannot run it yet";
        let diagnostic = Diagnostic::error(LATER, message, fields.file(), skill.span);
        let help = "see docs/language.md for what this release runs";
        fields.findings().report_later("use_skill", diagnostic.with_help(help));
        None
    }
}

/// `input: { name: value }`: the values are those of `set`, read where the caller stands; the names are the skill's.
fn inputs(node: &Arc<Node>, fields: &Fields<'_>, checking: &mut dyn Checking) -> Vec<Given> {
    let NodeKind::Mapping(entries) = &node.kind else {
        let message =
            format!("`input` must be a mapping of the skill's inputs to values, but this is {}", node.describe());
        let help = "write each input on a line of its own, as `name: value`";
        fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), node.span).with_help(help));
        return vec![];
    };
    for entry in entries {
        read_value(&entry.value, checking);
    }
    entries.iter().map(|entry| Given { name: entry.key.clone(), value: Arc::clone(&entry.value) }).collect()
}

/// `output: [name]`, or `output: { ours: theirs }`: our variables with the skill's outputs that fill them.
fn outputs(node: &Arc<Node>, fields: &Fields<'_>) -> Vec<(Spanned<String>, Spanned<String>)> {
    let text = |node: &Arc<Node>| {
        let name = node.as_scalar().map(|scalar| Spanned { value: scalar.text.clone(), span: node.span });
        if name.is_none() {
            let message = format!("an output must be the name of a variable, but this is {}", node.describe());
            let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span);
            fields.findings().report(diagnostic.with_help("write `output: [mood]`, or `output: { our_name: mood }`"));
        }
        name
    };
    let ours = |name: &Spanned<String>| variable_name(name, fields).is_some();
    match &node.kind {
        NodeKind::Mapping(entries) => entries
            .iter()
            .filter(|entry| ours(&entry.key))
            .filter_map(|entry| Some((entry.key.clone(), text(&entry.value)?)))
            .collect(),
        NodeKind::Sequence(items) => {
            items.iter().filter_map(text).filter(ours).map(|name| (name.clone(), name)).collect()
        }
        NodeKind::Scalar(_) => text(node).filter(ours).map(|name| (name.clone(), name)).into_iter().collect(),
    }
}
