//! `behavior_loop`: observes, asks a model or a server for actions, carries them out, and feeds back what came of them, until the
//! target of the step is achieved (docs/protocol.md).

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig, PROMPTS};
use crate::program::action::Action;
use crate::program::kind::{Described, Kind, KindChecker, KindInfo};
use crate::program::prompt::PromptOf;
use bcc_lang::script::fields::Fields;

pub struct BehaviorLoop;

impl Kind for BehaviorLoop {
    fn about(&self) -> KindInfo {
        KindInfo {
            name: "behavior_loop",
            schema: include_str!("../../../../schemas/actions/behavior_loop.json"),
            page: include_str!("../../../../docs/actions/behavior_loop.md"),
            exits: &["exit_criteria_met", "max_rounds_reached"],
        }
    }

    fn prompts(&self) -> &'static [(&'static str, PromptOf)] {
        &PROMPTS
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        // Whoever sends the actions may name any kind of the project.
        checking.runs_any_kind();
        let read = LoopConfig::read(fields, checking)?;
        let least_calls = match read.source {
            BehaviorSource::Model(_) => 1 + u32::from(read.reflection),
            BehaviorSource::Server(_) => 0,
        };
        checking.describe(Described { max_rounds: read.max_behaviors, least_calls, ..Described::default() });
        Some(Box::new(read))
    }
}
