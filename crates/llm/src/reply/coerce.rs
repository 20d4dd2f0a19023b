//! Coerces a reply to its shape, field by field, and records every coercion (docs/replies.md).

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::field::{Field, Property, Verdict, type_name};
use crate::reply::shape::ReplyShape;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coercion {
    Missing,
    /// It had another type; it was set to its default, or removed if it has none.
    Mistyped,
    /// It was not an allowed value; it was set to its default.
    NotOneOf,
    /// It had another type or notation and was converted without loss.
    Coerced,
    /// It violated another rule of the schema; it was set to its default, or removed if it has none.
    Invalid,
    /// The reply was a list, which became this field.
    BareList,
}

impl Coercion {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Mistyped => "mistyped",
            Self::NotOneOf => "not_one_of",
            Self::Coerced => "coerced",
            Self::Invalid => "invalid",
            Self::BareList => "bare_list",
        }
    }
}

/// The name, which a language may replace by words.
impl ToMessage for Coercion {
    fn to_message(&self) -> Message {
        Message::word(self.name())
    }
}

/// What is expected or found in a [`CoercionRecord`], as a message. The allowed values stay as they are.
pub fn shape_words(shape: &str) -> Message {
    if let Some(choices) = shape.strip_prefix("one of ").filter(|_| shape != ONE_OF_ITS_CHOICES) {
        return msg!("one of {}", choices);
    }
    if let Some(keyword) = shape.strip_prefix("a value that satisfies `").and_then(|rest| rest.strip_suffix('`')) {
        return msg!("a value that satisfies `{}`", keyword);
    }
    match shape.rsplit_once(" or ") {
        Some((names, "null")) if names != "a value" => msg!("{} or null", types(names)),
        Some((names, last)) if shape != "yes or no" && last != "null" => msg!("{} or {}", types(names), types(last)),
        _ => types(shape),
    }
}

/// Names of types, each of which a catalogue may contain.
fn types(names: &str) -> Message {
    Message::list(Joint::Item, names.split(", ").map(|name| Message::Word(name.to_owned().into())))
}

/// The expectation if a value that means something else has several of them.
pub(crate) const ONE_OF_ITS_CHOICES: &str = "one of its choices";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoercionRecord {
    /// The JSON pointer of the field: `/metrics/user_engagement`; empty for the reply itself.
    pub path: String,
    #[serde(rename = "bending")]
    pub kind: Coercion,
    /// What the schema expects: `string`, `one of continue_needed, …`.
    pub expected: String,
    /// The type of the original value, such as `number`, or `nothing`; never the value itself.
    pub found: String,
}

const NOTHING: &str = "nothing";

/// Coerces `object` to `shape` and returns it with the coercions. The result is valid under [`ReplyShape::schema`]. Keys that are
/// not in the schema are unchanged, unless it forbids them.
pub(crate) fn coerce_object(
    mut object: Map<String, Value>,
    shape: &ReplyShape,
) -> (Map<String, Value>, Vec<CoercionRecord>) {
    let mut records = coerce_properties(shape.root().properties(), &mut object);
    if shape.validator().is_some() {
        object = enforce_schema(object, shape, &mut records);
    }
    (object, records)
}

struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    name: &'a str,
}

impl FieldPath<'_> {
    fn pointer(&self) -> String {
        let mut names = vec![self.name];
        let mut parent = self.parent;
        while let Some(path) = parent {
            names.push(path.name);
            parent = path.parent;
        }
        names.reverse();
        pointer(&names)
    }

    fn record(&self, coercion: Coercion, field: &Field, found: &str) -> CoercionRecord {
        CoercionRecord { path: self.pointer(), kind: coercion, expected: field.expected(), found: found.to_owned() }
    }
}

/// The JSON pointer (RFC 6901) with these names.
pub(crate) fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Coerces the fields of `object` that are listed in `properties`.
pub(crate) fn coerce_properties(properties: &[Property], object: &mut Map<String, Value>) -> Vec<CoercionRecord> {
    let mut records = Vec::new();
    coerce_nested(properties, object, None, &mut records);
    records
}

