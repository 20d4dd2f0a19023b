//! The part of a reply's schema that coercion supports, compiled to a tree.

use serde_json::{Map, Value};

use bcc_lang::value::declared::{DeclaredType, is_date};
use bcc_lang::value::exact::ExactValue;

#[derive(Clone, Debug, Default)]
pub struct Field {
    types: Option<Types>,
    choices: Vec<Value>,
    properties: Vec<Property>,
    default: Option<Value>,
}

#[derive(Clone, Debug)]
pub struct Property {
    pub name: String,
    pub required: bool,
    pub field: Field,
}

#[derive(Clone, Debug, Default)]
struct Types {
    null: bool,
    others: Vec<DeclaredType>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Fits,
    /// It fits, but the number has another notation (5.0 for the integer 5).
    Respelled(Value),
    /// It does not fit, but can be converted to this value without loss.
    Coerced(Value),
    Mistyped,
    /// It has the right type, but is not an allowed value.
    NotOneOf,
}

impl Field {
    pub fn new(schema: &Value) -> Self {
        let types = schema.get("type").map(|named| types(named, schema.get("format")));
        let is_required = |name: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|names| names.iter().any(|required| required.as_str() == Some(name)))
        };
        let properties: Vec<Property> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, schema)| Property {
                name: name.clone(),
                required: is_required(name),
                field: Self::new(schema),
            })
            .collect();
        let choices: Vec<Value> = schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let default = match schema.get("default") {
            Some(default) => Some(default.clone()),
            None if properties.is_empty() => None,
            None => defaults(&properties).map(Value::Object),
        };
        Self { types, choices, properties, default }
    }

    /// The properties of the objects that it describes, in the order of the schema.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// The replacement for a missing or invalid value. The default of an object without one consists of the defaults of its
    /// required properties.
    pub fn default(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// Checks `value`, but not the properties of an object.
    pub fn check(&self, value: &Value) -> Verdict {
        if !self.choices.is_empty() {
            return self.check_choice(value);
        }
        let Some(types) = &self.types else { return Verdict::Fits };
        if value.is_null() && types.null {
            return Verdict::Fits;
        }
        match types.others.iter().find(|declared| declared.fits(value)) {
            // A float without a fraction is an integer; it is written as one for later readers.
            Some(DeclaredType::Integer) if value.is_f64() => {
                return DeclaredType::Integer.coerce(value).map_or(Verdict::Fits, Verdict::Respelled);
            }
            Some(_) => return Verdict::Fits,
            None => {}
        }
        // A number of any length can be converted, because the digits of the text are kept.
        let exact = ExactValue::from(value.clone());
        let coerced = types.others.iter().find_map(|declared| declared.coerce_exact(&exact));
        coerced.map_or(Verdict::Mistyped, |coerced| Verdict::Coerced(coerced.into_value()))
    }

    fn check_choice(&self, value: &Value) -> Verdict {
        if self.choices.contains(value) {
            return Verdict::Fits;
        }
        if let Some(same) = self.choices.iter().find(|choice| same_number(choice, value)) {
            return Verdict::Respelled(same.clone());
        }
        if let Some(choice) = self.matching_choice(value) {
            return Verdict::Coerced(choice.clone());
        }
        let fits = self.types.as_ref().is_none_or(|types| {
            if value.is_null() { types.null } else { types.others.iter().any(|declared| declared.fits(value)) }
        });
        if fits { Verdict::NotOneOf } else { Verdict::Mistyped }
    }

    /// The only choice that equals `value` except for surrounding white space, ASCII case, or a type conversion without loss
    /// (`"1"` for 1).
    fn matching_choice(&self, value: &Value) -> Option<&Value> {
        let text = value.as_str().map(str::trim);
        let trimmed = |choice: &&Value| text.is_some() && choice.as_str() == text;
        let folded = |choice: &&Value| match (choice.as_str(), text) {
            (Some(choice), Some(text)) => choice.trim().eq_ignore_ascii_case(text),
            _ => false,
        };
        // The choices of a date are texts; that it is one is not in the schema.
        let is_day = |choice: &Value| choice.as_str().is_some_and(is_date);
        let is_date = self.choices.iter().all(|choice| choice.is_null() || is_day(choice));
        let typed = |choice: &&Value| {
            let types = type_of(choice).into_iter().chain(is_date.then_some(DeclaredType::Date));
            types.into_iter().any(|declared| declared.coerce(value).as_ref() == Some(*choice))
        };
        exactly_one(self.choices.iter().filter(trimmed))
            .or_else(|| exactly_one(self.choices.iter().filter(folded)))
            .or_else(|| exactly_one(self.choices.iter().filter(typed)))
    }

    pub fn expected(&self) -> String {
        if !self.choices.is_empty() {
            let text = |choice: &Value| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
            return format!("one of {}", self.choices.iter().map(text).collect::<Vec<_>>().join(", "));
        }
        let Some(types) = &self.types else { return "any value".to_owned() };
        let names: Vec<&str> = types.others.iter().map(|declared| declared.name()).collect();
        match (names.split_last(), types.null) {
            (Some(_), true) => format!("{} or null", names.join(", ")),
            (Some((last, [])), false) => (*last).to_owned(),
            (Some((last, others)), false) => format!("{} or {last}", others.join(", ")),
            (None, true) => "null".to_owned(),
            (None, false) => "nothing".to_owned(),
        }
    }
}

