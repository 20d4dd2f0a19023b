//! The records of completed actions that can be undone, as the store keeps them.

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};

use crate::run::frames::{
    Frame, FrameTarget, Frames, ROOT, child, component, id_of, inserted_component, lineage, redacted_key,
};
use crate::run::insertion::Insertion;
use bcc_store::rows::VariableRow;

/// The scope of these records; it exists only in the store.
pub(crate) const COMPENSATIONS: &str = "compensations";

/// A completed action that can be undone. Of the records of a place, only the newest counts ([`newest`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compensation {
    /// Its number in the order of completion.
    pub order: u64,
    /// The frames from the session down to the action, as far as they determine its position and its variables.
    pub frames: Vec<(String, Frame)>,
    /// The path of the variables of the branch that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_path: Option<String>,
    /// Whether the compensation is over, or left to another session.
    #[serde(default)]
    pub done: bool,
}

/// The compensations of a session, by the keys of the frames of their actions.
pub(crate) type Compensations = BTreeMap<String, Compensation>;

/// The component of a frame in the place of an action: without the number of the call, if it is a skill that a part of an action called. When
/// the action runs again, it calls the skill again at the same place. What a route or a trigger inserts is inserted anew each time, and a
/// behavior loop calls a skill for each of its actions.
fn place_component(key: &str, frame: &Frame) -> String {
    let own = component(key);
    match frame.insertion {
        // No id has such a character.
        Some(Insertion::Called) if frame.part > 0 => format!("{}={}", inserted_component(id_of(own), 1), frame.part),
        _ => own.to_owned(),
    }
}

impl Compensation {
    /// The place of its action in a visit of a topic.
    pub(crate) fn place(&self) -> String {
        let components =
            self.frames.iter().filter(|(key, _)| key != ROOT).map(|(key, frame)| place_component(key, frame));
        components.fold(String::new(), |above, component| child(&above, &component))
    }

    /// Whether a session comes to its action again that goes on with the action `start`, where it has these frames: the same action, one
    /// that contains it, or a later one of a list around it.
    pub(crate) fn runs_again(&self, start: &str, frames: &Frames) -> bool {
        let mut above = frames.get(ROOT).map(|frame| (frame, frame.next));
        let mut others = lineage(start);
        for (key, frame) in self.frames.iter().filter(|(key, _)| key != ROOT) {
            let Some((other_key, other)) = others.next().and_then(|key| Some((key, frames.get(key)?))) else {
                return true;
            };
            if place_component(key, frame) != place_component(other_key, other) {
                let is_list =
                    |at: &FrameTarget| matches!(at, FrameTarget::Topic | FrameTarget::Block(_) | FrameTarget::Skill(_));
                return above.is_some_and(|(list, own_next)| is_list(&list.at) && own_next >= list.next);
            }
            above = Some((other, frame.next));
        }
        true
    }
}

/// The records that count, by their places: an action that ran again at the same place is undone once, as it was completed last.
pub(crate) fn newest(compensations: &Compensations) -> BTreeMap<String, (&str, &Compensation)> {
    let mut newest: BTreeMap<String, (&str, &Compensation)> = BTreeMap::new();
    for (key, record) in compensations {
        let place = record.place();
        if newest.get(&place).is_none_or(|(_, other)| other.order < record.order) {
            newest.insert(place, (key, record));
        }
    }
    newest
}

/// The places whose compensation is over.
pub(crate) fn undone_places(compensations: &Compensations) -> BTreeSet<String> {
    newest(compensations).into_iter().filter(|(_, (_, record))| record.done).map(|(place, _)| place).collect()
}

/// Marks those of these stored records as over whose place fits, so that no compensation of them runs.
///
/// Errors: A message with the row that cannot be read or written.
pub(crate) fn leave_out(rows: &mut [VariableRow], fits: impl Fn(&str) -> bool) -> Result<(), Message> {
    let records = compensations_of(rows)?;
    for row in rows.iter_mut().filter(|row| row.scope == COMPENSATIONS) {
        let Some(record) = records.get(&row.path).filter(|record| !record.done && fits(&record.place())) else {
            continue;
        };
        let over = Compensation { done: true, ..record.clone() };
        row.value = serde_json::to_string(&over).map_err(|error| error.to_message())?;
    }
    Ok(())
}

/// Reads the stored records.
/// Errors: A message with the row that cannot be read.
pub(crate) fn compensations_of(rows: &[VariableRow]) -> Result<Compensations, Message> {
    let read = |row: &VariableRow| {
        let read = serde_json::from_str(&row.value);
        let read = read.map_err(|error| msg!("compensation `{}`: {error}", redacted_key(&row.path)))?;
        Ok((row.path.clone(), read))
    };
    rows.iter().filter(|row| row.scope == COMPENSATIONS).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of an action in a skill that an action of the topic called, by its part, and which call of the skill that was.
    fn record(order: u64, part: u32, call: u64) -> (String, Compensation) {
        let inserted = format!("p/t/a/{}", inserted_component("s", call));
        let called =
            Frame { at: FrameTarget::Skill("s".into()), insertion: Some(Insertion::Called), part, ..Frame::default() };
        let frames = vec![(ROOT.to_owned(), Frame::default()), (inserted.clone(), called)];
        (inserted, Compensation { order, frames, branch_path: None, done: false })
    }

    #[test]
    fn each_part_of_an_action_is_a_place_of_its_own_however_often_it_calls_its_skill() {
        let records: Compensations =
            [record(1, 1, 1), record(2, 2, 2), record(3, 1, 3), record(4, 2, 4)].into_iter().collect();
        let orders: Vec<u64> = newest(&records).into_values().map(|(_, record)| record.order).collect();
        assert_eq!(orders, [3, 4]);
    }

    #[test]
    fn calls_that_are_no_part_of_an_action_count_for_themselves() {
        let records: Compensations = [record(1, 0, 1), record(2, 0, 2)].into_iter().collect();
        let orders: Vec<u64> = newest(&records).into_values().map(|(_, record)| record.order).collect();
        assert_eq!(orders, [1, 2]);
        // As in records of earlier releases.
        let stored = serde_json::to_string(&record(1, 0, 1).1).unwrap();
        assert!(!stored.contains("part"), "{stored}");
    }
}
