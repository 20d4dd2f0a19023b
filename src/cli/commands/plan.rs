//! `/plan`: the actions of the topic as this session has them now, and what plans changed of them.

use serde_json::Value;

use crate::archive::contract::Archive;
use crate::cli::commands::trace::{field, ids, label};
use crate::engine::error::EngineError;
use crate::engine::export::events_of;
use crate::run::session::Session;

/// The topic that the session is in.
///
/// # Errors
/// When the store cannot be read.
pub async fn plan(session: &Session, archive: &dyn Archive) -> Result<String, EngineError> {
    let Some(outline) = session.outline() else { return Ok("the session is in no topic".into()) };
    let mut plans = Vec::new();
    for mut event in events_of(archive, &session.id, "orchestrated").await? {
        let path = event.pointer("/location/path").and_then(Value::as_str).unwrap_or_default();
        let here = path == outline.path || path.strip_prefix(&outline.path).is_some_and(|rest| rest.starts_with('/'));
        if here {
            session.mask(&mut event);
            plans.push(event);
        }
    }
    let mut lines = vec![format!("the topic {}:", outline.path)];
    let first = plans.iter().find(|plan| accepted(plan));
    let written = |id: &str| first.is_none_or(|plan| names(plan, "original").any(|original| original == id));
    for (number, (id, kind)) in outline.actions.iter().enumerate() {
        let mark = match number.cmp(&outline.next) {
            std::cmp::Ordering::Less => "✓",
            std::cmp::Ordering::Equal => "▸",
            std::cmp::Ordering::Greater => " ",
        };
        let new = if written(id) { "" } else { ", put in by a plan" };
        lines.push(format!("  {mark} {id} ({kind}{new})"));
    }
    if let Some(first) = first {
        lines.push(label("as written", &ids(first, "original")));
    }
    if plans.is_empty() {
        lines.push("no plan was made for it: these are the actions of the script".to_owned());
    }
    for plan in &plans {
        let what = if accepted(plan) { "accepted" } else { "refused" };
        let told = [field(plan, "reason"), field(plan, "why")];
        let told = told.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        lines.push(label("plan", &format!("{} {what}: {told}", field(plan, "route"))));
    }
    Ok(lines.join("\n"))
}

fn accepted(plan: &Value) -> bool {
    plan.get("accepted") == Some(&Value::Bool(true))
}

fn names<'p>(plan: &'p Value, list: &str) -> impl Iterator<Item = &'p str> {
    plan.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
