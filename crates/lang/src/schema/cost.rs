//! Estimates how often a JSON Schema checks one part of a value. References can double this number again and again, so that checking would
//! not end. What exceeds the limits is an error of the schema, or of the value.

use crate::message::message::Message;
use crate::message::msg;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// The maximum number of subschemas that may check one part of a value at a depth up to [`ALWAYS_DEPTH`].
const MAX_CHECKS: u64 = 20_000;

/// The depth to which every value can be checked. A schema that refers to itself more than once needs more checks for deeper values.
const ALWAYS_DEPTH: usize = 4;

/// The maximum depth of JSON values.
const MAX_VALUE_DEPTH: usize = 128;

/// The maximum number of steps to check one value: its parts times the checks of each.
const MAX_STEPS: u64 = 40_000_000;

/// The maximum number of subschemas, of different patterns, and of bytes of one pattern when it is compiled.
const MAX_SUBSCHEMAS: usize = 5_000;
const MAX_PATTERNS: usize = 100;
pub(crate) const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// The keywords whose subschemas check the same part of the value: lists, single ones, and by name.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_SINGLE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_NAMED: [&str; 1] = ["dependentSchemas"];

/// The keywords whose subschemas check parts of a list or object, and a name for those parts: of two keywords with different names, at
/// most one checks the same part. Those without a name check any part.
const PART_KEYWORDS: [(&str, &str); 9] = [
    ("items", "items"),
    ("prefixItems", "first_items"),
    ("additionalItems", "items"),
    ("contains", "items"),
    ("unevaluatedItems", "items"),
    ("additionalProperties", "other_properties"),
    ("unevaluatedProperties", "other_properties"),
    ("propertyNames", "names"),
    ("patternProperties", ""),
];

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// How often one part of a value is checked, by its depth.
#[derive(Clone, Debug)]
pub(crate) struct CheckCost {
    /// The highest number up to each depth; deeper parts are checked as often as those of the last one.
    checks: Vec<u64>,
}

/// A schema whose checks cannot be bounded: a JSON pointer into it, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unbounded {
    pub path: String,
    pub message: Message,
}

#[derive(Debug, Default)]
struct Node {
    path: String,
    /// The subschemas that check the same part, once for each entry.
    same: Vec<usize>,
    /// The subschemas that check any property of it.
    any: Vec<usize>,
    /// The subschemas that check the parts with this name: `/a` for the property `a`.
    named: Vec<(String, usize)>,
}

struct Graph<'s> {
    root: &'s Value,
    nodes: Vec<Node>,
    numbers: HashMap<*const Value, usize>,
    patterns: BTreeSet<&'s str>,
    /// The subschemas with an `$anchor` or an `$id`.
    named: HashMap<&'s str, &'s Value>,
}

impl CheckCost {
    /// Estimates the cost of `schema`.
    /// Errors: It checks a part of a value more than [`MAX_CHECKS`] times, refers to itself in a circle, or has too many subschemas or
    /// patterns.
    pub(crate) fn of(schema: &Value) -> Result<Self, Unbounded> {
        let mut graph = Graph {
            root: schema,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            patterns: BTreeSet::new(),
            named: HashMap::new(),
        };
        graph.name(schema);
        graph.node(schema, "")?;
        let order = graph.order()?;
        let mut counts = vec![0_u64; graph.nodes.len()];
        if let Some(root) = counts.first_mut() {
            *root = 1;
        }
        graph.spread(&order, &mut counts);
        let mut checks: Vec<u64> = Vec::new();
        for depth in 0..=MAX_VALUE_DEPTH {
            let total = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
            if total == 0 {
                break;
            }
            if depth <= ALWAYS_DEPTH && total > MAX_CHECKS {
                let most = counts.iter().zip(&graph.nodes).max_by_key(|(count, _)| **count);
                let path = most.map(|(_, node)| node.path.clone()).unwrap_or_default();
                let message = msg!(
                    "one value would be checked against more than {MAX_CHECKS} subschemas, because references multiply"
                );
                return Err(Unbounded { path, message });
            }
            checks.push(checks.last().copied().unwrap_or(0).max(total));
            let next = graph.descend(&order, &counts);
            // From here on, every depth has the same checks, or too many.
            if next == counts || total > MAX_STEPS {
                break;
            }
            counts = next;
        }
        Ok(Self { checks })
    }

    /// Whether `value` can be checked in [`MAX_STEPS`].
    pub(crate) fn allows(&self, value: &Value) -> bool {
        fn measure(value: &Value, depth: usize, parts: &mut u64) -> usize {
            *parts += 1;
            let deepest = match value {
                Value::Array(items) => items.iter().map(|item| measure(item, depth + 1, parts)).max(),
                Value::Object(fields) => fields.values().map(|field| measure(field, depth + 1, parts)).max(),
                _ => None,
            };
            deepest.unwrap_or(depth)
        }
        let mut parts = 0;
        let depth = measure(value, 0, &mut parts);
        let checks = self.checks.get(depth).or(self.checks.last()).copied().unwrap_or(1);
        parts.saturating_mul(checks) <= MAX_STEPS
    }
}

