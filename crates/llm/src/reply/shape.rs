//! The shape of a reply: the schema of its kind combined with the outputs of its action (docs/replies.md).

use bcc_lang::message::ToMessage;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::reply::coerce;
use crate::reply::field::{Field, defaults, supports};
use crate::reply::request_schema::request_schema;
use bcc_lang::schema::compiled::{Compiled, FormatCheck, SchemaError};
use bcc_lang::value::declared::{DeclaredType, is_date};

/// A `date` of this language is a calendar date or a date and time (section 3), unlike the format in the JSON Schema standard.
pub(crate) const FORMATS: [(&str, FormatCheck); 1] = [("date", is_date)];

/// The keyword of a schema with other names of its fields.
const OTHER_NAMES: &str = "x-other-names";

/// An item of `output`: a value that the reply must contain under its own key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputField {
    pub name: String,
    pub declared: Option<DeclaredType>,
    /// The allowed values; empty if any value is allowed.
    pub choices: Vec<Value>,
    /// Its meaning, which becomes the description in the schema.
    pub define: Option<String>,
    /// Whether a reply may leave it out instead of giving null.
    pub optional: bool,
}

/// Why the schema of a kind and the outputs of an action cannot be combined.
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
    /// A required field has no default or an invalid one.
    #[error("the required field at `{path}` of the reply's schema needs a valid `default`")]
    Default { path: String },
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// The schema of a kind's replies, checked once for all actions of the kind.
#[derive(Debug)]
pub struct BaseSchema {
    schema: Value,
    names: Vec<String>,
    /// Other names of its fields that models may use; they are not sent.
    other_names: Vec<String>,
    /// Whether it can be combined with all outputs that have valid names and choices.
    valid: bool,
}

