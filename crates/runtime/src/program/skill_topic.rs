//! A topic of a skill: a step of the skill whose block is the list of its actions (docs/skills.md).

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::program::action::Action;
use crate::program::flow::{ActionError, Flow, StepBlock};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{ProgramSteps, Topic};
use crate::program::turn::Turn;
use bcc_lang::value::scopes::Declaration;

/// The kind of such a step in events. No script can write it as `action_type`.
pub const TOPIC_STEP: &str = "topic";

/// The name of its block.
const BLOCK: &str = "topic";

pub struct SkillTopic {
    pub topic: Topic,
    /// Its variables. They belong to the skill, and get their first values again with each visit of the topic.
    pub declarations: Vec<Declaration>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Entered {
    entered: bool,
}

#[async_trait]
impl Action for SkillTopic {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let Entered { entered } = turn.state()?;
        if entered {
            return Ok(Flow::done(Outcome::done(ExitReason::ExitCriteriaMet)));
        }
        for declaration in &self.declarations {
            turn.set(&declaration.name, declaration.value.clone(), None)?;
        }
        turn.store_state(&Entered { entered: true })?;
        Ok(Flow::Enter(StepBlock(BLOCK.to_owned())))
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }

    fn topic(&self) -> Option<&Topic> {
        Some(&self.topic)
    }

    fn blocks(&self) -> Vec<&ProgramSteps> {
        vec![&self.topic.steps]
    }

    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        (block == BLOCK).then_some(&self.topic.steps)
    }
}
