//! Why a skill or a single action was inserted, as its frame stores it.

use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use serde::{Deserialize, Serialize};

use crate::program::outcome::ExitReason;
use bcc_lang::script::route_parser::RouteTarget;

/// The reason for inserting a skill or a single action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Insertion {
    /// The parent action called it, and receives its outputs in its next turn.
    Called,
    /// A route of the parent action inserted it.
    #[serde(rename = "routed")]
    ByRoute {
        reason: ExitReason,
        /// Whether the action was done.
        completed: bool,
        /// Where the route continues; if not set, as without a route.
        then: Option<RouteTarget>,
        /// The error of the action, if any.
        #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
        failure: Option<Message>,
    },
    /// A trigger inserted it.
    Triggered {
        trigger: String,
        /// Whether the session is completed after it.
        ends: bool,
        /// The topic or phase at which the session continues after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goto: Option<String>,
        /// Whether it is an action of the script that runs inside a skill: it sees the script's scopes, not the skill's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        outside: bool,
        /// The error that the session fails with afterwards, if the preceding turn failed.
        #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
        failure: Option<Message>,
    },
}

impl Insertion {
    /// Where the session continues after what a trigger inserted.
    pub(crate) fn trigger_target(ends: bool, goto: Option<String>) -> RouteTarget {
        match (ends, goto) {
            (true, _) => RouteTarget::End,
            (false, Some(id)) => RouteTarget::Goto(id),
            (false, None) => RouteTarget::Resume,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_insertion_of_an_earlier_release_is_read() {
        let stored = json!({ "triggered": { "trigger": "crisis", "ends": true } });
        let read: Insertion = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), stored);
        let Insertion::Triggered { ends, goto, .. } = read else { panic!() };
        assert_eq!(Insertion::trigger_target(ends, goto), RouteTarget::End);
    }
}
