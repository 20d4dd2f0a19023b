//! Rewrites an action whose key is its kind: `- ai_say: text` of the older engine.

use crate::message::msg;

use serde_json::{Map, Value};

use crate::script::legacy::actions::ACTION_LEVEL;
use crate::script::legacy::engine::{LegacyEngineField, LegacyEngineWalk, SLUG};
use crate::script::legacy::ids::{as_scalar, is_id};
use crate::script::legacy::proof::verify_within;
use crate::script::legacy::rewrite::{Rewrite, is_flow};
use crate::script::legacy::wrap::{Placement, Wrap, in_quotes_of};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::yaml::{YamlEntry, YamlNode};

/// The kinds of the older engine.
pub(crate) const KINDS: [&str; 3] = ["ai_say", "ai_ask", "ai_think"];

/// The indentation of fields below `config:`.
const INDENT: usize = 2;

/// The finding about an action whose first key is its kind; `None` for any other action.
pub(crate) fn action_of_key(
    walk: &mut LegacyEngineWalk<'_>,
    node: &YamlNode,
    entries: &[YamlEntry],
    topic: &str,
    number: usize,
) -> Option<LegacyEngineField> {
    let first = entries.first().filter(|first| KINDS.contains(&first.key.value.as_str()))?;
    first.value.as_scalar()?;
    if entries.iter().any(|entry| matches!(entry.key.value.as_str(), "action_type" | "type" | "config" | "content")) {
        return None;
    }
    let kind = first.key.value.as_str();
    let written = entries.iter().any(|entry| entry.key.value == "action_id");
    let id = (!written).then(|| {
        let words = [topic, kind].map(|word| word.split_whitespace().collect::<Vec<_>>().join("_"));
        let words = words.into_iter().filter(|word| is_id(word)).chain([number.to_string()]);
        walk.ids.unique(words.collect::<Vec<_>>().join("_"))
    });
    let message = msg!("`{kind}` is the key of an action of an older engine; here it is its `action_type`");
    let diagnostic = Diagnostic::error(SLUG, message, walk.file, first.key.span);
    let diagnostic = match edits(walk, node, entries, first, id.as_deref()) {
        Some(edits) => diagnostic
            .with_help(msg!(
                "run `bcc-script migrate --write {}` to convert it to the current format",
                walk.file.name()
            ))
            .with_sure_fix(msg!("convert it to the current format"), edits),
        None => diagnostic.with_help(msg!("write `action_type: {kind}`, `action_id` and `config:` with `content`")),
    };
    Some(LegacyEngineField { region: node.span, diagnostic })
}

fn edits(
    walk: &LegacyEngineWalk<'_>,
    node: &YamlNode,
    entries: &[YamlEntry],
    first: &YamlEntry,
    id: Option<&str>,
) -> Option<Vec<Edit>> {
    let file = walk.file;
    let kind = first.key.value.as_str();
    let outside =
        |entry: &YamlEntry| ACTION_LEVEL.contains(&entry.key.value.as_str()) || entry.key.value.starts_with("x-");
    let placements: Vec<Placement> =
        entries.iter().map(|entry| if outside(entry) { Placement::Sibling } else { Placement::Nested }).collect();
    let mut rewrite = Rewrite::of(file);
    let key = |name: &str| in_quotes_of(file.slice(first.key.span), name);
    let mut head = vec![format!("{}: {}", key("action_type"), in_quotes_of(file.slice(first.key.span), kind))];
    head.extend(id.map(|id| format!("{}: {}", key("action_id"), as_scalar(id))));
    let separator = if is_flow(file, node) {
        ", ".to_owned()
    } else {
        let (column, _) = rewrite.column(first.key.span)?;
        format!("\n{}", " ".repeat(column))
    };
    rewrite.insert(first.key.span.start, head.join(&separator) + &separator);
    Wrap { key: "config", indent: INDENT, already_indented: None }.around(&mut rewrite, node, &placements).ok()?;
    rewrite.rename(first.key.span, "content");
    let edits = rewrite.finish();
    let mut expected = Map::from_iter([("action_type".to_owned(), Value::from(kind))]);
    expected.extend(id.map(|id| ("action_id".to_owned(), Value::from(id))));
    let mut config = Map::new();
    for entry in entries {
        let name = if std::ptr::eq(entry, first) { "content" } else { entry.key.value.as_str() };
        let target = if outside(entry) { &mut expected } else { &mut config };
        target.insert(name.to_owned(), entry.value.to_json());
    }
    expected.insert("config".to_owned(), Value::Object(config));
    verify_within(file, node.span, entries, &edits, expected).then_some(edits)
}
