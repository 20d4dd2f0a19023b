//! A kind that the project makes (docs/custom-kinds.md): its name, and what its table says, as any other kind.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::PROJECT_SCHEMA;
use crate::actions::calling::{given, outputs, take};
use crate::actions::notebook::custom::{CustomOutcome, Progress, advance};
use crate::program::action::Action;
use crate::program::assigned::Assigned;
use crate::program::assignments::{evaluate, read_value};
use crate::program::custom::{COMMAND, CustomBody, CustomKind, kept};
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{Described, Kind, KindChecker, KindInfo};
use crate::program::outcome::Outcome;
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// The field of `config` that is no input.
const OUTPUT: &str = "output";

pub struct ProjectKind {
    name: &'static str,
    custom: Arc<CustomKind>,
}

impl ProjectKind {
    pub fn new(custom: &CustomKind) -> Self {
        Self { name: kept(&custom.name), custom: Arc::new(custom.clone()) }
    }
}

impl Kind for ProjectKind {
    fn about(&self) -> KindInfo {
        KindInfo {
            name: self.name,
            schema: PROJECT_SCHEMA,
            page: include_str!("../../../../docs/custom-kinds.md"),
            exits: &["exit_criteria_met", "failed"],
        }
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let before = fields.findings().mistakes();
        let outputs = fields.stray(OUTPUT).map(|entry| outputs(&entry.value, fields)).unwrap_or_default();
        let own = |entry: &&YamlEntry| entry.key.value != OUTPUT && !entry.key.value.starts_with("x-");
        let entries: Vec<&YamlEntry> =
            fields.entries().iter().filter(own).filter_map(|entry| fields.stray(&entry.key.value)).collect();
        let inputs = entries.iter().map(|entry| Some((entry.key.value.clone(), written(&entry.value, checking)?)));
        let inputs: Option<Vec<_>> = inputs.collect();
        for (ours, _) in &outputs {
            checking.learn(ours, None);
        }
        // What a command gives is known when it has run.
        let taken = match &self.custom.does {
            CustomBody::Skill(_) => outputs.iter().map(|(_, theirs)| theirs.clone()).collect(),
            CustomBody::Command(_) => vec![],
        };
        checking.runs(&self.custom, given(entries), taken);
        let needs = if self.custom.has_command() { vec![COMMAND] } else { vec![] };
        checking.describe(Described { max_rounds: 1, outputs: outputs.len(), needs, ..Described::default() });
        if fields.findings().mistakes() > before {
            return None;
        }
        let outputs = outputs.into_iter().map(|(ours, theirs)| (ours.value, theirs.value)).collect();
        Some(Box::new(Running { kind: Arc::clone(&self.custom), inputs: inputs?, outputs }))
    }
}

/// An input as it is written: texts are the author's at any depth, and rendered when the action begins.
enum Written {
    One(Assigned),
    List(Vec<Written>),
    Mapping(Vec<(String, Written)>),
}

fn written(node: &Arc<YamlNode>, checking: &mut dyn KindChecker) -> Option<Written> {
    Some(match &node.kind {
        NodeKind::Scalar(_) => Written::One(read_value(node, checking)?),
        NodeKind::Sequence(items) => {
            Written::List(items.iter().map(|item| written(item, checking)).collect::<Option<_>>()?)
        }
        NodeKind::Mapping(entries) => {
            let field = |entry: &YamlEntry| Some((entry.key.value.clone(), written(&entry.value, checking)?));
            Written::Mapping(entries.iter().map(field).collect::<Option<_>>()?)
        }
    })
}

impl Written {
    /// The values inside of it, in order.
    fn leaves<'w>(&'w self, into: &mut Vec<&'w Assigned>) {
        match self {
            Self::One(value) => into.push(value),
            Self::List(items) => items.iter().for_each(|item| item.leaves(into)),
            Self::Mapping(fields) => fields.iter().for_each(|(_, field)| field.leaves(into)),
        }
    }

    /// The same with what its leaves came to, in the same order.
    fn with(&self, values: &mut impl Iterator<Item = Value>) -> Value {
        match self {
            Self::One(_) => values.next().unwrap_or_default(),
            Self::List(items) => items.iter().map(|item| item.with(values)).collect(),
            Self::Mapping(fields) => fields.iter().map(|(name, field)| (name.clone(), field.with(values))).collect(),
        }
    }
}

struct Running {
    kind: Arc<CustomKind>,
    inputs: Vec<(String, Written)>,
    /// Our variables, each with the output that fills it.
    outputs: Vec<(String, String)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// What it was given, once it began.
    inputs: Option<Map<String, Value>>,
    progress: Progress,
}

impl Running {
    fn inputs(&self, turn: &Turn<'_>) -> Result<Map<String, Value>, ActionError> {
        let mut leaves = Vec::new();
        self.inputs.iter().for_each(|(_, written)| written.leaves(&mut leaves));
        let values = evaluate(turn, leaves.into_iter().map(|leaf| ("", leaf)))?;
        let mut values = values.into_iter().map(|(_, value)| value);
        Ok(self.inputs.iter().map(|(name, written)| (name.clone(), written.with(&mut values))).collect())
    }
}

#[async_trait]
impl Action for Running {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let mut kept: Kept = turn.state()?;
        let inputs = match kept.inputs.take() {
            Some(inputs) => inputs,
            None => self.inputs(turn)?,
        };
        match advance(turn, &self.kind, &inputs, &mut kept.progress).await? {
            CustomOutcome::On(flow) => {
                turn.keep(&Kept { inputs: Some(inputs), ..kept })?;
                Ok(flow)
            }
            CustomOutcome::Done(outcome) => {
                let came = &outcome.extracted_variables;
                let lacking = self.outputs.iter().filter(|(_, theirs)| !came.contains_key(theirs));
                // The outputs of a skill were checked; what a command prints may be anything.
                if outcome.success
                    && matches!(self.kind.does, CustomBody::Command(_))
                    && !outcome.metadata.contains_key("skipped")
                {
                    for (_, theirs) in lacking {
                        let message = msg!("the command of `{}` did not return `{theirs}`", self.name());
                        let help = Message::word("it must print one JSON object with this field to standard output");
                        turn.warn("output-missing", message, Some(help));
                    }
                }
                let extracted_variables = take(turn, &self.outputs, came)?;
                Ok(Flow::done(Outcome { extracted_variables, ..*outcome }))
            }
        }
    }

    fn skill(&self) -> Option<&str> {
        match &self.kind.does {
            CustomBody::Skill(skill) => Some(skill),
            CustomBody::Command(_) => None,
        }
    }
}

impl Running {
    fn name(&self) -> &str {
        &self.kind.name
    }
}
