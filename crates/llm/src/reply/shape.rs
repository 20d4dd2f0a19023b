//! What a reply must look like: the schema of its kind joined with the outputs of its action (docs/replies.md).

use bcc_lang::message::ToMessage;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::reply::coerce;
use crate::reply::field::{Field, defaults, understands};
use bcc_lang::schema::compiled::{Compiled, FormatCheck, SchemaError};
use bcc_lang::value::declared::{DeclaredType, is_date};

/// A `date` of this language is a calendar date or a date and time (section 3), which is more than the standard's.
pub(crate) const FORMATS: [(&str, FormatCheck); 1] = [("date", is_date)];

/// An item of `output`: a value that the reply must carry under a key of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputField {
    pub name: String,
    pub declared: Option<DeclaredType>,
    /// The values it may take; empty for any.
    pub choices: Vec<Value>,
    /// What it means; goes into the schema as its description.
    pub define: Option<String>,
}

/// Why a kind's schema and an action's outputs make no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum ShapeError {
    #[error("the schema of a reply cannot be read: {why}")]
    Unreadable { why: String },
    #[error("the schema of a reply must describe an object with `properties`")]
    NotAnObject,
    #[error("the output `{name}` has the same name as a field that every such reply has; rename it")]
    Reserved { name: String },
    #[error("the output `{name}` is listed twice; rename one of the two")]
    Duplicate { name: String },
    #[error("a choice of the output `{name}` does not match its type, {declared}")]
    Choice { name: String, declared: &'static str },
    /// A field that every reply must have has no default, or one that is not valid.
    #[error("the required field at `{path}` of the reply's schema needs a valid `default`")]
    Default { path: String },
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// The schema of a kind's replies, looked at once for all actions of the kind.
#[derive(Debug)]
pub struct BaseSchema {
    schema: Value,
    names: Vec<String>,
    /// Whether it makes a shape with whatever outputs, as long as their names and choices are right.
    sound: bool,
}

impl BaseSchema {
    /// Looks at a schema. What is wrong with it is told by the shapes that are made over it.
    pub fn new(schema: Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        // An output's own schema is always understood and has a default.
        let sound = understands(&schema) && Built::new(&schema, &[]).is_ok();
        Self { schema, names, sound }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// The shape of an action's replies. Cloning shares it.
#[derive(Clone, Debug)]
pub struct ReplyShape {
    base: Arc<BaseSchema>,
    wanted: Arc<[OutputField]>,
    /// Made when it is first asked for: the check of a script of thousands of actions asks for none.
    built: Arc<OnceLock<Built>>,
}

#[derive(Debug, Default)]
struct Built {
    schema: Arc<Value>,
    root: Field,
    validator: Option<Compiled>,
}

impl ReplyShape {
    /// Joins `base`, the schema of a kind's replies, with the outputs of an action, each of which may be null.
    ///
    /// # Errors
    /// [`ShapeError`]: a name that collides, a choice that does not fit its type, a schema that is none, and a required
    /// field without a valid default.
    pub fn new(base: &Value, wanted: &[OutputField]) -> Result<Self, ShapeError> {
        Self::over(&Arc::new(BaseSchema::new(base.clone())), wanted.to_vec())
    }

    /// [`ReplyShape::new`] over a schema that was looked at before.
    pub fn over(base: &Arc<BaseSchema>, wanted: Vec<OutputField>) -> Result<Self, ShapeError> {
        let built = OnceLock::new();
        if base.sound {
            let mut seen = HashSet::new();
            for item in &wanted {
                let name = || item.name.clone();
                if base.names.contains(&item.name) {
                    return Err(ShapeError::Reserved { name: name() });
                }
                if !seen.insert(item.name.as_str()) {
                    return Err(ShapeError::Duplicate { name: name() });
                }
                choices(item)?;
            }
        } else {
            let _ = built.set(Built::new(&base.schema, &wanted)?);
        }
        Ok(Self { base: Arc::clone(base), wanted: wanted.into(), built: Arc::new(built) })
    }

    fn built(&self) -> &Built {
        // That it can be built was settled when the shape was made.
        self.built.get_or_init(|| Built::new(&self.base.schema, &self.wanted).unwrap_or_default())
    }

    /// The joined schema: what a model is told, and what every [`crate::reply::read::Reply`] keeps.
    pub fn schema(&self) -> &Arc<Value> {
        &self.built().schema
    }

    /// The names that no output may have: the fields of the kind's own schema.
    pub fn reserved(&self) -> impl Iterator<Item = &str> {
        self.base.names.iter().map(String::as_str)
    }

    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().map(|item| item.name.as_str())
    }

    pub fn root(&self) -> &Field {
        &self.built().root
    }

    /// The validator, where the walk alone does not settle whether a reply is valid.
    pub(crate) fn validator(&self) -> Option<&Compiled> {
        self.built().validator.as_ref()
    }

    /// The reply that stands in for one of which nothing could be kept.
    pub(crate) fn defaults(&self) -> Option<Map<String, Value>> {
        defaults(self.root().properties())
    }
}

impl Built {
    fn new(base: &Value, wanted: &[OutputField]) -> Result<Self, ShapeError> {
        let mut schema = base.clone();
        let rules = schema.as_object_mut().ok_or(ShapeError::NotAnObject)?;
        if rules.get("type").is_some_and(|named| named != "object") {
            return Err(ShapeError::NotAnObject);
        }
        let properties = rules.entry("properties").or_insert_with(|| json!({}));
        let properties = properties.as_object_mut().ok_or(ShapeError::NotAnObject)?;
        let reserved = properties.len();
        for (position, item) in wanted.iter().enumerate() {
            let name = item.name.clone();
            match properties.keys().position(|key| *key == name) {
                Some(index) if index < reserved => return Err(ShapeError::Reserved { name }),
                Some(_) => return Err(ShapeError::Duplicate { name }),
                None => debug_assert_eq!(properties.len(), reserved + position),
            }
            properties.insert(name, output_schema(item)?);
        }
        if !wanted.is_empty() {
            let required = rules.entry("required").or_insert_with(|| json!([]));
            let required = required.as_array_mut().ok_or(ShapeError::NotAnObject)?;
            required.extend(wanted.iter().map(|item| Value::String(item.name.clone())));
        }
        // Compiling costs milliseconds, and the walk that bends a reply validates it as well where it knows every rule.
        let validator = if understands(&schema) { None } else { Some(Compiled::with_formats(&schema, &FORMATS)?) };
        let built = Self { root: Field::new(&schema), schema: Arc::new(schema), validator };
        built.check_defaults()?;
        Ok(built)
    }

    fn check_defaults(&self) -> Result<(), ShapeError> {
        for property in self.root.properties().iter().filter(|property| property.required) {
            if property.field.default().is_none() {
                return Err(ShapeError::Default { path: coerce::pointer(&[&property.name]) });
            }
        }
        let mut object = defaults(self.root.properties()).unwrap_or_default();
        if let Some(bend) = coerce::walk(self.root.properties(), &mut object).into_iter().next() {
            return Err(ShapeError::Default { path: bend.path });
        }
        let violations =
            self.validator.as_ref().map_or_else(Vec::new, |validator| validator.violations(&Value::Object(object)));
        match violations.into_iter().next() {
            Some(violation) => Err(ShapeError::Default { path: violation.path }),
            None => Ok(()),
        }
    }
}

fn choices(item: &OutputField) -> Result<Vec<Value>, ShapeError> {
    let typed = |choice: &Value| match item.declared {
        None => Ok(choice.clone()),
        Some(declared) => declared
            .coerce(choice)
            .ok_or_else(|| ShapeError::Choice { name: item.name.clone(), declared: declared.name() }),
    };
    item.choices.iter().filter(|choice| !choice.is_null()).map(typed).collect()
}

fn output_schema(item: &OutputField) -> Result<Value, ShapeError> {
    let mut rules = Map::new();
    if let Some(define) = &item.define {
        rules.insert("description".into(), Value::String(define.clone()));
    }
    if let Some(declared) = item.declared {
        if let Value::Object(typed) = declared.json_schema() {
            rules.extend(typed);
        }
        if let Some(Value::String(named)) = rules.get("type").cloned() {
            rules.insert("type".into(), json!([named, "null"]));
        }
    }
    if !item.choices.is_empty() {
        // The choices of a date are dates: the format has nothing to add.
        rules.remove("format");
        let mut choices = choices(item)?;
        choices.push(Value::Null);
        rules.insert("enum".into(), Value::Array(choices));
    }
    rules.insert("default".into(), Value::Null);
    Ok(Value::Object(rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::schema::embedded;

    fn base(kind: &str) -> Value {
        serde_json::from_str(embedded::reply(kind).unwrap()).unwrap()
    }

    fn wanted(name: &str, declared: Option<DeclaredType>, choices: Value) -> OutputField {
        OutputField { name: name.into(), declared, choices: choices.as_array().unwrap().clone(), define: None }
    }

    #[test]
    fn outputs_join_the_schema_as_nullable_required_fields_after_its_own() {
        let items = [
            OutputField {
                define: Some("叫什么".into()), ..wanted("用户名", Some(DeclaredType::String), json!([]))
            },
            wanted("day", Some(DeclaredType::Date), json!([])),
            wanted("mood", Some(DeclaredType::String), json!(["好", "坏"])),
            wanted("level", Some(DeclaredType::Integer), json!(["1", 2, null])),
            wanted("any", None, json!([])),
        ];
        let shape = ReplyShape::new(&base("ai_think"), &items).unwrap();
        let properties = &shape.schema()["properties"];
        assert_eq!(
            properties["用户名"],
            json!({ "description": "叫什么", "type": ["string", "null"], "default": null })
        );
        assert_eq!(properties["day"], json!({ "type": ["string", "null"], "format": "date", "default": null }));
        assert_eq!(properties["mood"]["enum"], json!(["好", "坏", null]));
        assert_eq!(properties["level"]["enum"], json!([1, 2, null]));
        assert_eq!(properties["any"], json!({ "default": null }));
        assert_eq!(shape.schema()["required"], json!(["BRIEF", "用户名", "day", "mood", "level", "any"]));
        assert_eq!(shape.reserved().collect::<Vec<_>>(), ["BRIEF"]);
        assert_eq!(shape.wanted().collect::<Vec<_>>(), ["用户名", "day", "mood", "level", "any"]);
    }

    #[test]
    fn the_walk_knows_every_rule_of_the_shipped_schemas_and_outputs() {
        let mut items: Vec<OutputField> =
            DeclaredType::ALL.iter().map(|declared| wanted(declared.name(), Some(*declared), json!([]))).collect();
        items.push(wanted("day", Some(DeclaredType::Date), json!(["2026-11-21"])));
        items.push(wanted("any", None, json!([1, "a"])));
        for kind in embedded::replies() {
            assert!(ReplyShape::new(&base(kind), &items).unwrap().validator().is_none(), "{kind}");
        }
    }

    #[test]
    fn names_that_collide_and_choices_of_another_type_are_refused() {
        let refused = |items: &[OutputField]| ReplyShape::new(&base("ai_ask"), items).unwrap_err();
        for name in ["content", "EXIT", "BRIEF", "metrics", "progress_suggestion", "metadata", "safety_risk"] {
            assert_eq!(refused(&[wanted(name, None, json!([]))]), ShapeError::Reserved { name: name.into() });
        }
        let twice = [wanted("a", None, json!([])), wanted("a", None, json!([]))];
        assert_eq!(refused(&twice), ShapeError::Duplicate { name: "a".into() });
        assert_eq!(
            refused(&[wanted("n", Some(DeclaredType::Integer), json!([1, "two"]))]),
            ShapeError::Choice { name: "n".into(), declared: "integer" }
        );
        let ai_think = ReplyShape::new(&base("ai_think"), &[wanted("content", None, json!([]))]);
        assert!(ai_think.is_ok(), "what one kind reserves another may use");
    }

    #[test]
    fn what_is_refused_does_not_depend_on_when_the_shape_is_built() {
        let items = [
            wanted("a", Some(DeclaredType::Integer), json!([1, null])),
            wanted("content", None, json!([])),
            wanted("BRIEF", None, json!([])),
            wanted("n", Some(DeclaredType::Integer), json!(["two"])),
        ];
        let bases = [
            base("ai_think"),
            base("ai_ask"),
            json!({ "type": "object" }),
            json!({ "type": "object", "required": ["a"] }),
            json!({ "type": "object", "required": "a" }),
            json!({ "type": "object", "additionalProperties": false }),
            json!({ "type": "object", "properties": { "a": { "minLength": 3, "default": "y" } } }),
            json!({ "type": "object", "properties": { "x": { "type": "string" } }, "required": ["x"] }),
            json!(true),
        ];
        for base in bases {
            for first in 0..items.len() {
                for twice in [false, true] {
                    let mut wanted = items[first..].to_vec();
                    wanted.extend(twice.then(|| items[first].clone()));
                    let now = Built::new(&base, &wanted);
                    let later = ReplyShape::new(&base, &wanted);
                    assert_eq!(now.as_ref().err(), later.as_ref().err(), "{base} with {wanted:?}");
                    if let (Ok(now), Ok(later)) = (now, later) {
                        assert_eq!(&now.schema, later.schema());
                        assert_eq!(now.validator.is_some(), later.validator().is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn a_base_without_an_object_or_valid_defaults_is_refused() {
        let refused = |base: Value| ReplyShape::new(&base, &[]).unwrap_err();
        assert_eq!(refused(json!(true)), ShapeError::NotAnObject);
        assert_eq!(refused(json!({ "type": "array" })), ShapeError::NotAnObject);
        assert_eq!(refused(json!({ "properties": 1 })), ShapeError::NotAnObject);
        let one = |rules: Value| json!({ "type": "object", "properties": { "a/b": rules }, "required": ["a/b"] });
        let wrong = ShapeError::Default { path: "/a~1b".into() };
        assert_eq!(refused(one(json!({ "type": "string" }))), wrong, "no default");
        assert_eq!(refused(one(json!({ "type": "string", "default": 1 }))), wrong, "mistyped, if without loss");
        assert_eq!(refused(one(json!({ "enum": ["x"], "default": "y" }))), wrong, "not one of");
        assert_eq!(refused(one(json!({ "minLength": 3, "default": "y" }))), wrong, "a rule of the validator");
        assert!(matches!(refused(one(json!({ "type": "text", "default": 1 }))), ShapeError::Schema(_)));
    }
}
