//! Bends a reply to its shape, field by field, and records every bend (docs/replies.md: never silent).

use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::field::{Field, Property, Verdict, shape_word};
use crate::reply::shape::ReplyShape;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coercion {
    Missing,
    /// It was of another type; it took its default (or was removed, having none).
    Mistyped,
    /// It was none of the values that are allowed; it took its default.
    NotOneOf,
    /// It was of another type or spelling and was read without loss.
    Coerced,
    /// It broke another rule of the schema; it took its default (or was removed, having none).
    Invalid,
}

impl Coercion {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Mistyped => "mistyped",
            Self::NotOneOf => "not_one_of",
            Self::Coerced => "coerced",
            Self::Invalid => "invalid",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoercionRecord {
    /// A JSON pointer to it: `/metrics/user_engagement`; empty for the reply itself.
    pub path: String,
    pub bending: Coercion,
    /// What the schema wants there: `string`, `one of continue_needed, …`.
    pub expected: String,
    /// What stood there: `nothing`, or a word for its shape such as `number`; never the value.
    pub found: String,
}

const NOTHING: &str = "nothing";

/// `object` bent to `shape`, and what was bent. The result is valid under [`ReplyShape::schema`]. Keys that the schema
/// does not name are left alone, unless it forbids them.
pub fn bend(mut object: Map<String, Value>, shape: &ReplyShape) -> (Map<String, Value>, Vec<CoercionRecord>) {
    let mut bends = walk(shape.root().properties(), &mut object);
    if shape.validator().is_some() {
        object = settle(object, shape, &mut bends);
    }
    (object, bends)
}

struct Place<'a> {
    above: Option<&'a Place<'a>>,
    name: &'a str,
}

impl Place<'_> {
    fn pointer(&self) -> String {
        let mut names = vec![self.name];
        let mut above = self.above;
        while let Some(place) = above {
            names.push(place.name);
            above = place.above;
        }
        names.reverse();
        pointer(&names)
    }

    fn bend(&self, bending: Coercion, field: &Field, found: &str) -> CoercionRecord {
        CoercionRecord { path: self.pointer(), bending, expected: field.expected(), found: found.to_owned() }
    }
}

/// The JSON pointer (RFC 6901) through these names.
pub(crate) fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Bends the parts of `object` that `properties` name.
pub(crate) fn walk(properties: &[Property], object: &mut Map<String, Value>) -> Vec<CoercionRecord> {
    let mut bends = Vec::new();
    walk_parts(properties, object, None, &mut bends);
    bends
}

fn walk_parts(
    properties: &[Property],
    object: &mut Map<String, Value>,
    above: Option<&Place<'_>>,
    bends: &mut Vec<CoercionRecord>,
) {
    for Property { name, required, field } in properties {
        let place = Place { above, name };
        let Some(value) = object.get_mut(name) else {
            if *required {
                bends.push(place.bend(Coercion::Missing, field, NOTHING));
                reset(object, name, field);
            }
            continue;
        };
        let refused = match field.judge(value) {
            Verdict::Fits => None,
            Verdict::Respelled(plain) => {
                *value = plain;
                None
            }
            Verdict::Coerced(read) => {
                bends.push(place.bend(Coercion::Coerced, field, shape_word(value)));
                *value = read;
                None
            }
            Verdict::Mistyped => Some(Coercion::Mistyped),
            Verdict::NotOneOf => Some(Coercion::NotOneOf),
        };
        match (refused, value) {
            (Some(bending), value) => {
                bends.push(place.bend(bending, field, shape_word(value)));
                reset(object, name, field);
            }
            (None, Value::Object(parts)) if !field.properties().is_empty() => {
                walk_parts(field.properties(), parts, Some(&place), bends);
            }
            (None, _) => {}
        }
    }
}

/// Puts the default of `field` under `name`; without one the key goes.
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

/// Makes `object` keep the rules that the walk does not know: what breaks one takes its default; when that is not enough,
/// keys that the schema does not name go; in the end everything takes its default.
fn settle(object: Map<String, Value>, shape: &ReplyShape, bends: &mut Vec<CoercionRecord>) -> Map<String, Value> {
    let valid = |value: &Value| shape.validator().is_none_or(|validator| validator.is_valid(value));
    let mut reply = Value::Object(object);
    if valid(&reply) {
        return into_object(reply);
    }
    for violation in shape.validator().map_or_else(Vec::new, |validator| validator.violations(&reply)) {
        let rule = format!("a value that satisfies `{}`", violation.keyword);
        let Some(parts) = reply.as_object_mut() else { break };
        if let Some((path, found)) = reset_nearest(shape.root().properties(), parts, &violation.path) {
            // Several rules may be broken inside one field; it is reset once.
            if !bends.iter().any(|bend| bend.path == path && bend.bending == Coercion::Invalid) {
                bends.push(CoercionRecord {
                    path,
                    bending: Coercion::Invalid,
                    expected: rule,
                    found: found.to_owned(),
                });
            }
        }
    }
    if valid(&reply) {
        return into_object(reply);
    }
    let expected = "a reply that satisfies the schema".to_owned();
    bends.push(CoercionRecord {
        path: String::new(),
        bending: Coercion::Invalid,
        expected,
        found: "object".to_owned(),
    });
    if let Some(parts) = reply.as_object_mut() {
        parts.retain(|name, _| shape.root().property(name).is_some());
    }
    if valid(&reply) {
        return into_object(reply);
    }
    // That these are valid was checked when the shape was made.
    shape.defaults().unwrap_or_default()
}