fn coerce_nested(
    properties: &[Property],
    object: &mut Map<String, Value>,
    parent: Option<&FieldPath<'_>>,
    records: &mut Vec<CoercionRecord>,
) {
    for Property { name, required, field } in properties {
        let path = FieldPath { parent, name };
        let Some(value) = object.get_mut(name) else {
            if *required {
                records.push(path.record(Coercion::Missing, field, NOTHING));
                reset(object, name, field);
            }
            continue;
        };
        let rejected = match field.check(value) {
            Verdict::Fits => None,
            Verdict::Respelled(plain) => {
                *value = plain;
                None
            }
            Verdict::Coerced(read) => {
                records.push(path.record(Coercion::Coerced, field, type_name(value)));
                *value = read;
                None
            }
            Verdict::Mistyped => Some(Coercion::Mistyped),
            Verdict::NotOneOf => Some(Coercion::NotOneOf),
        };
        match (rejected, value) {
            (Some(coercion), value) => {
                records.push(path.record(coercion, field, type_name(value)));
                reset(object, name, field);
            }
            (None, Value::Object(parts)) if !field.properties().is_empty() => {
                coerce_nested(field.properties(), parts, Some(&path), records);
            }
            (None, _) => {}
        }
    }
}

/// Sets `name` to the default of `field`, or removes it if there is none.
fn reset(object: &mut Map<String, Value>, name: &str, field: &Field) {
    match field.default() {
        Some(default) => {
            object.insert(name.to_owned(), default.clone());
        }
        None => {
            object.shift_remove(name);
        }
    }
}

/// Enforces the rules that [`coerce_properties`] does not support: fields that violate one are set to their defaults; if the object is
/// still invalid, keys that are not in the schema are removed; as a last resort, all fields are set to their defaults.
fn enforce_schema(
    object: Map<String, Value>,
    shape: &ReplyShape,
    records: &mut Vec<CoercionRecord>,
) -> Map<String, Value> {
    let valid = |value: &Value| shape.validator().is_none_or(|validator| validator.is_valid(value));
    let mut reply = Value::Object(object);
    if valid(&reply) {
        return into_object(reply);
    }
    for violation in shape.validator().map_or_else(Vec::new, |validator| validator.violations(&reply)) {
        let rule = format!("a value that satisfies `{}`", violation.keyword);
        let Some(parts) = reply.as_object_mut() else { break };
        if let Some((path, found)) = reset_nearest(shape.root().properties(), parts, &violation.path) {
            // A field may violate several rules, but is reset only once.
            if !records.iter().any(|record| record.path == path && record.kind == Coercion::Invalid) {
                records.push(CoercionRecord { path, kind: Coercion::Invalid, expected: rule, found: found.to_owned() });
            }
        }
    }
    if valid(&reply) {
        return into_object(reply);
    }
    let expected = "a reply that satisfies the schema".to_owned();
    records.push(CoercionRecord { path: String::new(), kind: Coercion::Invalid, expected, found: "object".to_owned() });
    if let Some(parts) = reply.as_object_mut() {
        parts.retain(|name, _| shape.root().property(name).is_some());
    }
    if valid(&reply) {
        return into_object(reply);
    }
    // The defaults were validated when the shape was built.
    shape.defaults().unwrap_or_default()
}

