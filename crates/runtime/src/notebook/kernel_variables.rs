//! The variables of a kernel, as they can be shown. A cell usually changes a few of them, so each is a row of its own in the store.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The distance of the numbers of neighbours, so that there is room between them.
const DISTANCE: i64 = 1 << 16;

/// The variables of the kernel after the last code that ran, in the order of the kernel, which is that of their first assignment. Copies
/// share them until one of them changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelVariables(Arc<IndexMap<String, KernelVariable>>);

#[derive(Clone, Debug, PartialEq)]
struct KernelVariable {
    /// The numbers are ascending. None for a variable that is not a row of the store yet.
    number: Option<i64>,
    value: Value,
}

/// A variable in its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberedValue(i64, Value);

/// What has to be written and removed so that stored variables become others.
#[derive(Debug, Default)]
pub(crate) struct KernelVariableChanges {
    pub(crate) put: Vec<(String, NumberedValue)>,
    pub(crate) removed: Vec<String>,
}

impl KernelVariables {
    /// From the rows of the store, in any order.
    pub(crate) fn from_rows(rows: impl Iterator<Item = (String, NumberedValue)>) -> Self {
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(_, NumberedValue(number, _))| *number);
        let variable = |NumberedValue(number, value)| KernelVariable { number: Some(number), value };
        Self(Arc::new(rows.into_iter().map(|(name, row)| (name, variable(row))).collect()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).map(|variable| &variable.value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().map(|(name, variable)| (name, &variable.value))
    }

    pub fn to_map(&self) -> Map<String, Value> {
        self.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Replaces all of them. Those that stay keep their number as far as the order permits.
    pub fn replace(&mut self, values: Map<String, Value>) {
        let number = |name: &String| self.0.get(name).and_then(|variable| variable.number);
        let numbers = ascending(values.keys().map(number).collect());
        let variables = values.into_iter().zip(numbers);
        self.0 = Arc::new(variables.map(|((name, value), number)| (name, KernelVariable { number, value })).collect());
    }

    /// What a store that has `stored` needs in order to have these. Those that are not a row yet get their numbers.
    pub(crate) fn changes_from(&mut self, stored: &Self) -> KernelVariableChanges {
        if self.0.values().any(|variable| variable.number.is_none()) {
            self.replace(self.to_map());
        }
        if Arc::ptr_eq(&self.0, &stored.0) {
            return KernelVariableChanges::default();
        }
        let changed = self.0.iter().filter(|(name, variable)| stored.0.get(*name) != Some(*variable));
        let row = |(name, variable): (&String, &KernelVariable)| {
            Some((name.clone(), NumberedValue(variable.number?, variable.value.clone())))
        };
        let removed = stored.0.keys().filter(|name| !self.0.contains_key(*name)).cloned().collect();
        KernelVariableChanges { put: changed.filter_map(row).collect(), removed }
    }
}

/// Numbers in ascending order for all. Those that are there stay if they are ascending; a missing one gets one between its neighbours. If
/// there is no room, the ones behind change as well.
fn ascending(mut numbers: Vec<Option<i64>>) -> Vec<Option<i64>> {
    let mut last = None;
    for number in &mut numbers {
        *number = number.filter(|number| last.is_none_or(|last| *number > last));
        last = number.or(last);
    }
    let mut before = None;
    let mut from = 0;
    while let Some(first) = numbers.iter().skip(from).position(Option::is_none).map(|at| from + at) {
        before = first.checked_sub(1).and_then(|at| *numbers.get(at)?).or(before);
        let next = |end: usize| numbers.iter().skip(end).position(Option::is_some).map(|at| end + at);
        let mut end = next(first);
        let (start, step) = loop {
            let Some(at) = end else { break (before.unwrap_or(0), DISTANCE) };
            let after = numbers.get(at).copied().flatten().unwrap_or_default();
            let places = i64::try_from(at - first).unwrap_or(i64::MAX).saturating_add(1);
            let Some(before) = before else { break (after.saturating_sub(DISTANCE.saturating_mul(places)), DISTANCE) };
            match after.saturating_sub(before) / places {
                0 => end = next(at + 1),
                step => break (before, step),
            }
        };
        let end = end.unwrap_or(numbers.len());
        let mut number = start;
        for place in numbers.iter_mut().take(end).skip(first) {
            number = number.saturating_add(step);
            *place = Some(number);
        }
        from = end;
    }
    numbers
}

impl From<Map<String, Value>> for KernelVariables {
    fn from(values: Map<String, Value>) -> Self {
        let variable = |value| KernelVariable { number: None, value };
        Self(Arc::new(values.into_iter().map(|(name, value)| (name, variable(value))).collect()))
    }
}

/// Stores of earlier versions have them as one object.
impl<'de> Deserialize<'de> for KernelVariables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    /// Replaces the variables, and returns the names of the rows that are written and removed. What the rows give is the same.
    fn replace(variables: &mut KernelVariables, values: Value) -> (Vec<String>, Vec<String>) {
        let stored = variables.clone();
        variables.replace(map(values.clone()));
        let changes = variables.changes_from(&stored);
        let row = |(name, variable): (&String, &KernelVariable)| {
            (name.clone(), NumberedValue(variable.number.unwrap(), variable.value.clone()))
        };
        let mut rows: IndexMap<String, NumberedValue> = stored.0.iter().map(row).collect();
        changes.removed.iter().for_each(|name| _ = rows.swap_remove(name));
        // A store returns them sorted by name.
        rows.extend(changes.put.iter().cloned());
        rows.sort_keys();
        let read = KernelVariables::from_rows(rows.into_iter());
        assert_eq!(read, *variables);
        assert_eq!(Value::Object(read.to_map()).to_string(), values.to_string(), "in this order");
        (changes.put.into_iter().map(|(name, _)| name).collect(), changes.removed)
    }

    #[test]
    fn only_rows_of_changed_variables_are_written() {
        let mut variables = KernelVariables::default();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let cases = [
            (json!({ "z": 1, "b": 2, "a": 3 }), names(&["z", "b", "a"]), vec![]),
            (json!({ "z": 1, "b": 2, "a": 3 }), vec![], vec![]),
            (json!({ "z": 1, "b": [5], "a": 3, "c": null }), names(&["b", "c"]), vec![]),
            // Deleted, and deleted and assigned again.
            (json!({ "z": 1, "a": 3, "c": null }), vec![], names(&["b"])),
            (json!({ "a": 3, "c": null, "z": 1 }), names(&["z"]), vec![]),
            // Some that did not fit before come again in front of the others and between them.
            (
                json!({ "n": 0, "m": 0, "a": 3, "x": 4, "y": 5, "c": null, "z": 1 }),
                names(&["n", "m", "x", "y"]),
                vec![],
            ),
            (json!({ "a": 3, "c": null, "z": 1 }), vec![], names(&["n", "m", "x", "y"])),
            (json!({}), vec![], names(&["a", "c", "z"])),
        ];
        for (values, put, removed) in cases {
            assert_eq!(replace(&mut variables, values.clone()), (put, removed), "{values}");
        }
    }

    #[test]
    fn variables_that_come_again_and_again_get_room_between_the_others() {
        let mut variables = KernelVariables::default();
        replace(&mut variables, json!({ "a": 1, "b": 2 }));
        let mut written = 0;
        for round in 0..40 {
            written += replace(&mut variables, json!({ "a": 1, "x": round, "b": 2 })).0.len();
            written += replace(&mut variables, json!({ "a": 1, "b": 2 })).0.len();
        }
        assert_eq!(written, 40);
        // Each in front of the one before: sometimes there is no room.
        let mut names = vec!["b".to_owned()];
        for round in 0..40 {
            names.insert(0, format!("n{round}"));
            let all = names.iter().map(|name| (name.clone(), json!(2)));
            let (put, removed) = replace(
                &mut variables,
                json!({ "a": 1 }).as_object().unwrap().clone().into_iter().chain(all).collect(),
            );
            assert!(put.len() == 1 || (round > 10 && put.len() <= round + 2), "{round} {put:?}");
            assert_eq!(removed, Vec::<String>::new());
        }
        assert_eq!(ascending(vec![None, Some(i64::MIN + 5), None, Some(i64::MAX), None]).len(), 5);
    }

    #[test]
    fn variables_of_an_older_store_are_written_as_rows() {
        let mut variables: KernelVariables = serde_json::from_value(json!({ "b": 1, "a": 2 })).unwrap();
        let stored = variables.clone();
        let changes = variables.changes_from(&stored);
        assert_eq!(changes.put.len(), 2);
        let read = KernelVariables::from_rows(changes.put.into_iter());
        assert_eq!(Value::Object(read.to_map()).to_string(), r#"{"b":1,"a":2}"#);
    }
}
