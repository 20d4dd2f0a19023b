//! `use_skill`: runs a skill in a scope of its own (docs/actions/).

use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::actions::calling::{failure_of, outputs, set_outputs, skill_arguments};
use crate::program::action::Action;
use crate::program::assigned::Assigned;
use crate::program::assignments::{evaluate, read_value};
use crate::program::flow::{ActionError, Call, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo, SkillArgument};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{NodeKind, YamlNode};

pub(crate) struct UseSkill;

struct SkillCall {
    skill: String,
    /// The inputs of the skill and their values.
    inputs: Vec<(String, Assigned)>,
    /// Our variables, each with the skill's output that fills it.
    outputs: Vec<(String, String)>,
}

/// Whether the skill was called: the next turn then reads its outcome.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Called {
    called: bool,
}

impl Kind for UseSkill {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "use_skill",
            schema: include_str!("../../../../schemas/actions/use_skill.json"),
            page: include_str!("../../../../docs/actions/use_skill.md"),
            exits: &["exit_criteria_met"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let skill = fields.required_text("skill").map(|field| Spanned { value: field.text, span: field.node.span });
        let before = fields.findings().author_errors();
        let (arguments, inputs) = fields.take("input").map(|node| inputs(node, fields, checker)).unwrap_or_default();
        let outputs = fields.take("output").map(|node| outputs(node, fields)).unwrap_or_default();
        for (ours, _) in &outputs {
            checker.may_have_value(ours, None);
        }
        let skill = skill?;
        checker.skill(&skill, arguments, outputs.iter().map(|(_, theirs)| theirs.clone()).collect());
        checker.describe(ActionProperties { max_rounds: 1, ..ActionProperties::default() });
        if fields.findings().author_errors() > before {
            return None;
        }
        let outputs = outputs.into_iter().map(|(ours, theirs)| (ours.value, theirs.value)).collect();
        Some(Box::new(SkillCall { skill: skill.value, inputs, outputs }))
    }
}

/// The arguments of `input`, as written and as values to evaluate.
type Inputs = (Vec<SkillArgument>, Vec<(String, Assigned)>);

/// Reads `input: { name: value }`: values are evaluated in the scope of the caller, as in `set`; names are those of the skill.
fn inputs(node: &Arc<YamlNode>, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Inputs {
    let NodeKind::Mapping(entries) = &node.kind else {
        let message =
            msg!("`input` must be a mapping of the skill's inputs to values, but this is {}", node.describe());
        let help = "write each input on its own line, as `name: value`";
        fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), node.span).with_help(help));
        return Inputs::default();
    };
    let values = entries.iter().filter_map(|entry| Some((entry.key.value.clone(), read_value(&entry.value, checker)?)));
    (skill_arguments(entries), values.collect())
}

#[async_trait]
impl Action for SkillCall {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let Called { called } = turn.state()?;
        let Some(outcome) = turn.entered.filter(|_| called) else {
            let inputs = evaluate(turn, self.inputs.iter().map(|(name, value)| (name.as_str(), value)))?;
            turn.store_state(&Called { called: true })?;
            return Ok(Flow::Call(Call { skill: self.skill.clone(), inputs: inputs.into_iter().collect(), part: 1 }));
        };
        if let Some(failure) = failure_of(&self.skill, outcome) {
            return Ok(Flow::done(Outcome::failed(&failure)));
        }
        let extracted_variables = set_outputs(turn, &self.outputs, &outcome.extracted_variables)?;
        Ok(Flow::done(Outcome { extracted_variables, ..Outcome::done(ExitReason::ExitCriteriaMet) }))
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }

    fn skill(&self) -> Option<&str> {
        Some(&self.skill)
    }
}
