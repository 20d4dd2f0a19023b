//! An action kind that the project defines (docs/custom-kinds.md), with its name and its table in the configuration.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::actions::PROJECT_SCHEMA;
use crate::actions::calling::{outputs, set_outputs, skill_arguments};
use crate::actions::notebook::custom::{CustomOutcome, Progress, advance};
use crate::program::action::Action;
use crate::program::custom::{COMMAND, CustomBody, CustomKind, intern};
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::nested_value::{NestedValue, evaluate_nested};
use crate::program::outcome::Outcome;
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::yaml::YamlEntry;
use bcc_lang::value::exact::ExactValues;

/// The field of `config` that is not an input.
const OUTPUT: &str = "output";

pub(crate) struct ProjectKind {
    name: &'static str,
    custom: Arc<CustomKind>,
}

impl ProjectKind {
    pub(crate) fn new(custom: &CustomKind) -> Self {
        Self { name: intern(&custom.name), custom: Arc::new(custom.clone()) }
    }
}

impl Kind for ProjectKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: self.name,
            schema: PROJECT_SCHEMA,
            page: include_str!("../../../../docs/custom-kinds.md"),
            exits: &["exit_criteria_met", "failed"],
        }
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let before = fields.findings().author_errors();
        let outputs = fields.take_unknown(OUTPUT).map(|entry| outputs(&entry.value, fields)).unwrap_or_default();
        let is_input = |entry: &&YamlEntry| entry.key.value != OUTPUT && !entry.key.value.starts_with("x-");
        let entries: Vec<&YamlEntry> = fields
            .entries()
            .iter()
            .filter(is_input)
            .filter_map(|entry| fields.take_unknown(&entry.key.value))
            .collect();
        let inputs =
            entries.iter().map(|entry| Some((entry.key.value.clone(), NestedValue::read(&entry.value, checker)?)));
        let inputs: Option<Vec<_>> = inputs.collect();
        for (ours, _) in &outputs {
            checker.may_have_value(ours, None);
        }
        // The outputs of a command are known only after it has run.
        let used_outputs = match &self.custom.body {
            CustomBody::Skill(_) => outputs.iter().map(|(_, theirs)| theirs.clone()).collect(),
            CustomBody::Command(_) => vec![],
        };
        checker.runs(&self.custom, skill_arguments(entries), used_outputs);
        let needs = if self.custom.has_command() { vec![COMMAND.to_owned()] } else { vec![] };
        checker.describe(ActionProperties {
            max_rounds: 1,
            outputs: outputs.len(),
            needs,
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        let outputs = outputs.into_iter().map(|(ours, theirs)| (ours.value, theirs.value)).collect();
        Some(Box::new(ProjectAction { kind: Arc::clone(&self.custom), inputs: inputs?, outputs }))
    }
}

struct ProjectAction {
    kind: Arc<CustomKind>,
    inputs: Vec<(String, NestedValue)>,
    /// Our variables, each with the output that fills it.
    outputs: Vec<(String, String)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredState {
    /// The inputs, once the action has started.
    inputs: Option<ExactValues>,
    progress: Progress,
}

#[async_trait]
impl Action for ProjectAction {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let mut stored: StoredState = turn.state()?;
        let inputs = match stored.inputs.take() {
            Some(inputs) => inputs,
            None => evaluate_nested(turn, &self.inputs)?.into_iter().collect(),
        };
        match advance(turn, &self.kind, &inputs, &mut stored.progress).await? {
            CustomOutcome::Continue(flow) => {
                turn.store_state(&StoredState { inputs: Some(inputs), ..stored })?;
                Ok(flow)
            }
            CustomOutcome::Done(outcome) => {
                let values = &outcome.extracted_variables;
                let missing = self.outputs.iter().filter(|(_, theirs)| !values.contains_key(theirs));
                // The outputs of a skill were checked; a command may print anything.
                if outcome.success
                    && matches!(self.kind.body, CustomBody::Command(_))
                    && !outcome.metadata.contains_key("skipped")
                {
                    for (_, theirs) in missing {
                        let message = msg!("the command of `{}` did not return `{theirs}`", self.name());
                        let help = Message::word("it must print one JSON object with this field to standard output");
                        turn.warn("output-missing", message, Some(help));
                    }
                }
                let extracted_variables = set_outputs(turn, &self.outputs, values)?;
                Ok(Flow::done(Outcome { extracted_variables, ..*outcome }))
            }
        }
    }

    fn handles_failed_skills(&self) -> bool {
        true
    }

    fn skill(&self) -> Option<&str> {
        match &self.kind.body {
            CustomBody::Skill(skill) => Some(skill),
            CustomBody::Command(_) => None,
        }
    }
}

impl ProjectAction {
    fn name(&self) -> &str {
        &self.kind.name
    }
}
