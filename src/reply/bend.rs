//! Bends a reply to its shape, field by field, and records every bend (LANGUAGE.md section 8: never silent).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reply::extract::shape as shape_word;
use crate::reply::field::{Field, Property, Verdict};
use crate::reply::shape::ReplyShape;

/// What was wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bending {
    /// It was not there; it took its default.
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

/// One field that was bent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bend {
    /// A JSON pointer to it: `/metrics/user_engagement`; empty for the reply itself.
    pub path: String,
    /// What was wrong.
    pub bending: Bending,
    /// What the schema wants there: `string`, `one of continue_needed, …`.
    pub expected: String,
    /// What stood there: `nothing`, or a word for its shape such as `number`; never the value.
    pub found: String,
}

/// What `found` says of a field that is missing.
const NOTHING: &str = "nothing";

/// `object` bent to `shape`, and what was bent. The result is valid under [`ReplyShape::schema`]. Keys that the schema
/// does not name are left alone, unless it forbids them.
pub fn bend(mut object: Map<String, Value>, shape: &ReplyShape) -> (Map<String, Value>, Vec<Bend>) {
    let mut bends = walk(shape.root().properties(), &mut object);
    if shape.validator().is_some() {
        object = settle(object, shape, &mut bends);
    }
    (object, bends)
}

/// Where a walk stands: a name, and the place that it is a part of.
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

    fn bend(&self, bending: Bending, field: &Field, found: &str) -> Bend {
        Bend { path: self.pointer(), bending, expected: field.expected(), found: found.to_owned() }
    }
}

/// The JSON pointer (RFC 6901) through these names.
pub(crate) fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Bends the parts of `object` that `properties` name.
pub(crate) fn walk(properties: &[Property], object: &mut Map<String, Value>) -> Vec<Bend> {
    let mut bends = Vec::new();
    walk_parts(properties, object, None, &mut bends);
    bends
}

fn walk_parts(
    properties: &[Property],
    object: &mut Map<String, Value>,
    above: Option<&Place<'_>>,
    bends: &mut Vec<Bend>,
) {
    for Property { name, required, field } in properties {
        let place = Place { above, name };
        let Some(value) = object.get_mut(name) else {
            if *required {
                bends.push(place.bend(Bending::Missing, field, NOTHING));
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
                bends.push(place.bend(Bending::Coerced, field, shape_word(value)));
                *value = read;
                None
            }
            Verdict::Mistyped => Some(Bending::Mistyped),
            Verdict::NotOneOf => Some(Bending::NotOneOf),
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
fn settle(object: Map<String, Value>, shape: &ReplyShape, bends: &mut Vec<Bend>) -> Map<String, Value> {
    let valid = |value: &Value| shape.validator().is_none_or(|validator| validator.is_valid(value));
    let mut reply = Value::Object(object);
    if valid(&reply) {
        return into_object(reply);
    }
    for violation in shape.validator().map_or_else(Vec::new, |validator| validator.violations(&reply)) {
        let rule = format!("what `{}` asks", violation.keyword);
        let Some(parts) = reply.as_object_mut() else { break };
        if let Some((path, found)) = reset_nearest(shape.root().properties(), parts, &violation.path) {
            // Several rules may be broken inside one field; it is reset once.
            if !bends.iter().any(|bend| bend.path == path && bend.bending == Bending::Invalid) {
                bends.push(Bend { path, bending: Bending::Invalid, expected: rule, found: found.to_owned() });
            }
        }
    }
    if valid(&reply) {
        return into_object(reply);
    }
    let expected = "what the schema asks of the whole reply".to_owned();
    bends.push(Bend { path: String::new(), bending: Bending::Invalid, expected, found: "object".to_owned() });
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
