//! The events of a journal that no longer count, because the answer before them was taken back (docs/sessions.md).

use std::borrow::Borrow;

use serde_json::{Value, json};

/// What was taken back in a session.
#[derive(Clone, Debug, Default)]
pub struct TakenBackEvents {
    events: Vec<Value>,
    /// The first and the last event of each range; ranges may overlap.
    ranges: Vec<(u64, u64)>,
}

impl TakenBackEvents {
    /// Of a session with these events `taken_back`, in their order.
    pub fn of(events: Vec<Value>) -> Self {
        let number = |event: &Value, name: &str| event.get(name).and_then(Value::as_u64);
        let ranges = events.iter().filter_map(|event| Some((number(event, "from_seq")?, number(event, "to_seq")?)));
        Self { ranges: ranges.collect(), events }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether the event with this `seq` no longer counts.
    pub fn contains(&self, seq: u64) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&seq))
    }

    fn contains_event(&self, event: &Value) -> bool {
        event.get("seq").and_then(Value::as_u64).is_some_and(|seq| self.contains(seq))
    }

    /// The events that still count.
    pub fn others<E: Borrow<Value>>(&self, mut events: Vec<E>) -> Vec<E> {
        events.retain(|event| !self.contains_event(event.borrow()));
        events
    }

    /// Marks the events that no longer count with `taken_back`.
    pub(crate) fn mark(&self, events: &mut [Value]) {
        for event in events.iter_mut().filter(|event| self.contains_event(event)) {
            if let Some(fields) = event.as_object_mut() {
                fields.insert("taken_back".to_owned(), Value::Bool(true));
            }
        }
    }

    /// One row for each answer that was taken back, for an export.
    pub(crate) fn rows(&self) -> Value {
        let row = |event: &Value| {
            let field = |name: &str| event.get(name).cloned().unwrap_or_default();
            json!({
                "at": field("at"), "from_seq": field("from_seq"), "to_seq": field("to_seq"),
                "effects": field("effects"), "globals": field("globals"), "plans": field("plans"), "location": field("location"),
            })
        };
        self.events.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_in_any_range_no_longer_count() {
        let taken = |from: u64, to: u64| json!({ "from_seq": from, "to_seq": to });
        let taken_back = TakenBackEvents::of(vec![taken(9, 12), taken(5, 14)]);
        let events = |seqs: &[u64]| seqs.iter().map(|seq| json!({ "seq": seq })).collect::<Vec<_>>();
        assert_eq!(taken_back.others(events(&[4, 5, 8, 9, 14, 15])), events(&[4, 15]));
        let mut marked = events(&[4, 14]);
        taken_back.mark(&mut marked);
        assert_eq!(marked, [json!({ "seq": 4 }), json!({ "seq": 14, "taken_back": true })]);
        assert_eq!(TakenBackEvents::default().others(events(&[1])), events(&[1]));
    }
}
