//! `/plan`: the current actions of the topic in this session, and what plans changed.

use serde_json::Value;

use crate::cli::commands::trace::{ids, label, plan_summary};
use crate::cli::language::{filled, translated};
use bcc_engine::error::EngineError;
use bcc_engine::export::events_of;
use bcc_engine::taken_back::TakenBackEvents;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

pub async fn plan(session: &Session, store: &dyn Store) -> Result<String, EngineError> {
    let Some(outline) = session.outline() else { return Ok(translated("the session is not in a topic").into_owned()) };
    let mut plans = Vec::new();
    let taken_back = TakenBackEvents::of(events_of(store, &session.id, "taken_back").await?);
    for mut event in taken_back.others(events_of(store, &session.id, "orchestrated").await?) {
        let path = event.pointer("/location/path").and_then(Value::as_str).unwrap_or_default();
        let is_current_topic =
            path == outline.path || path.strip_prefix(&outline.path).is_some_and(|rest| rest.starts_with('/'));
        if is_current_topic {
            session.mask(&mut event);
            plans.push(event);
        }
    }
    let mut lines = vec![filled("the topic {path}:", &[("path", &outline.path)])];
    let first = plans.iter().find(|plan| accepted(plan));
    let written = |id: &str| first.is_none_or(|plan| names(plan, "original").any(|original| original == id));
    let last = plans.iter().rev().find(|plan| accepted(plan));
    let runs = |id: &str| last.is_none_or(|plan| names(plan, "now").any(|now| now == id));
    for (number, (id, kind)) in outline.actions.iter().enumerate() {
        let symbol = match number.cmp(&outline.next) {
            std::cmp::Ordering::Less => "✓",
            std::cmp::Ordering::Equal => "▸",
            std::cmp::Ordering::Greater => " ",
        };
        let changed = match (written(id), runs(id)) {
            (false, _) => ", added by a plan",
            (true, false) => ", skipped by a plan",
            (true, true) => "",
        };
        lines.push(format!("  {symbol} {id} ({kind}{})", translated(changed)));
    }
    if let Some(first) = first {
        lines.push(label("as written", &ids(first, "original")));
    }
    if plans.is_empty() {
        lines.push(translated("no plan was made for this topic: these are the actions of the script").into_owned());
    }
    lines.extend(plans.iter().map(|plan| label("plan", &plan_summary(plan))));
    Ok(lines.join("\n"))
}

fn accepted(plan: &Value) -> bool {
    plan.get("accepted") == Some(&Value::Bool(true))
}

fn names<'p>(plan: &'p Value, list: &str) -> impl Iterator<Item = &'p str> {
    plan.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