impl<'s> Graph<'s> {
    /// Collects the names that references can use.
    fn name(&mut self, schema: &'s Value) {
        match schema {
            Value::Object(rules) => {
                for keyword in ["$anchor", "$dynamicAnchor", "$id"] {
                    if let Some(name) = rules.get(keyword).and_then(Value::as_str) {
                        self.named.entry(name).or_insert(schema);
                    }
                }
                rules.values().for_each(|inner| self.name(inner));
            }
            Value::Array(items) => items.iter().for_each(|inner| self.name(inner)),
            _ => {}
        }
    }

    fn node(&mut self, schema: &'s Value, path: &str) -> Result<usize, Unbounded> {
        if let Some(number) = self.numbers.get(&std::ptr::from_ref(schema)) {
            return Ok(*number);
        }
        let number = self.nodes.len();
        let unbounded = |message| Err(Unbounded { path: path.to_owned(), message });
        if number == MAX_SUBSCHEMAS {
            return unbounded(msg!("the schema has more than {MAX_SUBSCHEMAS} subschemas"));
        }
        self.numbers.insert(std::ptr::from_ref(schema), number);
        self.nodes.push(Node { path: path.to_owned(), ..Node::default() });
        let Some(rules) = schema.as_object() else { return Ok(number) };
        let patterned = rules.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        self.patterns.extend(patterned.map(|(pattern, _)| pattern.as_str()));
        self.patterns.extend(rules.get("pattern").and_then(Value::as_str));
        if self.patterns.len() > MAX_PATTERNS {
            return unbounded(msg!("the schema has more than {MAX_PATTERNS} different patterns"));
        }
        let mut node = Node { path: path.to_owned(), ..Node::default() };
        for (keyword, inner) in rules {
            let at = format!("{path}/{keyword}");
            let keyword = keyword.as_str();
            if REFERENCES.contains(&keyword) {
                if let Some((target, path)) = inner.as_str().and_then(|reference| self.resolve(reference)) {
                    node.same.push(self.node(target, &path)?);
                }
            } else if SAME_SINGLE.contains(&keyword) {
                node.same.push(self.node(inner, &at)?);
            } else if SAME_LISTS.contains(&keyword) || SAME_NAMED.contains(&keyword) {
                node.same.extend(self.all(inner, &at)?);
            } else if keyword == "properties" {
                for (name, property) in inner.as_object().into_iter().flatten() {
                    let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                    node.named.push((format!("/{name}"), self.node(property, &at)?));
                }
            } else if let Some((_, name)) = PART_KEYWORDS.iter().find(|(known, _)| *known == keyword) {
                match inner {
                    _ if name.is_empty() => node.any.extend(self.all(inner, &at)?),
                    // Each item of `prefixItems` checks another part.
                    Value::Array(_) => {
                        let items = self.all(inner, &at)?.into_iter().enumerate();
                        node.named.extend(items.map(|(index, item)| (format!("{name} {index}"), item)));
                    }
                    _ => node.named.push(((*name).to_owned(), self.node(inner, &at)?)),
                }
            }
        }
        // These keywords evaluate the others again, to learn what they have checked.
        if rules.contains_key("unevaluatedItems") || rules.contains_key("unevaluatedProperties") {
            node.same.extend(node.same.clone());
        }
        if let Some(slot) = self.nodes.get_mut(number) {
            *slot = node;
        }
        Ok(number)
    }