/// An object with the defaults of the required `properties`; `None` if one of them has no default.
pub fn defaults(properties: &[Property]) -> Option<Map<String, Value>> {
    properties
        .iter()
        .filter(|property| property.required)
        .map(|property| Some((property.name.clone(), property.field.default()?.clone())))
        .collect()
}

/// Whether [`Field`] supports every rule of `schema`, so that no validator is needed.
pub fn supports(schema: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return schema == &Value::Bool(true) };
    let has_date_format = rules.contains_key("format");
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "$comment" | "title" | "description" | "default" | "examples" => true,
        "type" => match rule {
            Value::Array(names) => !names.is_empty() && names.iter().all(is_type_name),
            name => is_type_name(name),
        },
        // A format is supported only for strings.
        "format" => rule == "date" && rules.get("type").is_some_and(|named| names(named).any(|name| name == "string")),
        // A choice of another type would be treated as allowed.
        "enum" => {
            !has_date_format
                && rule.as_array().is_some_and(|choices| choices.iter().all(|choice| is_of_type(choice, rules)))
        }
        "required" => rule.as_array().is_some_and(|names| names.iter().all(|name| is_property(name, rules))),
        // Coercing a property of an object that is a choice would change the choice.
        "properties" => {
            !rules.contains_key("enum") && rule.as_object().is_some_and(|properties| properties.values().all(supports))
        }
        "additionalProperties" => rule == &Value::Bool(true),
        _ => false,
    })
}

fn is_type_name(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name == "null" || declared(name).is_some())
}

fn is_of_type(choice: &Value, rules: &Map<String, Value>) -> bool {
    let Some(named) = rules.get("type") else { return true };
    let types = types(named, None);
    if choice.is_null() { types.null } else { types.others.iter().any(|declared| declared.fits(choice)) }
}

fn is_property(name: &Value, rules: &Map<String, Value>) -> bool {
    name.as_str().is_some_and(|name| rules.get("properties").is_some_and(|properties| properties.get(name).is_some()))
}

fn names(named: &Value) -> impl Iterator<Item = &str> {
    named.as_array().map_or(std::slice::from_ref(named), Vec::as_slice).iter().filter_map(Value::as_str)
}

fn types(named: &Value, format: Option<&Value>) -> Types {
    let has_date_format = format.is_some_and(|format| format == "date");
    let mut types = Types::default();
    for name in names(named) {
        match declared(name) {
            Some(DeclaredType::String) if has_date_format => types.others.push(DeclaredType::Date),
            Some(declared) => types.others.push(declared),
            None => types.null |= name == "null",
        }
    }
    types
}

/// The declared type for a JSON Schema type; `None` for `null` and unknown types.
fn declared(name: &str) -> Option<DeclaredType> {
    match name {
        "array" => Some(DeclaredType::List),
        "string" => Some(DeclaredType::String),
        "number" => Some(DeclaredType::Number),
        "integer" => Some(DeclaredType::Integer),
        "boolean" => Some(DeclaredType::Boolean),
        "object" => Some(DeclaredType::Object),
        _ => None,
    }
}

