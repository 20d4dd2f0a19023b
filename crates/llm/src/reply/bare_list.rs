//! A list where a reply should be an object: some replies consist of little more than one list, and models then write only that.

use bcc_lang::message::message::Message;
use bcc_lang::value::depth::{MAX_LEVELS, is_deeper_than};
use serde_json::{Map, Value};

use crate::reply::coerce::{Coercion, CoercionRecord, coerce_object, pointer};
use crate::reply::read::{Reply, UnreadableReply, read};
use crate::reply::repair::record::RepairRecord;
use crate::reply::shape::ReplyShape;
use crate::reply::strategies::{ParseFailure, ParseStrategy};

/// A list of objects without an object around it.
#[derive(Clone, Debug, PartialEq)]
pub struct BareList {
    pub items: Value,
    strategy: ParseStrategy,
    repairs: Vec<RepairRecord>,
}

impl BareList {
    /// The list in `raw`. Text and code fences around it are ignored. A list that is almost JSON is repaired with `repair`, the shape
    /// of the reply, and `field`, the field that it is; one without its end is not: its last item may be incomplete.
    pub fn find(raw: &str, repair: Option<&ReplyShape>, field: &str) -> Option<Self> {
        let list = exact(raw).or_else(|| repaired(raw, repair?, field))?;
        // It is stored, and must be readable again.
        (!is_deeper_than(&list.items, MAX_LEVELS)).then_some(list)
    }

    /// The reply that has this list as its `field`, and is empty otherwise.
    fn into_reply(self, shape: &ReplyShape, field: &str) -> Reply {
        let received = Map::from_iter([(field.to_owned(), self.items)]);
        let (object, mut coercions) = coerce_object(received.clone(), shape);
        // Nobody left out fields of an object that is not there.
        coercions.retain(|record| record.kind != Coercion::Missing);
        let (expected, found) = ("object".to_owned(), "array".to_owned());
        coercions.insert(0, CoercionRecord { path: pointer(&[field]), kind: Coercion::BareList, expected, found });
        Reply::of_list(object, received, self.strategy, coercions, self.repairs)
    }
}

/// [`read`] for a reply that may be only the list that is its `field`. No other object in a text that starts with a list is the reply.
///
/// # Errors
/// As [`read`]; also when the text starts with a list that cannot be read.
pub fn read_or_list(raw: &str, shape: &ReplyShape, repair: bool, field: &str) -> Result<Reply, UnreadableReply> {
    if let Some(list) = BareList::find(raw, Some(shape).filter(|_| repair), field) {
        return Ok(list.into_reply(shape, field));
    }
    if starts_with_list(raw) {
        let error = Message::word("it starts with a list that cannot be read");
        let strategies = ParseStrategy::tried(repair);
        let failures = strategies.map(|strategy| ParseFailure { strategy, error: error.clone() }).collect();
        return Err(UnreadableReply { failures });
    }
    read(raw, shape, repair)
}

/// Whether a reply starts with a list, inside or outside of a code fence.
pub fn starts_with_list(raw: &str) -> bool {
    let raw = raw.trim_start();
    let unfenced = raw.strip_prefix("```").map(|fenced| fenced.trim_start_matches(char::is_alphanumeric).trim_start());
    unfenced.unwrap_or(raw).starts_with('[')
}

fn exact(raw: &str) -> Option<BareList> {
    let start = raw.find('[')?;
    if raw.find('{').is_some_and(|object| object < start) {
        return None;
    }
    let text = raw.get(start..=raw.rfind(']')?)?;
    let items: Value = serde_json::from_str(text).ok()?;
    let strategy = match raw {
        raw if raw == text => ParseStrategy::DirectParse,
        raw if raw.trim() == text => ParseStrategy::TrimAndParse,
        _ => ParseStrategy::ExtractJsonBlock,
    };
    is_usable(&items).then_some(BareList { items, strategy, repairs: vec![] })
}

