//! `impossible-exit-reason`: a route for a reason with which no action in its part ever ends.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::CalleeBody;
use crate::reasons::{ERROR, REASONS, SKIPPED, possible_reasons};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::skill_topics::is_skill_topic;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::script::WrittenTopic;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "impossible-exit-reason";

/// A set of reasons, one bit each.
type Reasons = u16;

fn bit(reason: &str) -> Reasons {
    REASONS.iter().position(|known| *known == reason).map_or(0, |number| 1 << number)
}

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if model.collected.routes.is_empty() {
        return;
    }
    let mut session: Reasons = 0;
    let (mut phases, mut topics) = (BTreeMap::<usize, Reasons>::new(), BTreeMap::<(usize, usize), Reasons>::new());
    for action in &model.collected.actions {
        // The reasons of a broken action are unknown.
        let given = if action.sound { possible_reasons(model, action).map(bit).sum() } else { Reasons::MAX };
        if let CalleeBody::Topic(phase, topic) = action.body {
            *topics.entry((phase, topic)).or_default() |= given;
            *phases.entry(phase).or_default() |= given;
            session |= given;
        }
    }
    // A plan may add other actions to a topic. Skills use no tables of the document: their callers do, like every action.
    for (phase, topic) in orchestrated(model) {
        topics.insert((phase, topic), Reasons::MAX);
        phases.insert(phase, Reasons::MAX);
        session = Reasons::MAX;
    }
    let dialog_reasons = ["max_rounds_reached", "user_blocked", "off_topic"];
    for table in model.collected.exit_tables() {
        let action = table.at.action.and_then(|number| model.collected.actions.get(number));
        let (given, what) = match (action, table.at.body) {
            // The table of a topic of a skill.
            (Some(action), _) if is_skill_topic(action) => continue,
            (Some(action), _) if action.sound => {
                let kind = msg!("this `{}`", action.kind.value);
                (possible_reasons(model, action).map(bit).sum(), kind)
            }
            (Some(_), _) | (None, CalleeBody::Skill(_)) => continue,
            (None, _) if !model.is_complete() => continue,
            (None, CalleeBody::Topic(phase, topic)) => {
                (topics.get(&(phase, topic)).copied().unwrap_or(Reasons::MAX), msg!("no action of this topic"))
            }
            (None, CalleeBody::Phase(phase)) => {
                (phases.get(&phase).copied().unwrap_or(Reasons::MAX), msg!("no action of this phase"))
            }
            (None, CalleeBody::Session) => (session, msg!("no action of this script")),
        };
        for route in &table.on_exit.routes {
            let reason = route.reason.value.as_str();
            if bit(reason) == 0 || given & bit(reason) != 0 {
                continue;
            }
            let others = REASONS.iter().filter(|other| given & bit(other) != 0 && **other != ERROR);
            let others: Vec<Message> = others.map(|other| Message::text(format!("`{other}`"))).collect();
            let message = match action {
                Some(_) => msg!("{what} never ends with `{reason}`"),
                None => msg!("{what} ever ends with `{reason}`"),
            };
            let why = match action {
                Some(_) if !others.is_empty() => {
                    msg!("{}; this one ends with {}", why(reason), Message::list(Joint::Or, others))
                }
                // The author of such a route may be thinking of the called skills.
                None if !model.collected.calls.is_empty() && dialog_reasons.contains(&reason) => {
                    msg!("{}; the actions of a skill have routes of their own", why(reason))
                }
                _ => why(reason),
            };
            let help = msg!("{why}; remove the route, or move it to where it can take effect");
            findings.report(Diagnostic::warning(SLUG, message, model.file, route.reason.span).with_help(help));
        }
    }
}

/// The topics that may change while they run.
fn orchestrated(model: &SemanticModel<'_>) -> Vec<(usize, usize)> {
    let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    let topics = phases.iter().enumerate().flat_map(|(phase, written)| {
        written.topics.iter().enumerate().map(move |(topic, written)| (phase, topic, written))
    });
    let is_orchestrated = |topic: &WrittenTopic| topic.strategy.as_ref().is_some_and(|strategy| strategy.orchestration);
    topics.filter(|(.., topic)| is_orchestrated(topic)).map(|(phase, topic, _)| (phase, topic)).collect()
}

/// When an action ends with the reason.
fn why(reason: &str) -> Message {
    Message::word(match reason {
        "max_rounds_reached" => "only an action that judges answers can end this way, in its last round",
        "slots_missing" => "only a `collect` with required slots can end this way",
        "user_blocked" => "only an action that judges answers and has a further round can end this way",
        "off_topic" => "only an `ai_ask` with several rounds detects that an answer is about something else",
        "approved" | "rejected" | "timed_out" => {
            "only an action that waits for approval or has a time limit can end this way"
        }
        "branch_failed" => "only an action with branches can end with it",
        SKIPPED => "only an action with a `condition` can be skipped",
        _ => "none of the action types used here can end with it",
    })
}