    fn all(&mut self, schemas: &'s Value, path: &str) -> Result<Vec<usize>, Unbounded> {
        match schemas {
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, inner)| self.node(inner, &format!("{path}/{at}"))).collect()
            }
            Value::Object(named) => named
                .iter()
                .map(|(name, inner)| {
                    self.node(inner, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")))
                })
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// The subschema that a reference means, with its path if it is a JSON pointer. The compiler reports one that does not exist.
    fn resolve(&self, reference: &str) -> Option<(&'s Value, String)> {
        if let Some(named) = self.named.get(reference) {
            return Some((named, String::new()));
        }
        let (_, fragment) = reference.split_once('#')?;
        let fragment = fragment.replace("%25", "%").replace("%7E", "~").replace("%22", "\"");
        match self.root.pointer(&fragment) {
            Some(target) => Some((target, fragment)),
            None => self.named.get(fragment.as_str()).map(|named| (*named, String::new())),
        }
    }

    /// The nodes so that each comes before those that check the same part.
    /// Errors: A circle of them.
    fn order(&self) -> Result<Vec<usize>, Unbounded> {
        let mut incoming = vec![0_usize; self.nodes.len()];
        for target in self.nodes.iter().flat_map(|node| &node.same) {
            if let Some(count) = incoming.get_mut(*target) {
                *count += 1;
            }
        }
        let mut order: Vec<usize> =
            incoming.iter().enumerate().filter(|(_, count)| **count == 0).map(|(number, _)| number).collect();
        let mut next = 0;
        while let Some(node) = order.get(next).and_then(|number| self.nodes.get(*number)) {
            next += 1;
            for target in &node.same {
                if let Some(count) = incoming.get_mut(*target) {
                    *count -= 1;
                    if *count == 0 {
                        order.push(*target);
                    }
                }
            }
        }
        match incoming.iter().zip(&self.nodes).find(|(count, _)| **count > 0) {
            Some((_, node)) => {
                let message = msg!("this refers to itself in a circle, so checking a value would never end");
                Err(Unbounded { path: node.path.clone(), message })
            }
            None => Ok(order),
        }
    }

    /// Adds the checks of the same part.
    fn spread(&self, order: &[usize], counts: &mut [u64]) {
        for number in order {
            let (Some(node), Some(count)) = (self.nodes.get(*number), counts.get(*number).copied()) else { continue };
            add(counts, &node.same, count);
        }
    }

    /// The checks of a part of the value. Parts with different names have different checks; the highest numbers count.
    fn descend(&self, order: &[usize], counts: &[u64]) -> Vec<u64> {
        let mut any = vec![0; self.nodes.len()];
        let mut by_name: BTreeMap<&str, BTreeMap<usize, u64>> = BTreeMap::new();
        for (node, count) in self.nodes.iter().zip(counts).filter(|(_, count)| **count > 0) {
            add(&mut any, &node.any, *count);
            for (name, target) in &node.named {
                let checks = by_name.entry(name).or_default().entry(*target).or_default();
                *checks = checks.saturating_add(*count);
            }
        }
        self.spread(order, &mut any);
        let mut highest = vec![0_u64; self.nodes.len()];
        for targets in by_name.into_values() {
            let mut named = vec![0; self.nodes.len()];
            targets.iter().for_each(|(target, checks)| add(&mut named, &[*target], *checks));
            self.spread(order, &mut named);
            highest.iter_mut().zip(named).for_each(|(highest, checks)| *highest = (*highest).max(checks));
        }
        any.iter().zip(highest).map(|(any, named)| any.saturating_add(named)).collect()
    }
}

fn add(counts: &mut [u64], targets: &[usize], count: u64) {
    for target in targets {
        if let Some(slot) = counts.get_mut(*target) {
            *slot = slot.saturating_add(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `levels` definitions, each of which refers to the next one twice.
    fn doubled(levels: usize, keyword: &str) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            definitions.insert(format!("d{level}"), json!({ keyword: [next, next] }));
        }
        definitions.insert(format!("d{levels}"), json!({ "type": "object" }));
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
    }

    #[test]
    fn references_that_multiply_are_an_error_with_their_place() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let error = CheckCost::of(&doubled(40, keyword)).unwrap_err();
            assert_eq!(error.path, "/$defs/d40");
            assert!(error.message.to_string().contains("more than 20000 subschemas"), "{}", error.message);
            assert!(CheckCost::of(&doubled(10, keyword)).is_ok());
        }
    }

    #[test]
    fn a_circle_is_an_error() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } }),
            json!({ "$anchor": "a", "not": { "$ref": "#a" } }),
        ] {
            let error = CheckCost::of(&schema).unwrap_err();
            assert!(error.message.to_string().contains("in a circle"), "{schema}");
        }
    }

    #[test]
    fn a_schema_may_describe_values_of_any_depth() {
        let tree = json!({ "type": "object", "properties": { "l": { "$ref": "#" }, "r": { "$ref": "#" } },
            "items": { "$ref": "#" }, "additionalProperties": { "$ref": "#" } });
        let cost = CheckCost::of(&tree).unwrap();
        let mut value = json!({});
        for _ in 0..100 {
            value = json!({ "l": value, "r": [] });
        }
        assert!(cost.allows(&value));
    }

    #[test]
    fn a_deep_value_of_a_schema_that_refers_to_itself_twice_is_rejected() {
        let part = json!({ "properties": { "c": { "$ref": "#" } } });
        let cost = CheckCost::of(&json!({ "allOf": [part, part] })).unwrap();
        let deep = |levels| (0..levels).fold(json!({}), |value, _| json!({ "c": value }));
        assert!(cost.allows(&deep(8)));
        assert!(!cost.allows(&deep(60)));
    }

    #[test]
    fn subschemas_and_patterns_are_limited() {
        let patterns: Vec<Value> = (0..=MAX_PATTERNS).map(|n| json!({ "pattern": format!("^{n}$") })).collect();
        assert!(CheckCost::of(&json!({ "anyOf": patterns })).is_err());
        let many: Vec<Value> = (0..=MAX_SUBSCHEMAS).map(|n| json!({ "const": n })).collect();
        assert!(CheckCost::of(&json!({ "prefixItems": many })).is_err());
    }
}
