//! `/where`: where the session stands, what of it waits for what, and how far it may still go.

use serde_json::Value;

use crate::cli::commands::trace::{label, times};
use crate::run::session::Session;
use crate::run::whereabouts::{Level, What};

/// The whole way from the phase to the action. `outcome` is that of the last turn, or null.
pub fn place(session: &Session, outcome: &Value) -> String {
    let place = session.place();
    let levels = session.levels();
    let part = |part: Option<String>| part.unwrap_or_else(|| "–".into());
    let most = levels.last().and_then(|level| level.most_rounds.or_else(|| told_rounds(outcome, &place.path)));
    let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
    let round = place.round.map(|round| format!(", round {round}{most}")).unwrap_or_default();
    let mut lines = vec![format!(
        "{} › {} › {}{round}   (path {}, session {})",
        part(place.phase_id),
        part(place.topic_id),
        part(place.action_id),
        place.path,
        session.id
    )];
    lines.extend(levels.iter().enumerate().map(|(number, level)| told(level, number + 1 == levels.len())));
    let (hops, most) = session.hops();
    if hops > 0 {
        let way = session.way().join("; ");
        lines.push(label("routes", &format!("{hops} of at most {most} since your last answer: {way}")));
    }
    for (trigger, count) in session.fired() {
        lines.push(label("fired", &format!("the trigger {trigger}, {}", times(count))));
    }
    lines.push(budget(session));
    lines.join("\n")
}

fn budget(session: &Session) -> String {
    let told = session.spent().map(|spent| match spent.left() {
        Some(left) => format!("{} ({} left)", spent.told(), spent.resource.number(left)),
        None => spent.told(),
    });
    format!("used: {}", told.join(", "))
}

/// The rounds of the action at `path`, when the last turn was one of it.
fn told_rounds(outcome: &Value, path: &str) -> Option<u32> {
    let its = outcome.pointer("/location/path").and_then(Value::as_str) == Some(path);
    let most = outcome.pointer("/metadata/max_rounds").filter(|_| its)?;
    most.as_u64().and_then(|most| u32::try_from(most).ok())
}

fn told(level: &Level, innermost: bool) -> String {
    let mut told = vec![match &level.name {
        Some(name) => format!("{} ({name})", level.id),
        None => level.id.clone(),
    }];
    if level.visit > 1 {
        told.push(format!("visit {}", level.visit));
    }
    if let Some(element) = &level.element {
        told.push(format!("element {}: {element}", level.number));
    }
    if let Some(round) = level.round {
        let most = level.most_rounds.map(|most| format!(" of {most}")).unwrap_or_default();
        told.push(format!("round {round}{most}"));
    }
    if level.retries > 0 {
        told.push(format!("begun again {}", times(level.retries.into())));
    }
    if let Some(brought) = &level.brought_by {
        told.push(brought.clone());
    }
    if level.holds_answer {
        told.push("your answer is kept for it".to_owned());
    }
    if level.advised {
        told.push("a monitor's advice waits for its next turn".to_owned());
    }
    let name = match level.what {
        What::Phase => "phase",
        What::Topic => "topic",
        What::Block => "case",
        What::Skill => "skill",
        What::Single => "inserted",
        What::Action if innermost => "action",
        What::Action => "  outside",
    };
    let waits = if level.what == What::Action && !innermost { "; waits for what is inside" } else { "" };
    label(name, &format!("{}{waits}", told.join(", ")))
}