/// The type of a value for failures and coercion records: a type name of `declare`, or `null`; never the value itself.
pub(crate) fn type_name(value: &Value) -> &'static str {
    type_of(value).map_or("null", DeclaredType::name)
}

fn type_of(value: &Value) -> Option<DeclaredType> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some(DeclaredType::Boolean),
        Value::Number(_) => Some(DeclaredType::Number),
        Value::String(_) => Some(DeclaredType::String),
        Value::Array(_) => Some(DeclaredType::List),
        Value::Object(_) => Some(DeclaredType::Object),
    }
}

/// Whether both are the same integer, written with or without a fraction.
fn same_number(left: &Value, right: &Value) -> bool {
    let integer =
        |value: &Value| DeclaredType::Integer.fits(value).then(|| DeclaredType::Integer.coerce(value)).flatten();
    integer(left).is_some_and(|left| integer(right) == Some(left))
}

fn exactly_one<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_with_rules_that_coercion_ignores_are_not_supported() {
        let known = [
            json!(true),
            json!({}),
            json!({ "type": ["string", "null"], "format": "date", "default": null }),
            json!({ "type": "string", "enum": ["a", "b"], "title": "t", "description": "d" }),
            json!({ "type": ["integer", "null"], "enum": [1, null] }),
            json!({ "properties": { "a": { "type": "array" } }, "required": ["a"], "additionalProperties": true }),
        ];
        for schema in known {
            assert!(supports(&schema), "{schema}");
        }
        let unknown = [
            json!(false),
            json!({ "type": "text" }),
            json!({ "type": [] }),
            json!({ "minLength": 1 }),
            json!({ "const": 1 }),
            json!({ "$ref": "#/$defs/a" }),
            json!({ "items": {} }),
            json!({ "anyOf": [] }),
            json!({ "format": "date" }),
            json!({ "type": "string", "format": "email" }),
            json!({ "type": "string", "format": "date", "enum": ["2026-11-21"] }),
            json!({ "type": "string", "enum": [1] }),
            json!({ "required": ["a"] }),
            json!({ "additionalProperties": false }),
            json!({ "properties": { "a": { "maxItems": 1 } } }),
            json!({ "enum": [{}], "properties": { "a": true } }),
        ];
        for schema in unknown {
            assert!(!supports(&schema), "{schema}");
        }
    }

    #[test]
    fn a_value_matches_a_choice_only_if_it_is_unambiguous() {
        let field = Field::new(&json!({ "enum": ["A", "a", "Bad", 1, "2", true] }));
        let coerced = |choice: Value| Verdict::Coerced(choice);
        let table = [
            (json!("A"), Verdict::Fits),
            (json!(" a\n"), coerced(json!("a"))),
            (json!("BAD"), coerced(json!("Bad"))),
            (json!(1.0), Verdict::Respelled(json!(1))),
            (json!("1"), coerced(json!(1))),
            (json!(2), coerced(json!("2"))),
            (json!("TRUE"), coerced(json!(true))),
            (json!("b"), Verdict::NotOneOf),
            (json!(null), Verdict::NotOneOf),
        ];
        for (value, verdict) in table {
            assert_eq!(field.check(&value), verdict, "{value}");
        }
        let folded = Field::new(&json!({ "enum": ["YES", "yes"] }));
        assert_eq!(folded.check(&json!("Yes")), Verdict::NotOneOf, "two choices are meant");
    }

    #[test]
    fn expected_types_use_the_names_of_declare() {
        let table = [
            (json!({ "type": ["array", "null"] }), "list or null"),
            (json!({ "type": ["string", "number", "null"] }), "string, number or null"),
            (json!({ "type": ["string", "null"], "format": "date" }), "date or null"),
            (json!({ "enum": ["好", 1, null] }), "one of 好, 1, null"),
            (json!({}), "any value"),
        ];
        for (schema, expected) in table {
            assert_eq!(Field::new(&schema).expected(), expected);
        }
    }
}