/// The list with which a reply starts, repaired like the field of an object.
fn repaired(raw: &str, shape: &ReplyShape, field: &str) -> Option<BareList> {
    let start = raw.find('[')?;
    let list = raw.get(start..)?.trim_end().trim_end_matches('`').trim_end();
    if !starts_with_list(raw) || !list.ends_with(']') {
        return None;
    }
    let before = format!("{{\"{field}\": ");
    let mut reply = read(&format!("{before}{list}}}"), shape, true).ok()?;
    let items = reply.received.shift_remove(field).filter(is_usable)?;
    // The positions are those in the raw text.
    let moved = |RepairRecord { kind, at }| RepairRecord { kind, at: (at + start).saturating_sub(before.len()) };
    let repairs = reply.repairs.into_iter().map(moved).collect();
    Some(BareList { items, strategy: ParseStrategy::RepairJson, repairs })
}

fn is_usable(list: &Value) -> bool {
    list.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape() -> ReplyShape {
        let actions = json!({ "type": "array", "items": { "type": "object" }, "default": [] });
        let properties = json!({ "actions": actions, "goal": { "type": "string", "default": "" } });
        ReplyShape::new(&json!({ "type": "object", "required": ["actions", "goal"], "properties": properties }), &[])
            .unwrap()
    }

    fn length(list: Option<BareList>) -> Option<usize> {
        list.map(|list| list.items.as_array().unwrap().len())
    }

    #[test]
    fn a_list_that_is_almost_json_is_repaired_unless_its_end_is_missing() {
        for (raw, count) in [
            ("[{\"action\": \"add\", \"content\": \"x\",},]", Some(1)),
            ("```json\n[{'action': 'finish_thinking'}, {action: 'add', content: 'x'}]\n```", Some(2)),
            ("[{\"action\": \"add\", \"content\": \"a \"quoted\" word\"}]", Some(1)),
            ("[{\"action\": \"add\", \"content\": \"cut", None),
            ("[7,]", None),
            ("no list", None),
        ] {
            assert_eq!(length(BareList::find(raw, Some(&shape()), "actions")), count, "{raw}");
            assert_eq!(BareList::find(raw, None, "actions"), None, "{raw}");
            assert_eq!(read_or_list(raw, &shape(), true, "actions").is_ok(), count.is_some(), "{raw}");
        }
    }

    #[test]
    fn a_list_of_objects_is_found_completely_or_not_at_all() {
        let table = [
            ("[{\"a\": 1}, {\"b\": [2]}]", Some(2), true),
            ("```json\n[{\"a\": 1},\n{\"b\": 2}]\n```", Some(2), true),
            ("Here they are:\n[{\"a\": 1}]", Some(1), false),
            ("[{\"a\": 1}, {\"b\":", None, true),
            ("```\n[{\"a\": 1},]\n```", None, true),
            ("{\"actions\": [{\"a\": 1}]}", None, false),
            ("As in [1], {\"actions\": []}", None, false),
            ("[]", None, true),
            ("no list", None, false),
        ];
        for (raw, count, starts) in table {
            assert_eq!((length(exact(raw)), starts_with_list(raw)), (count, starts), "{raw}");
        }
    }

    #[test]
    fn a_list_is_one_coercion_and_nothing_else_is_missing() {
        for (raw, strategy, repaired_at) in [
            ("[{\"goal\": \"x\"}]", 1, None),
            (" [{\"goal\": \"x\"}]", 2, None),
            ("```\n[{\"goal\": \"x\"}]\n```", 3, None),
            ("```\n[{\"goal\": \"x\",}]\n```", 4, Some(17)),
        ] {
            let reply = read_or_list(raw, &shape(), true, "actions").unwrap();
            assert_eq!(Value::Object(reply.object), json!({ "actions": [{ "goal": "x" }], "goal": "" }), "{raw}");
            assert_eq!(
                (reply.parse_retry_count, reply.repairs.first().map(|repair| repair.at)),
                (strategy, repaired_at)
            );
            let kinds: Vec<(&str, Coercion)> =
                reply.coercions.iter().map(|record| (record.path.as_str(), record.kind)).collect();
            assert_eq!(kinds, [("/actions", Coercion::BareList)], "{raw}");
        }
        let object = read_or_list("{\"actions\": [{\"goal\": \"x\"}]}", &shape(), true, "actions").unwrap();
        assert_eq!(object.coercions.iter().map(|record| record.path.as_str()).collect::<Vec<_>>(), ["/goal"]);
    }
}