/// Resets the deepest field along `path` that is in the shape and can be reset. Returns its pointer and the type of the original value.
fn reset_nearest(
    properties: &[Property],
    object: &mut Map<String, Value>,
    path: &str,
) -> Option<(String, &'static str)> {
    let mut rest = path.strip_prefix('/')?.splitn(2, '/');
    let name = rest.next()?.replace("~1", "/").replace("~0", "~");
    let Property { field, required, .. } = properties.iter().find(|property| property.name == name)?;
    let path = pointer(&[&name]);
    if let (Some(deeper), Some(Value::Object(parts))) = (rest.next(), object.get_mut(&name))
        && let Some((below, found)) = reset_nearest(field.properties(), parts, &format!("/{deeper}"))
    {
        return Some((path + &below, found));
    }
    if *required && field.default().is_none() {
        return None;
    }
    let found = type_name(object.get(&name)?);
    reset(object, &name, field);
    Some((path, found))
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::shape::{FORMATS, OutputField};
    use bcc_lang::message::language::Language;
    use bcc_lang::schema::compiled::Compiled;
    use bcc_lang::schema::embedded;
    use bcc_lang::value::declared::DeclaredType;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_is_expected_can_be_said_in_another_language_and_is_the_same_in_english() {
        let table = [
            ("boolean or null", "布尔值或空值"),
            ("string, list or null", "文本、列表或空值"),
            ("string or list", "文本或列表"),
            ("one of YES, NO", "YES, NO 之一"),
            ("one of its choices", "可选值之一"),
            ("yes or no", "是或否"),
            ("a value or null", "值或空值"),
            ("a value that satisfies `minimum`", "满足 `minimum` 的值"),
            ("number", "数字"),
            ("nothing", "空值"),
            ("any value", "任意值"),
        ];
        for (english, chinese) in table {
            let words = shape_words(english);
            assert_eq!((words.to_string().as_str(), words.render(Language::Chinese).as_str()), (english, chinese));
        }
        assert_eq!(Coercion::Mistyped.to_message().render(Language::Chinese), "类型不符");
    }

    /// A schema with rules that coercion does not support, so that the validator is needed.
    fn strict_base() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["title", "plan", "n"],
            "properties": {
                "title": { "type": "string", "minLength": 2, "maxLength": 5, "default": "无题" },
                "n": { "oneOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }], "default": null },
                "plan": {
                    "type": ["object", "null"],
                    "default": null,
                    "required": ["steps"],
                    "properties": {
                        "steps": { "type": "array", "items": { "type": "string", "pattern": "^[a-z]" }, "default": [] },
                        "note": { "type": "string", "maxLength": 3 },
                    },
                },
            },
            "if": { "properties": { "title": { "const": "空" } } },
            "then": { "properties": { "plan": { "const": null } } },
        })
    }

    fn coerced(base: &Value, wanted: &[OutputField], reply: Value) -> (Value, Vec<(String, Coercion)>) {
        let shape = ReplyShape::new(base, wanted).unwrap();
        let Value::Object(object) = reply else { panic!("not an object") };
        let (object, records) = coerce_object(object, &shape);
        (Value::Object(object), records.into_iter().map(|record| (record.path, record.kind)).collect())
    }

    #[test]
    fn an_invalid_optional_field_without_a_default_is_removed() {
        let base = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert_eq!(coerced(&base, &[], json!({ "a": [] })), (json!({}), vec![("/a".into(), Coercion::Mistyped)]));
        assert_eq!(coerced(&base, &[], json!({})), (json!({}), vec![]));
    }

    #[test]
    fn names_in_paths_are_escaped_as_in_json_pointers() {
        let wanted = [OutputField { name: "a/b~c".into(), ..OutputField::default() }];
        assert_eq!(coerced(&json!({}), &wanted, json!({})).1, [("/a~1b~0c".into(), Coercion::Missing)]);
    }

    #[test]
    fn rules_that_coercion_does_not_support_are_enforced_by_the_validator() {
        let good = json!({ "title": "小林", "n": 3, "plan": { "steps": ["a"], "note": "abc" } });
        let with = |path: &str, value: Value| {
            let mut reply = good.clone();
            *reply.pointer_mut(path).unwrap() = value;
            reply
        };
        let invalid = |path: &str| vec![(path.to_owned(), Coercion::Invalid)];
        assert_eq!(coerced(&strict_base(), &[], good.clone()), (good.clone(), vec![]));
        let table = [
            ("/title", json!("x"), json!("无题")),
            ("/n", json!(0), json!(null)),
            ("/plan/steps", json!(["a", "B", "C"]), json!([])),
        ];
        for (path, wrong, settled) in table {
            assert_eq!(coerced(&strict_base(), &[], with(path, wrong)), (with(path, settled), invalid(path)), "{path}");
        }
        let (reply, records) = coerced(&strict_base(), &[], with("/plan/note", json!("abcd")));
        assert_eq!((reply["plan"].clone(), records), (json!({ "steps": ["a"] }), invalid("/plan/note")));
        let mut extra = good.clone();
        extra["more"] = json!(1);
        assert_eq!(coerced(&strict_base(), &[], extra), (good, invalid("")));
    }

    fn any_value() -> impl proptest::strategy::Strategy<Value = Value> {
        let texts = vec!["", "YES", " completed ", "Blocked", "true", "5", "5.0", " 2026-11-21", "今天", "好", "a"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..12).prop_map(Value::from),
            (-1e6..1e6).prop_map(|float: f64| json!(float)),
            (-3i32..12).prop_map(|whole| json!(f64::from(whole))),
            prop::sample::select(texts).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                3 => any_fields(inner).prop_map(Value::Object),
            ]
        })
    }

    /// The field names of the schemas in this test, at any depth.
    const NAMES: &str =
        "safety_risk content EXIT BRIEF metrics progress_suggestion metadata detected risk_type confidence
        reason information_completeness user_engagement emotional_intensity reply_relevance understanding_level
        emotional_tone crisis_signal title plan n steps note w0 w1 w2 w3 w4 w5 w6";

    fn any_fields(
        value: impl proptest::strategy::Strategy<Value = Value>,
    ) -> impl proptest::strategy::Strategy<Value = Map<String, Value>> {
        let names: Vec<&str> = NAMES.split_whitespace().collect();
        let name = prop_oneof![9 => prop::sample::select(names).prop_map(str::to_owned), 1 => any::<String>()];
        prop::collection::vec((name, value), 0..16).prop_map(|fields| fields.into_iter().collect())
    }

    fn any_wanted() -> impl proptest::strategy::Strategy<Value = Vec<OutputField>> {
        let declared = prop::option::of(prop::sample::select(&DeclaredType::ALL));
        let choices = prop_oneof![
            2 => Just(json!([])),
            1 => Just(json!([1, "5", true, null, "好", "A", "a"])),
        ];
        prop::collection::vec((declared, choices), 0..7).prop_map(|items| {
            let wanted = |(position, (declared, choices)): (usize, (Option<DeclaredType>, Value))| {
                let fits = |choice: &Value| declared.is_none_or(|declared| declared.coerce(choice).is_some());
                let choices = choices.as_array().unwrap().iter().filter(|choice| fits(choice)).cloned().collect();
                OutputField { name: format!("w{position}"), declared, choices, ..OutputField::default() }
            };
            items.into_iter().enumerate().map(wanted).collect()
        })
    }

    proptest! {
        #[test]
        fn every_object_is_coerced_to_a_valid_reply_and_only_if_it_is_invalid(
            object in any_fields(any_value()),
            wanted in any_wanted(),
            kind in 0usize..4,
        ) {
            let base = match ["ai_ask", "ai_say", "ai_think"].get(kind) {
                Some(kind) => serde_json::from_str(embedded::reply(kind).unwrap()).unwrap(),
                None => strict_base(),
            };
            let shape = ReplyShape::new(&base, &wanted).unwrap();
            let validator = Compiled::with_formats(shape.schema(), &FORMATS).unwrap();
            let was_valid = validator.is_valid(&Value::Object(object.clone()));

            let (reply, records) = coerce_object(object.clone(), &shape);
            prop_assert_eq!(records.is_empty(), was_valid, "{:?}", records);
            let value = Value::Object(reply.clone());
            prop_assert!(validator.is_valid(&value), "{}: {:?}", value, validator.violations(&value));
            prop_assert_eq!(coerce_object(reply.clone(), &shape), (reply.clone(), vec![]), "bending twice bends no more");

            let paths: std::collections::HashSet<_> = records.iter().map(|record| (&record.path, record.kind)).collect();
            prop_assert_eq!(paths.len(), records.len(), "one bend is recorded once");
            if kind < 3 {
                for (name, value) in &object {
                    if shape.root().property(name).is_none() {
                        prop_assert_eq!(reply.get(name), Some(value), "a key that nobody asked for stays");
                    }
                }
            }
        }
    }
}
