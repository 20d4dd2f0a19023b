//! `behavior_loop`: observes, asks a model or a server for actions, performs them and reports the results back, until the
//! target of the step is achieved (docs/protocol.md).

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig, PROMPTS};
use crate::program::action::Action;
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::prompt::PromptNames;
use bcc_lang::script::fields::Fields;

pub(crate) struct BehaviorLoop;

impl Kind for BehaviorLoop {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "behavior_loop",
            schema: include_str!("../../../../schemas/actions/behavior_loop.json"),
            page: include_str!("../../../../docs/actions/behavior_loop.md"),
            exits: &["exit_criteria_met", "max_rounds_reached"],
        }
    }

    fn prompts(&self) -> &'static [(&'static str, PromptNames)] {
        &PROMPTS
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        // The source of the actions may use any kind of the project.
        checker.runs_any_kind();
        let config = LoopConfig::read(fields, checker)?;
        let least_calls = match config.source {
            BehaviorSource::Model(_) => 1 + u32::from(config.reflection),
            BehaviorSource::Server(_) => 0,
        };
        let server = match &config.source {
            BehaviorSource::Model(_) => None,
            BehaviorSource::Server(name) => Some(name.clone()),
        };
        checker.describe(ActionProperties {
            server,
            max_rounds: config.max_behaviors,
            min_calls: least_calls,
            ..ActionProperties::default()
        });
        Some(Box::new(config))
    }
}
