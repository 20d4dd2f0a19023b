//! `skipped-without-route`: an action that may be skipped leads elsewhere when it is completed, but has no route for `skipped`.

use bcc_lang::message::msg;

use crate::collected::{CalleeBody, CollectedAction};
use crate::reasons::{SKIPPED, may_be_skipped};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::skill_topics::{is_skill_topic, skill_topic_of};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::route_parser::{OnExit, RouteTarget, WrittenRoute};
use bcc_lang::script::script::WrittenTopic;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "skipped-without-route";

/// The reasons of an action that did what it was for.
const COMPLETED: [&str; 2] = ["exit_criteria_met", "approved"];

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for action in model.collected.actions.iter().filter(|action| may_be_skipped(action) && !is_skill_topic(action)) {
        let Some(route) = action.on_exit.as_ref().and_then(route_elsewhere) else { continue };
        // The `condition` is how this loop ends.
        let then = route.then.as_ref().map(|then| &then.value);
        if matches!((then, topic_of(model, action)), (Some(RouteTarget::Goto(to)), Some(topic)) if *to == topic.id.value)
        {
            continue;
        }
        if tables(model, action).any(|table| table.routes.iter().any(|route| route.reason.value == SKIPPED)) {
            continue;
        }
        let message = msg!(
            "if `{}` is skipped, the conversation does not follow its route for `{}`, but continues with what comes next",
            shortened(&action.id.value),
            route.reason.value
        );
        let help = "add a route for `skipped` to its `on_exit`; `skipped: next` says that this is meant";
        findings.report(Diagnostic::warning(SLUG, message, model.file, route.reason.span).with_help(help));
    }
}

/// The route by which a completed action leads elsewhere.
fn route_elsewhere(on_exit: &OnExit) -> Option<&WrittenRoute> {
    let leads_elsewhere = |route: &&WrittenRoute| {
        let then = route.then.as_ref().map(|then| &then.value);
        COMPLETED.contains(&route.reason.value.as_str())
            && matches!(
                then,
                Some(RouteTarget::Goto(_) | RouteTarget::SkipTopic | RouteTarget::SkipPhase | RouteTarget::End)
            )
    };
    on_exit.routes.iter().find(leads_elsewhere)
}

fn topic_of<'m>(model: &'m SemanticModel<'_>, action: &CollectedAction) -> Option<&'m WrittenTopic> {
    match action.body {
        CalleeBody::Topic(phase, topic) => model.script?.phases.get(phase)?.topics.get(topic),
        _ => None,
    }
}

/// The tables that are searched for the routes of an action.
fn tables<'m>(model: &'m SemanticModel<'_>, action: &'m CollectedAction) -> impl Iterator<Item = &'m OnExit> {
    let script = model.script.filter(|_| action.cleanup.is_none());
    let (phase, topic) = match action.body {
        CalleeBody::Topic(phase, topic) => {
            let phase = script.and_then(|script| script.phases.get(phase));
            (phase, phase.and_then(|phase| phase.topics.get(topic)))
        }
        _ => (None, None),
    };
    let session = script.filter(|_| topic.is_some());
    let skill_topic = action.parent.and_then(|parent| skill_topic_of(&model.collected, parent));
    let skill_topic = skill_topic.and_then(|number| model.collected.actions.get(number)?.on_exit.as_ref());
    let wider = [
        topic.and_then(|topic| topic.on_exit.as_ref()),
        phase.and_then(|phase| phase.on_exit.as_ref()),
        session.and_then(|script| script.on_exit.as_ref()),
    ];
    action.on_exit.iter().chain(skill_topic).chain(wider.into_iter().flatten())
}