impl BaseSchema {
    /// Checks a schema. Its errors are reported when a shape is built from it.
    pub fn new(mut schema: Value) -> Self {
        let other_names = schema.as_object_mut().and_then(|rules| rules.shift_remove(OTHER_NAMES));
        let other_names = other_names.as_ref().and_then(Value::as_array).into_iter().flatten();
        let other_names = other_names.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        // The schema of an output is always supported and has a default.
        let valid = supports(&schema) && Built::new(&schema, &[]).is_ok();
        Self { schema, names, other_names, valid }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// The shape of an action's replies. Clones share the data.
#[derive(Clone, Debug)]
pub struct ReplyShape {
    base: Arc<BaseSchema>,
    wanted: Arc<[OutputField]>,
    /// Built on first use: checking a script with thousands of actions does not need it.
    built: Arc<OnceLock<Built>>,
}

#[derive(Debug, Default)]
struct Built {
    schema: Arc<Value>,
    root: Field,
    validator: Option<Compiled>,
    /// What is sent to models instead of `schema`: with the meanings of the outputs, and without.
    requested: [OnceLock<Arc<Value>>; 2],
}

impl ReplyShape {
    /// Combines `base`, the schema of a kind's replies, with the outputs of an action, each of which may be null.
    ///
    /// # Errors
    /// [`ShapeError`] for a name collision, a choice of the wrong type, an invalid schema, or a required field without a valid default.
    pub fn new(base: &Value, wanted: &[OutputField]) -> Result<Self, ShapeError> {
        Self::with_base(&Arc::new(BaseSchema::new(base.clone())), wanted.to_vec())
    }

    /// [`ReplyShape::new`] with a schema that was already checked.
    pub fn with_base(base: &Arc<BaseSchema>, wanted: Vec<OutputField>) -> Result<Self, ShapeError> {
        let built = OnceLock::new();
        if base.valid {
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
        // The constructor checked that it can be built.
        self.built.get_or_init(|| Built::new(&self.base.schema, &self.wanted).unwrap_or_default())
    }

    /// The combined schema, which is satisfied by every [`crate::reply::read::Reply`].
    pub fn schema(&self) -> &Arc<Value> {
        &self.built().schema
    }

    /// The schema to send to a model. `explained`: whether the prompt says what the outputs mean.
    pub fn request_schema(&self, explained: bool) -> Arc<Value> {
        let built = self.built();
        let [described, short] = &built.requested;
        let requested = if explained { short } else { described };
        // Every call to a model sends it.
        Arc::clone(requested.get_or_init(|| Arc::new(request_schema(&built.schema, &self.wanted, explained))))
    }

    /// The names that outputs must not use: the fields of the kind's schema.
    pub fn reserved(&self) -> impl Iterator<Item = &str> {
        self.base.names.iter().map(String::as_str)
    }

    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().map(|item| item.name.as_str())
    }

    pub(crate) fn outputs(&self) -> &[OutputField] {
        &self.wanted
    }

    /// The names by which an object in a longer text is recognized as the reply.
    pub(crate) fn own_fields(&self) -> Vec<&str> {
        let properties = self.root().properties().iter().map(|property| property.name.as_str());
        properties.chain(self.base.other_names.iter().map(String::as_str)).collect()
    }

    pub fn root(&self) -> &Field {
        &self.built().root
    }

    /// The validator, if coercion does not support every rule of the schema.
    pub(crate) fn validator(&self) -> Option<&Compiled> {
        self.built().validator.as_ref()
    }

    /// The reply that replaces one without valid fields.
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
            let names = wanted.iter().filter(|item| !item.optional).map(|item| Value::String(item.name.clone()));
            required.extend(names);
        }
        // Compiling takes milliseconds, and is not needed if coercion supports every rule.
        let validator = if supports(&schema) { None } else { Some(Compiled::with_formats(&schema, &FORMATS)?) };
        let root = Field::new(&schema);
        let built = Self { root, schema: Arc::new(schema), validator, requested: Default::default() };
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
        if let Some(record) = coerce::coerce_properties(self.root.properties(), &mut object).into_iter().next() {
            return Err(ShapeError::Default { path: record.path });
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
        // The choices of a date are dates, so the format is redundant.
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
        OutputField {
            name: name.into(),
            declared,
            choices: choices.as_array().unwrap().clone(),
            ..OutputField::default()
        }
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
    fn coercion_supports_every_rule_of_the_built_in_schemas_and_outputs() {
        let mut items: Vec<OutputField> =
            DeclaredType::ALL.iter().map(|declared| wanted(declared.name(), Some(*declared), json!([]))).collect();
        items.push(wanted("day", Some(DeclaredType::Date), json!(["2026-11-21"])));
        items.push(wanted("any", None, json!([1, "a"])));
        for kind in embedded::replies() {
            assert!(ReplyShape::new(&base(kind), &items).unwrap().validator().is_none(), "{kind}");
        }
    }

    #[test]
    fn name_collisions_and_choices_of_another_type_are_rejected() {
        let rejected = |items: &[OutputField]| ReplyShape::new(&base("ai_ask"), items).unwrap_err();
        for name in ["content", "EXIT", "BRIEF", "metrics", "progress_suggestion", "metadata", "safety_risk"] {
            assert_eq!(rejected(&[wanted(name, None, json!([]))]), ShapeError::Reserved { name: name.into() });
        }
        let twice = [wanted("a", None, json!([])), wanted("a", None, json!([]))];
        assert_eq!(rejected(&twice), ShapeError::Duplicate { name: "a".into() });
        assert_eq!(
            rejected(&[wanted("n", Some(DeclaredType::Integer), json!([1, "two"]))]),
            ShapeError::Choice { name: "n".into(), declared: "integer" }
        );
        let ai_think = ReplyShape::new(&base("ai_think"), &[wanted("content", None, json!([]))]);
        assert!(ai_think.is_ok(), "what one kind reserves another may use");
    }

    #[test]
    fn errors_do_not_depend_on_when_the_shape_is_built() {
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
                    let eager = Built::new(&base, &wanted);
                    let lazy = ReplyShape::new(&base, &wanted);
                    assert_eq!(eager.as_ref().err(), lazy.as_ref().err(), "{base} with {wanted:?}");
                    if let (Ok(eager), Ok(lazy)) = (eager, lazy) {
                        assert_eq!(&eager.schema, lazy.schema());
                        assert_eq!(eager.validator.is_some(), lazy.validator().is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn a_base_without_an_object_or_valid_defaults_is_rejected() {
        let rejected = |base: Value| ReplyShape::new(&base, &[]).unwrap_err();
        assert_eq!(rejected(json!(true)), ShapeError::NotAnObject);
        assert_eq!(rejected(json!({ "type": "array" })), ShapeError::NotAnObject);
        assert_eq!(rejected(json!({ "properties": 1 })), ShapeError::NotAnObject);
        let with_field =
            |rules: Value| json!({ "type": "object", "properties": { "a/b": rules }, "required": ["a/b"] });
        let wrong = ShapeError::Default { path: "/a~1b".into() };
        assert_eq!(rejected(with_field(json!({ "type": "string" }))), wrong, "no default");
        assert_eq!(rejected(with_field(json!({ "type": "string", "default": 1 }))), wrong, "mistyped, if without loss");
        assert_eq!(rejected(with_field(json!({ "enum": ["x"], "default": "y" }))), wrong, "not one of");
        assert_eq!(rejected(with_field(json!({ "minLength": 3, "default": "y" }))), wrong, "a rule of the validator");
        assert!(matches!(rejected(with_field(json!({ "type": "text", "default": 1 }))), ShapeError::Schema(_)));
    }
}
