//! The variables of a kernel, as they can be shown. A cell usually changes a few of them, so each is a row of its own in the store.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The variables of the kernel after the last code that ran, in the order of the kernel, which is that of their first assignment. Copies
/// share them until one of them changes.
#[derive(Clone, Debug, Default)]
pub struct KernelVariables(Arc<IndexMap<String, NumberedValue>>);

/// A value, and its place in the order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberedValue(
    /// The numbers are ascending. 0 for one that no row of the store has yet.
    u64,
    Value,
);

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
        Self(Arc::new(rows.into_iter().collect()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).map(|NumberedValue(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().map(|(name, NumberedValue(_, value))| (name, value))
    }

    pub fn to_map(&self) -> Map<String, Value> {
        self.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Replaces all of them. Those that stay keep their place in the store.
    pub fn replace(&mut self, values: Map<String, Value>) {
        let mut next = self.next_number();
        let mut last = 0;
        let mut number = |name: &str| {
            last = match self.0.get(name) {
                Some(NumberedValue(known, _)) if *known > last => *known,
                _ => {
                    next += 1;
                    next - 1
                }
            };
            last
        };
        let values = values.into_iter().map(|(name, value)| {
            let number = number(&name);
            (name, NumberedValue(number, value))
        });
        self.0 = Arc::new(values.collect());
    }

    fn next_number(&self) -> u64 {
        self.0.values().map(|NumberedValue(number, _)| *number).max().unwrap_or(0).saturating_add(1)
    }

    /// What a store that has `stored` needs in order to have these. Those that no row has get their numbers.
    pub(crate) fn changes_from(&mut self, stored: &Self) -> KernelVariableChanges {
        if self.0.values().any(|NumberedValue(number, _)| *number == 0) {
            self.replace(self.to_map());
        }
        if Arc::ptr_eq(&self.0, &stored.0) {
            return KernelVariableChanges::default();
        }
        let is_new = |(name, value): &(&String, &NumberedValue)| stored.0.get(*name) != Some(*value);
        let put = self.0.iter().filter(is_new).map(|(name, value)| (name.clone(), value.clone())).collect();
        let removed = stored.0.keys().filter(|name| !self.0.contains_key(*name)).cloned().collect();
        KernelVariableChanges { put, removed }
    }
}

impl From<Map<String, Value>> for KernelVariables {
    fn from(values: Map<String, Value>) -> Self {
        Self(Arc::new(values.into_iter().map(|(name, value)| (name, NumberedValue(0, value))).collect()))
    }
}

impl PartialEq for KernelVariables {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
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
        let mut rows: IndexMap<String, NumberedValue> = stored.0.as_ref().clone();
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
            // One that did not fit before comes again in front of the others.
            (json!({ "n": 0, "a": 3, "c": null, "z": 1 }), names(&["n", "a", "c", "z"]), vec![]),
            (json!({}), vec![], names(&["n", "a", "c", "z"])),
        ];
        for (values, put, removed) in cases {
            assert_eq!(replace(&mut variables, values.clone()), (put, removed), "{values}");
        }
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
