//! Gives the yes/no fields of a reply and its empty outputs their meaning before it is coerced to its schema (docs/replies.md).

use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::digits::Digits;
use serde_json::{Map, Value, json};

use crate::reply::coerce::{Coercion, CoercionRecord, ONE_OF_ITS_CHOICES, pointer};
use crate::reply::exit::{is_no_value, is_reported, same_word, yes_or_no};
use crate::reply::field::type_name;
use crate::reply::shape::ReplyShape;

const SAFETY: &str = "safety_risk";
const DETECTED: &str = "detected";

/// Sets `EXIT`, `safety_risk.detected` and `metadata.crisis_signal` to what they mean, if `shape` has them, and outputs that say that
/// there is no value to null. A number becomes text with its `digits` if the output is text, or has no type and is longer than a number.
/// Returns a record of each value that was changed or is unknown.
pub(crate) fn resolve(
    object: &mut Map<String, Value>,
    digits: Option<&Digits>,
    shape: &ReplyShape,
) -> Vec<CoercionRecord> {
    let mut records = Vec::new();
    let has = |name: &str| shape.reserved().any(|reserved| reserved == name);
    if has("EXIT")
        && let Some(exit @ (Value::String(_) | Value::Number(_))) = object.get_mut("EXIT")
        && yes_or_no(exit).is_none()
    {
        records.push(record(&["EXIT"], Coercion::NotOneOf, "yes or no", exit));
        *exit = Value::from("NO");
    }
    if has(SAFETY)
        && let Some(risk) = object.get_mut(SAFETY)
    {
        resolve_risk(risk, &mut records);
    }
    if has("metadata")
        && let Some(signal) = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("crisis_signal"))
    {
        resolve_flag(signal, &["metadata", "crisis_signal"], &mut records);
    }
    for output in shape.outputs() {
        if let Some(Value::Number(number)) = object.get(&output.name)
            && let Some(digits) = digits.and_then(|digits| digits.field(&output.name)).and_then(Digits::number)
            && output.choices.is_empty()
        {
            // An integer that does not fit is an identifier; a decimal is a number unless a text was requested.
            let is_text = match output.declared {
                Some(DeclaredType::String) => true,
                // `-0` is read as a float, too.
                None => {
                    number.is_f64()
                        && number.as_f64() != Some(0.0)
                        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
                }
                Some(_) => false,
            };
            if is_text {
                let found = Value::Number(number.clone());
                records.push(record(&[&output.name], Coercion::Coerced, "string", &found));
                object.insert(output.name.clone(), Value::from(digits));
            }
        }
        let Some(Value::String(text)) = object.get(&output.name) else { continue };
        if !is_no_value(text) {
            continue;
        }
        let choices = || output.choices.iter().filter_map(Value::as_str);
        // Coercion finds a choice that differs only in case or white space. Here, punctuation is removed, too: `none.` is `none`.
        if choices().any(|choice| choice.trim().eq_ignore_ascii_case(text.trim())) {
            continue;
        }
        let meant = choices().find(|choice| same_word(text, choice)).map_or(Value::Null, Value::from);
        let expected = if meant.is_null() { "a value or null" } else { ONE_OF_ITS_CHOICES };
        records.push(record(&[&output.name], Coercion::Coerced, expected, &Value::from(text.as_str())));
        object.insert(output.name.clone(), meant);
    }
    records
}

/// `safety_risk` may be an object, or only what its `detected` should be.
fn resolve_risk(risk: &mut Value, records: &mut Vec<CoercionRecord>) {
    if let Value::Object(fields) = risk {
        if let Some(detected) = fields.get_mut(DETECTED) {
            resolve_flag(detected, &[SAFETY, DETECTED], records);
        }
        return;
    }
    let detected = is_reported(risk);
    records.push(record(&[SAFETY], Coercion::Coerced, "object", risk));
    *risk = json!({ DETECTED: detected });
}

