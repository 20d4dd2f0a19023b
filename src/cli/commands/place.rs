//! `/where`: where the session stands, what of it waits for what, and how far it may still go.

use serde_json::Value;

use crate::cli::commands::trace::{by_name, label, times};
use crate::cli::language::{filled, said};
use bcc_runtime::run::location::{LocationKind, LocationLevel};
use bcc_runtime::run::session::Session;

/// The whole way from the phase to the action. `outcome` is that of the last turn, or null.
pub fn place(session: &Session, outcome: &Value) -> String {
    let place = session.place();
    let levels = session.levels();
    let part = |part: Option<String>| part.unwrap_or_else(|| "–".into());
    let most = levels.last().and_then(|level| level.most_rounds.or_else(|| told_rounds(outcome, &place.path)));
    let round = place.round.map(|round| format!(", {}", told_round(round.into(), most))).unwrap_or_default();
    let names = [place.phase_id, place.topic_id, place.action_id].map(part).join(" › ");
    let whole = filled("(path {path}, session {session})", &[("path", &place.path), ("session", &session.id)]);
    let mut lines = vec![format!("{names}{round}   {whole}")];
    lines.extend(levels.iter().enumerate().map(|(number, level)| told(level, number + 1 == levels.len())));
    let (hops, most) = session.hops();
    if hops > 0 {
        let way = session.way().join("; ");
        let values = [("hops", hops.to_string()), ("most", most.to_string()), ("way", way)];
        let literal = "{hops} of at most {most} since your last answer: {way}";
        lines.push(label("routes", &filled(literal, &by_name(&values))));
    }
    for (trigger, count) in session.fired() {
        let often = times(count);
        let values = [("trigger", trigger), ("times", &*often)];
        lines.push(label("fired", &filled("the trigger {trigger}, {times}", &values)));
    }
    lines.push(budget(session));
    lines.join("\n")
}

fn budget(session: &Session) -> String {
    let told = session.spent().map(|spent| {
        let told = said(&spent.told()).into_owned();
        match spent.left().map(|left| spent.resource.number(left)) {
            Some(left) => filled("{told} ({left} left)", &[("told", &told), ("left", &left)]),
            None => told,
        }
    });
    filled("used: {told}", &[("told", &told.join(", "))])
}

/// The rounds of the action at `path`, when the last turn was one of it.
fn told_rounds(outcome: &Value, path: &str) -> Option<u32> {
    let its = outcome.pointer("/location/path").and_then(Value::as_str) == Some(path);
    let most = outcome.pointer("/metadata/max_rounds").filter(|_| its)?;
    most.as_u64().and_then(|most| u32::try_from(most).ok())
}

/// A round, of how many where that is known.
fn told_round(round: u64, most: Option<u32>) -> String {
    let (round, most) = (round.to_string(), most.map(|most| most.to_string()));
    match most {
        Some(most) => filled("round {round} of {most}", &[("round", &round), ("most", &most)]),
        None => filled("round {round}", &[("round", &round)]),
    }
}

fn told(level: &LocationLevel, innermost: bool) -> String {
    let mut told = vec![match &level.name {
        Some(name) => format!("{} ({name})", level.id),
        None => level.id.clone(),
    }];
    if level.visit > 1 {
        told.push(filled("visit {visit}", &[("visit", &level.visit.to_string())]));
    }
    if let Some(element) = &level.element {
        let number = level.number.to_string();
        told.push(filled("element {number}: {element}", &[("number", &number), ("element", element)]));
    }
    if let Some(round) = level.round {
        told.push(told_round(round.into(), level.most_rounds));
    }
    if level.retries > 0 {
        told.push(filled("restarted {times}", &[("times", &times(level.retries.into()))]));
    }
    if let Some(brought) = &level.brought_by {
        told.push(said(brought).into_owned());
    }
    if level.holds_answer {
        told.push(said("your answer is saved for it").into_owned());
    }
    if level.advised {
        told.push(said("advice from a monitor is pending for its next turn").into_owned());
    }
    let name = match level.what {
        LocationKind::Phase => "phase",
        LocationKind::Topic => "topic",
        LocationKind::Block => "case",
        LocationKind::Skill => "skill",
        LocationKind::Single => "inserted",
        LocationKind::Action if innermost => "action",
        LocationKind::Action => "  outside",
    };
    let waits = if level.what == LocationKind::Action && !innermost {
        said("; waiting for the actions inside it")
    } else {
        "".into()
    };
    label(name, &format!("{}{waits}", told.join(", ")))
}
