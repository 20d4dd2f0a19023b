//! Coverage as JSON (docs/coverage.md, "As JSON"): fields may be added, never renamed or removed.

use serde_json::{Map, Value, json};

use crate::test_runner::coverage::coverage::{Coverage, Covered, Figure};
use crate::test_runner::coverage::item::{CoverageItem, ItemKind};

pub fn json(coverage: &Coverage) -> Value {
    let mut value = json!({
        "version": 1,
        "total": figure(coverage.total()),
        "endings": figure(coverage.endings()),
    });
    put_figures(&mut value, |what| coverage.figure(what));
    if let Some(fields) = value.as_object_mut() {
        fields.insert("files".into(), coverage.files().map(file).collect());
    }
    value
}

fn file(covered: &Covered) -> Value {
    let outline = &covered.outline;
    let mut value = json!({
        "file": outline.file.name(),
        "id": outline.id,
        "name": outline.name,
        "sessions": covered.sessions,
        "total": figure(covered.total()),
        "endings": figure(covered.endings()),
    });
    put_figures(&mut value, |what| covered.figure(what));
    if let Some(fields) = value.as_object_mut() {
        fields.insert("items".into(), outline.items.iter().map(|inner| item(covered, inner)).collect());
    }
    value
}

fn put_figures(value: &mut Value, of: impl Fn(ItemKind) -> Figure) {
    if let Some(fields) = value.as_object_mut() {
        fields.extend(ItemKind::ALL.map(|what| (what.plural().to_owned(), figure(of(what)))));
    }
}

/// `percent` has one decimal place and is never rounded up; it is null if the total is zero.
fn figure(figure: Figure) -> Value {
    #[allow(clippy::cast_precision_loss)] // at most 1000
    let percent = figure.permille().map(|permille| permille as f64 / 10.0);
    json!({ "covered": figure.covered, "total": figure.total, "percent": percent })
}

fn item(covered: &Covered, item: &CoverageItem) -> Value {
    let tally = covered.tally(item);
    let mut value = json!({
        "what": item.key.what().name(),
        "id": item.key.id(),
        "about": item.description,
        "line": item.line,
        "end_line": item.last_line,
        "ran": tally.ran,
        "skipped": tally.skipped,
    });
    let Some(fields) = value.as_object_mut() else { return value };
    if item.key.what() == ItemKind::Action {
        fields.insert("exit_reasons".into(), exits(covered, item));
    }
    fields.insert("items".into(), item.children.iter().map(|inner| self::item(covered, inner)).collect());
    value
}

/// How often an action ended with each of its exit reasons, and with others that occurred, such as `error`.
fn exits(covered: &Covered, item: &CoverageItem) -> Value {
    let id = item.key.id();
    let mut exits: Map<String, Value> =
        item.exits.iter().map(|reason| ((*reason).to_owned(), covered.exits(id, reason).into())).collect();
    let met = covered.counts.exits.iter().filter(|((action, _), _)| action == id);
    exits.extend(met.map(|((_, reason), times)| (reason.clone(), Value::from(*times))));
    Value::Object(exits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runner::played::play;

    #[test]
    fn the_shape_is_the_documented_one() {
        let script = "session:
  session_id: s
  session_name: 初谈
  on_exit: { off_topic: next }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: a
              config: { content: 问, max_rounds: 2 }
";
        let replies = "a: [{content: 问, EXIT: 'NO'}, {content: 好, EXIT: 'YES'}]";
        let played = play(&[("script.yaml", script)], replies, &["答"]);
        let mut coverage = Coverage::default();
        coverage.add(&played.program, &played.events);
        let name = coverage.files().next().unwrap().outline.file.name().to_owned();
        insta::assert_json_snapshot!(json(&coverage.renamed(|other| other.replace(&name, "script.yaml"))));
    }
}