fn resolve_flag(flag: &mut Value, path: &[&str], records: &mut Vec<CoercionRecord>) {
    if flag.is_boolean() {
        return;
    }
    let is_known = flag.is_null() || yes_or_no(flag).is_some() || !is_reported(flag);
    let coercion = if is_known { Coercion::Coerced } else { Coercion::NotOneOf };
    records.push(record(path, coercion, "boolean", flag));
    *flag = Value::Bool(is_reported(flag));
}

fn record(path: &[&str], kind: Coercion, expected: &str, found: &Value) -> CoercionRecord {
    CoercionRecord { path: pointer(path), kind, expected: expected.to_owned(), found: type_name(found).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::read::read;
    use crate::reply::shape::OutputField;
    use bcc_lang::schema::embedded;

    fn reading(kind: &str, reply: &Value) -> (Value, Vec<String>) {
        let base = serde_json::from_str(embedded::reply(kind).unwrap()).unwrap();
        let output = |name: &str, choices: Value| OutputField {
            name: name.into(),
            declared: Some(DeclaredType::String),
            choices: choices.as_array().unwrap().clone(),
            ..OutputField::default()
        };
        let shape =
            ReplyShape::new(&base, &[output("job", json!([])), output("state", json!(["未提及", "好"]))]).unwrap();
        let reply = read(&reply.to_string(), &shape, false).unwrap();
        let records = reply.coercions.iter().filter(|record| record.kind != Coercion::Missing);
        let records = records.map(|record| format!("{} {}", record.path, record.kind.name())).collect();
        (Value::Object(reply.object), records)
    }

    #[test]
    fn every_spelling_of_a_risk_is_a_risk_and_what_is_not_a_boolean_is_recorded() {
        let table = [
            (json!(true), true, "/safety_risk coerced"),
            (json!("no"), false, "/safety_risk coerced"),
            (json!({ "detected": "YES" }), true, "/safety_risk/detected coerced"),
            (json!({ "detected": 1 }), true, "/safety_risk/detected coerced"),
            (json!({ "detected": "是" }), true, "/safety_risk/detected coerced"),
            (json!({ "detected": "maybe" }), true, "/safety_risk/detected not_one_of"),
            (json!({ "detected": "没有" }), false, "/safety_risk/detected coerced"),
            (json!({ "detected": null }), false, "/safety_risk/detected coerced"),
            (json!({ "detected": false }), false, ""),
            (json!({}), false, ""),
        ];
        for (risk, detected, record) in table {
            let (reply, records) = reading("ai_ask", &json!({ "safety_risk": risk, "content": "x" }));
            assert_eq!(reply["safety_risk"]["detected"], json!(detected), "{risk}");
            assert_eq!(records.join(" "), record, "{risk}");
        }
        for (signal, expected) in
            [(json!(1), true), (json!("是"), true), (json!("unclear"), true), (json!("否"), false)]
        {
            let (reply, records) = reading("ai_ask", &json!({ "metadata": { "crisis_signal": signal } }));
            assert_eq!(reply["metadata"]["crisis_signal"], json!(expected), "{signal}");
            assert_eq!(records.len(), 1, "{signal}");
        }
    }

    #[test]
    fn the_digits_of_numbers_stay() {
        let shape = |declared| {
            let output = OutputField { name: "id".into(), declared, ..OutputField::default() };
            let base = serde_json::from_str(embedded::reply("ai_think").unwrap()).unwrap();
            ReplyShape::new(&base, &[output]).unwrap()
        };
        let id = |digits: &str, declared| {
            // The same name in another object, with other digits.
            let raw = format!("{{\"BRIEF\": \"\", \"more\": {{\"id\": 9.90}}, \"id\": {digits}}}");
            read(&raw, &shape(declared), false).unwrap().field("id").unwrap()
        };
        let long = "20241018220014123456789012";
        let table = [
            (long, None, "\"20241018220014123456789012\""),
            (long, Some(DeclaredType::String), "\"20241018220014123456789012\""),
            (long, Some(DeclaredType::Number), long),
            (long, Some(DeclaredType::Integer), long),
            ("1.10", Some(DeclaredType::String), "\"1.10\""),
            ("1.10", Some(DeclaredType::Number), "1.10"),
            ("1.10", None, "1.10"),
            ("\"1.10\"", Some(DeclaredType::Number), "1.10"),
            ("\" 20241018220014123456789012 \"", Some(DeclaredType::Number), long),
            ("\"20241018220014123456789012\"", Some(DeclaredType::Integer), long),
            ("\"20241018220014123.5\"", Some(DeclaredType::Integer), "null"),
            ("\"0.12345678901234567890\"", Some(DeclaredType::Number), "0.12345678901234567890"),
            ("5.0", Some(DeclaredType::Integer), "5"),
            ("0.12345678901234567890", None, "0.12345678901234567890"),
            ("18446744073709551615", None, "18446744073709551615"),
            ("[1.10, {\"a\": 2.0}]", Some(DeclaredType::List), "[1.10,{\"a\":2.0}]"),
        ];
        for (digits, declared, expected) in table {
            assert_eq!(id(digits, declared).to_string(), expected, "{digits} {declared:?}");
        }
        assert_eq!(id("1.10", None), json!(1.1), "computing with it stays possible");
    }

    #[test]
    fn the_digits_of_a_text_stay_inside_an_object() {
        let order = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
        let base = json!({ "type": "object", "properties": { "order": order } });
        let shape = ReplyShape::new(&base, &[]).unwrap();
        let raw = r#"{"order": {"id": "20241018220014123456789012", "more": 1.10}}"#;
        let order = read(raw, &shape, false).unwrap().field("order").unwrap();
        assert_eq!(order.to_string(), r#"{"id":20241018220014123456789012,"more":1.10}"#);
    }

    #[test]
    fn a_number_that_is_out_of_range_is_mistyped_and_the_rest_of_the_reply_is_read() {
        let output = OutputField { name: "n".into(), declared: Some(DeclaredType::Number), ..OutputField::default() };
        let base = serde_json::from_str(embedded::reply("ai_think").unwrap()).unwrap();
        let shape = ReplyShape::new(&base, &[output]).unwrap();
        for raw in [
            "{\"BRIEF\": \"b\", \"n\": 1e400}",
            " {\"BRIEF\": \"b\", \"n\": 1e400}",
            "Reply: {\"BRIEF\": \"b\", \"n\": -1e400}.",
        ] {
            let reply = read(raw, &shape, false).unwrap();
            assert_eq!((&reply.object["n"], &reply.object["BRIEF"]), (&Value::Null, &json!("b")), "{raw}");
            let records: Vec<_> = reply.coercions.iter().map(|record| (record.path.as_str(), record.kind)).collect();
            assert_eq!(records, [("/n", Coercion::Mistyped)], "{raw}");
        }
    }

    #[test]
    fn every_strategy_keeps_the_digits_of_numbers() {
        let output = OutputField { name: "price".into(), ..OutputField::default() };
        let base = serde_json::from_str(embedded::reply("ai_think").unwrap()).unwrap();
        let shape = ReplyShape::new(&base, &[output]).unwrap();
        let table = [
            (r#"{"BRIEF": "1.00", "price": {"a": [1.10, 2]}}"#, 1),
            (" {\"BRIEF\": \"\", \"price\": {\"a\": [1.10, 2]}}\n", 2),
            ("The price is 9.90:\n```json\n{\"BRIEF\": \"\", \"price\": {\"a\": [1.10, 2]}}\n```", 3),
            ("{'BRIEF': '3.00', 'more': 4.0, 'price': {a: [1.10, 2,]}, 'last': 0x10}", 4),
            (r#"{"BRIEF": "", "price": {"a": [1.10, 2]}, "next": 5.0, "cut": "#, 4),
        ];
        for (raw, strategy) in table {
            let reply = read(raw, &shape, true).unwrap();
            assert_eq!(reply.parse_retry_count, strategy, "{raw}");
            assert_eq!(reply.field("price").unwrap().to_string(), r#"{"a":[1.10,2]}"#, "{raw}");
        }
        let repeated = "{'price': 9.90, 'price': 1.10, 'BRIEF': ''}";
        assert_eq!(read(repeated, &shape, true).unwrap().field("price").unwrap(), json!(1.1), "no wrong digits");
    }

    #[test]
    fn negative_zero_stays_a_number() {
        let output = OutputField { name: "id".into(), ..OutputField::default() };
        let base = serde_json::from_str(embedded::reply("ai_think").unwrap()).unwrap();
        let reply = read("{\"BRIEF\": \"\", \"id\": -0}", &ReplyShape::new(&base, &[output]).unwrap(), false).unwrap();
        assert!(reply.object["id"].is_number(), "{:?}", reply.object);
        assert!(!reply.coercions.iter().any(|record| record.path == "/id"), "{:?}", reply.coercions);
    }

    #[test]
    fn a_choice_that_is_a_word_for_no_value_is_read_in_any_case_and_with_punctuation() {
        let output = |choices: Value| OutputField {
            name: "pain".into(),
            declared: Some(DeclaredType::String),
            choices: choices.as_array().unwrap().clone(),
            ..OutputField::default()
        };
        let base: Value = serde_json::from_str(embedded::reply("ai_think").unwrap()).unwrap();
        let table = [
            (json!(["none", "some"]), "none", json!("none"), ""),
            (json!(["none", "some"]), "None", json!("none"), "coerced"),
            (json!(["none", "some"]), " NONE\n", json!("none"), "coerced"),
            (json!(["none", "some"]), "none.", json!("none"), "coerced"),
            (json!(["none", "some"]), "“None”", json!("none"), "coerced"),
            (json!(["none", "some"]), "null", Value::Null, "coerced"),
            (json!(["-", "+"]), "-", json!("-"), ""),
            (json!(["-", "+"]), "—", Value::Null, "coerced"),
            (json!(["+", "++"]), "-", Value::Null, "coerced"),
        ];
        for (choices, text, expected, record) in table {
            let shape = ReplyShape::new(&base, &[output(choices)]).unwrap();
            let reply = read(&json!({ "BRIEF": "", "pain": text }).to_string(), &shape, false).unwrap();
            let records = reply.coercions.iter().filter(|record| record.path == "/pain");
            let records: Vec<_> = records.map(|record| record.kind.name()).collect();
            assert_eq!((&reply.object["pain"], records.join(" ").as_str()), (&expected, record), "{text}");
        }
    }

    #[test]
    fn an_exit_that_is_neither_yes_nor_no_is_no_and_recorded() {
        for (exit, kept, recorded) in
            [(json!("ＹＥＳ"), json!("ＹＥＳ"), 0), (json!(2), json!("NO"), 1), (json!("也许"), json!("NO"), 1)]
        {
            let (reply, records) = reading("ai_ask", &json!({ "EXIT": exit }));
            assert_eq!((&reply["EXIT"], records.len()), (&kept, recorded), "{exit}");
        }
    }

    #[test]
    fn an_output_that_says_that_there_is_no_value_is_null_unless_it_is_a_choice() {
        for text in ["", "null", "未提及", "N/A"] {
            let (reply, records) = reading("ai_think", &json!({ "BRIEF": "", "job": text, "state": "未提及" }));
            assert_eq!((&reply["job"], &reply["state"]), (&Value::Null, &json!("未提及")), "{text}");
            assert_eq!(records, ["/job coerced"], "{text}");
        }
        let (reply, records) = reading("ai_think", &json!({ "BRIEF": "", "job": "无业", "state": "好" }));
        assert_eq!((&reply["job"], records.len()), (&json!("无业"), 0));
    }
}