/// Resets the deepest field on the way along `path` that the shape names and that can be reset; gives its pointer and the
/// shape of what stood there.
fn reset_nearest(
    properties: &[Property],
    object: &mut Map<String, Value>,
    path: &str,
) -> Option<(String, &'static str)> {
    let mut rest = path.strip_prefix('/')?.splitn(2, '/');
    let name = rest.next()?.replace("~1", "/").replace("~0", "~");
    let Property { field, required, .. } = properties.iter().find(|property| property.name == name)?;
    let here = pointer(&[&name]);
    if let (Some(deeper), Some(Value::Object(parts))) = (rest.next(), object.get_mut(&name))
        && let Some((below, found)) = reset_nearest(field.properties(), parts, &format!("/{deeper}"))
    {
        return Some((here + &below, found));
    }
    if *required && field.default().is_none() {
        return None;
    }
    let found = shape_word(object.get(&name)?);
    reset(object, &name, field);
    Some((here, found))
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
    use bcc_lang::schema::compiled::Compiled;
    use bcc_lang::schema::embedded;
    use bcc_lang::value::declared::DeclaredType;
    use proptest::prelude::*;
    use serde_json::json;

    /// Rules that the walk does not know, so that the validator has to settle them.
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

    fn bent(base: &Value, wanted: &[OutputField], reply: Value) -> (Value, Vec<(String, Coercion)>) {
        let shape = ReplyShape::new(base, wanted).unwrap();
        let Value::Object(object) = reply else { panic!("not an object") };
        let (object, bends) = bend(object, &shape);
        (Value::Object(object), bends.into_iter().map(|bend| (bend.path, bend.bending)).collect())
    }

    #[test]
    fn an_optional_field_without_a_default_goes_when_it_does_not_fit() {
        let base = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert_eq!(bent(&base, &[], json!({ "a": [] })), (json!({}), vec![("/a".into(), Coercion::Mistyped)]));
        assert_eq!(bent(&base, &[], json!({})), (json!({}), vec![]));
    }

    #[test]
    fn names_in_paths_are_escaped_as_json_pointers() {
        let wanted = [OutputField { name: "a/b~c".into(), ..OutputField::default() }];
        assert_eq!(bent(&json!({}), &wanted, json!({})).1, [("/a~1b~0c".into(), Coercion::Missing)]);
    }

    #[test]
    fn rules_that_the_walk_does_not_know_are_settled_by_the_validator() {
        let good = json!({ "title": "小林", "n": 3, "plan": { "steps": ["a"], "note": "abc" } });
        let with = |path: &str, value: Value| {
            let mut reply = good.clone();
            *reply.pointer_mut(path).unwrap() = value;
            reply
        };
        let invalid = |path: &str| vec![(path.to_owned(), Coercion::Invalid)];
        assert_eq!(bent(&strict_base(), &[], good.clone()), (good.clone(), vec![]));
        let table = [
            ("/title", json!("x"), json!("无题")),
            ("/n", json!(0), json!(null)),
            ("/plan/steps", json!(["a", "B", "C"]), json!([])),
        ];
        for (path, wrong, settled) in table {
            assert_eq!(bent(&strict_base(), &[], with(path, wrong)), (with(path, settled), invalid(path)), "{path}");
        }
        let (reply, bends) = bent(&strict_base(), &[], with("/plan/note", json!("abcd")));
        assert_eq!((reply["plan"].clone(), bends), (json!({ "steps": ["a"] }), invalid("/plan/note")));
        let mut extra = good.clone();
        extra["more"] = json!(1);
        assert_eq!(bent(&strict_base(), &[], extra), (good, invalid("")));
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

    /// The names that the schemas in this test give to fields, at any depth.
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
                OutputField { name: format!("w{position}"), declared, choices, define: None }
            };
            items.into_iter().enumerate().map(wanted).collect()
        })
    }

    proptest! {
        #[test]
        fn whatever_a_model_writes_is_bent_to_a_valid_reply_and_only_when_it_was_not(
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

            let (reply, bends) = bend(object.clone(), &shape);
            prop_assert_eq!(bends.is_empty(), was_valid, "{:?}", bends);
            let value = Value::Object(reply.clone());
            prop_assert!(validator.is_valid(&value), "{}: {:?}", value, validator.violations(&value));
            prop_assert_eq!(bend(reply.clone(), &shape), (reply.clone(), vec![]), "bending twice bends no more");

            let paths: std::collections::HashSet<_> = bends.iter().map(|bend| (&bend.path, bend.bending)).collect();
            prop_assert_eq!(paths.len(), bends.len(), "one bend is recorded once");
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
