//! `set`: sets variables from values and expressions.

use async_trait::async_trait;

use crate::program::action::Action;
use crate::program::assigned::Assignment;
use crate::program::assignments::{assign, read_values};
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;

pub(crate) struct SetKind;

struct SetValues(Vec<Assignment>);

impl Kind for SetKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "set",
            schema: include_str!("../../../../schemas/actions/set.json"),
            page: include_str!("../../../../docs/actions/set.md"),
            exits: &["exit_criteria_met"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let values = read_values(fields.required("values")?, fields, checker)?;
        checker.describe(ActionProperties { max_rounds: 1, ..ActionProperties::default() });
        Some(Box::new(SetValues(values)))
    }
}

#[async_trait]
impl Action for SetValues {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let extracted_variables = assign(turn, &self.0)?;
        Ok(Flow::done(Outcome { extracted_variables, ..Outcome::done(ExitReason::ExitCriteriaMet) }))
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }
}
