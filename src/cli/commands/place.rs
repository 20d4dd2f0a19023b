//! `/where`: the location of the session, what waits for what, and the remaining budget.

use serde_json::Value;

use crate::cli::commands::trace::{by_name, label, times};
use crate::cli::language::{chosen, filled, listed, translated};
use bcc_runtime::run::location::{LocationKind, LocationLevel};
use bcc_runtime::run::session::Session;

/// The location from the phase to the action. `outcome` is that of the last turn, or null.
pub fn place(session: &Session, outcome: &Value) -> String {
    let place = session.place();
    let levels = session.levels();
    let part = |part: Option<String>| part.unwrap_or_else(|| "–".into());
    let max_rounds = levels.last().and_then(|level| level.max_rounds.or_else(|| max_rounds_of(outcome, &place.path)));
    let round = place.round.map(|round| format!(", {}", round_text(round.into(), max_rounds))).unwrap_or_default();
    let names = [place.phase_id, place.topic_id, place.action_id].map(part).join(" › ");
    let details = filled("(path {path}, session {session})", &[("path", &place.path), ("session", &session.id)]);
    let mut lines = vec![format!("{names}{round}   {details}")];
    lines.extend(levels.iter().enumerate().map(|(number, level)| level_line(level, number + 1 == levels.len())));
    let (route_hops, max_hops) = session.route_hops();
    if route_hops > 0 {
        let routes = session.recent_routes().join("; ");
        let values = [("hops", route_hops.to_string()), ("most", max_hops.to_string()), ("routes", routes)];
        let literal = "{hops} of at most {most} since your last answer: {routes}";
        lines.push(label("routes", &filled(literal, &by_name(&values))));
    }
    for (trigger, count) in session.fired() {
        let times_text = times(count);
        let values = [("trigger", trigger), ("times", &*times_text)];
        lines.push(label("fired", &filled("the trigger {trigger}, {times}", &values)));
    }
    lines.push(budget(session));
    lines.join("\n")
}

fn budget(session: &Session) -> String {
    let resources = session.resource_use().map(|spent| {
        let text = translated(&spent.usage()).into_owned();
        match spent.left().map(|left| spent.resource.number(left)) {
            Some(left) => filled("{told} ({left} left)", &[("told", &text), ("left", &left)]),
            None => text,
        }
    });
    filled("used: {told}", &[("told", &listed(&resources))])
}

/// The maximum number of rounds of the action at `path`, if `outcome` is of this action.
fn max_rounds_of(outcome: &Value, path: &str) -> Option<u32> {
    let is_same_action = outcome.pointer("/location/path").and_then(Value::as_str) == Some(path);
    let max_rounds = outcome.pointer("/metadata/max_rounds").filter(|_| is_same_action)?;
    max_rounds.as_u64().and_then(|max_rounds| u32::try_from(max_rounds).ok())
}

/// A round, with the maximum if it is known.
fn round_text(round: u64, max_rounds: Option<u32>) -> String {
    let (round, max_rounds) = (round.to_string(), max_rounds.map(|max_rounds| max_rounds.to_string()));
    match max_rounds {
        Some(max_rounds) => filled("round {round} of {most}", &[("round", &round), ("most", &max_rounds)]),
        None => filled("round {round}", &[("round", &round)]),
    }
}

fn level_line(level: &LocationLevel, innermost: bool) -> String {
    let mut parts = vec![match &level.name {
        Some(name) => format!("{} ({name})", level.id),
        None => level.id.clone(),
    }];
    if level.visit > 1 {
        parts.push(filled("visit {visit}", &[("visit", &level.visit.to_string())]));
    }
    if let Some(element) = &level.element {
        let number = level.number.to_string();
        parts.push(filled("element {number}: {element}", &[("number", &number), ("element", element)]));
    }
    if let Some(round) = level.round {
        parts.push(round_text(round.into(), level.max_rounds));
    }
    if level.retries > 0 {
        parts.push(filled("restarted {times}", &[("times", &times(level.retries.into()))]));
    }
    if let Some(brought) = &level.inserted_by {
        parts.push(brought.render(chosen()));
    }
    if level.holds_answer {
        parts.push(translated("your answer is saved for it").into_owned());
    }
    if level.advised {
        parts.push(translated("advice from a monitor is pending for its next turn").into_owned());
    }
    let name = match level.kind {
        LocationKind::Phase => "phase",
        LocationKind::Topic => "topic",
        LocationKind::Block => "case",
        LocationKind::Skill => "skill",
        LocationKind::Single => "inserted",
        LocationKind::Action if innermost => "action",
        LocationKind::Action => "  outside",
    };
    let waits = if level.kind == LocationKind::Action && !innermost {
        translated("; waiting for the actions inside it")
    } else {
        "".into()
    };
    label(name, &format!("{}{waits}", listed(&parts)))
}
