//! `use_skill`: runs a skill in a scope of its own (docs/actions/).

use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::actions::calling::{failure_of, given, outputs, take};
use crate::program::action::Action;
use crate::program::assigned::Assigned;
use crate::program::assignments::{evaluate, read_value};
use crate::program::flow::{ActionError, Call, Flow};
use crate::program::kind::{Described, Kind, KindChecker, KindInfo, SkillArgument};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{NodeKind, YamlNode};

pub struct UseSkill;

struct Calling {
    skill: String,
    /// The skill's inputs and what they are given.
    inputs: Vec<(String, Assigned)>,
    /// Our variables, each with the skill's output that fills it.
    outputs: Vec<(String, String)>,
}

/// Whether the skill was called, so that the turn after it knows that it is back.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Called {
    called: bool,
}

impl Kind for UseSkill {
    fn about(&self) -> KindInfo {
        KindInfo {
            name: "use_skill",
            schema: include_str!("../../../../schemas/actions/use_skill.json"),
            page: include_str!("../../../../docs/actions/use_skill.md"),
            exits: &["exit_criteria_met"],
        }
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let skill = fields.required_words("skill").map(|words| Spanned { value: words.text, span: words.node.span });
        let before = fields.findings().mistakes();
        let (given, inputs) = fields.take("input").map(|node| inputs(node, fields, checking)).unwrap_or_default();
        let outputs = fields.take("output").map(|node| outputs(node, fields)).unwrap_or_default();
        for (ours, _) in &outputs {
            checking.learn(ours, None);
        }
        let skill = skill?;
        checking.skill(&skill, given, outputs.iter().map(|(_, theirs)| theirs.clone()).collect());
        checking.describe(Described { max_rounds: 1, ..Described::default() });
        if fields.findings().mistakes() > before {
            return None;
        }
        let outputs = outputs.into_iter().map(|(ours, theirs)| (ours.value, theirs.value)).collect();
        Some(Box::new(Calling { skill: skill.value, inputs, outputs }))
    }
}

/// What `input` gives, as written and as it is evaluated.
type Inputs = (Vec<SkillArgument>, Vec<(String, Assigned)>);

/// `input: { name: value }`: the values are those of `set`, read where the caller stands; the names are the skill's.
fn inputs(node: &Arc<YamlNode>, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Inputs {
    let NodeKind::Mapping(entries) = &node.kind else {
        let message =
            msg!("`input` must be a mapping of the skill's inputs to values, but this is {}", node.describe());
        let help = "write each input on its own line, as `name: value`";
        fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), node.span).with_help(help));
        return Inputs::default();
    };
    let values =
        entries.iter().filter_map(|entry| Some((entry.key.value.clone(), read_value(&entry.value, checking)?)));
    (given(entries), values.collect())
}

#[async_trait]
impl Action for Calling {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let Called { called } = turn.state()?;
        let Some(end) = turn.entered.filter(|_| called) else {
            let inputs = evaluate(turn, self.inputs.iter().map(|(name, value)| (name.as_str(), value)))?;
            turn.keep(&Called { called: true })?;
            return Ok(Flow::Call(Call { skill: self.skill.clone(), inputs: inputs.into_iter().collect() }));
        };
        if let Some(failure) = failure_of(&self.skill, end) {
            return Ok(Flow::done(Outcome::failed(&failure)));
        }
        let extracted_variables = take(turn, &self.outputs, &end.extracted_variables)?;
        Ok(Flow::done(Outcome { extracted_variables, ..Outcome::done(ExitReason::ExitCriteriaMet) }))
    }

    fn skill(&self) -> Option<&str> {
        Some(&self.skill)
    }
}
