//! A wanted output filled from a person's words, by its type and its choices.

use serde_json::Value;

use crate::model::request::WantedOutput;
use crate::providers::offline::date::first_date;
use crate::providers::offline::number::first_number;
use crate::providers::offline::truth::truth;
use bcc_lang::value::declared::{DeclaredType, is_date};

/// What stands between the elements of a list.
const SEPARATORS: [char; 7] = ['，', '、', ',', '；', ';', '\n', '\r'];

/// The value of `wanted` in `text`; null when nothing in it fits. White space fills nothing.
///
/// With choices only one of them is ever given: the longest that the text contains, else the one that the text is by
/// its type. In a list the choices are those of its elements.
pub fn fill(wanted: &WantedOutput, text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return Value::Null;
    }
    match (wanted.declared, wanted.choices.as_slice()) {
        (declared, []) => by_type(declared, text),
        (Some(DeclaredType::List), choices) => {
            let picked: Vec<Value> = text.split(SEPARATORS).filter_map(|part| pick(choices, part)).cloned().collect();
            if picked.is_empty() { Value::Null } else { Value::Array(picked) }
        }
        (declared, choices) => pick(choices, text).cloned().unwrap_or_else(|| {
            let value = by_type(declared, text);
            if choices.contains(&value) { value } else { Value::Null }
        }),
    }
}

fn by_type(declared: Option<DeclaredType>, text: &str) -> Value {
    let value = match declared {
        None | Some(DeclaredType::String) => Some(Value::String(text.to_owned())),
        Some(DeclaredType::Number) => first_number(text).map(Value::Number),
        Some(DeclaredType::Integer) => {
            first_number(text).and_then(|number| DeclaredType::Integer.coerce(&Value::Number(number)))
        }
        Some(DeclaredType::Boolean) => truth(text).map(Value::Bool),
        Some(DeclaredType::Date) if is_date(text) => Some(Value::String(text.to_owned())),
        Some(DeclaredType::Date) => first_date(text).map(Value::String),
        Some(DeclaredType::List) => {
            let parts = text.split(SEPARATORS).map(str::trim).filter(|part| !part.is_empty());
            let parts: Vec<Value> = parts.map(|part| Value::String(part.to_owned())).collect();
            (!parts.is_empty()).then_some(Value::Array(parts))
        }
        Some(DeclaredType::Object) => serde_json::from_str(text).ok().filter(Value::is_object),
    };
    value.unwrap_or(Value::Null)
}

/// The longest text among the choices that `text` contains, upper and lower case alike: as a word of its own where it
/// is written in letters, else anywhere.
fn pick<'a>(choices: &'a [Value], text: &str) -> Option<&'a Value> {
    let text = text.to_lowercase();
    let named = || choices.iter().filter_map(|choice| Some((choice, choice.as_str()?.trim().to_lowercase())));
    let longest = |fits: &dyn Fn(&str) -> bool| {
        let mut best: Option<(&Value, usize)> = None;
        for (choice, name) in named() {
            // Of two that are equally long the first listed counts.
            if !name.is_empty() && fits(&name) && best.is_none_or(|(_, length)| name.len() > length) {
                best = Some((choice, name.len()));
            }
        }
        best.map(|(choice, _)| choice)
    };
    longest(&|name| contains_word(&text, name)).or_else(|| longest(&|name| text.contains(name)))
}

fn contains_word(text: &str, word: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(word).any(|(start, _)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + word.len()..).and_then(|after| after.chars().next());
        let open = word.starts_with(letter) && before.is_some_and(letter);
        let goes_on = word.ends_with(letter) && after.is_some_and(letter);
        !open && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(declared: Option<DeclaredType>, choices: Value) -> WantedOutput {
        let choices = choices.as_array().cloned().unwrap_or_default();
        WantedOutput { name: "x".into(), declared, choices, define: None, required: false }
    }

    #[test]
    fn each_type_takes_what_fits_it() {
        use DeclaredType::{Boolean, Date, Integer, List, Number, Object, String};
        let table = [
            (None, " 我叫小林 ", json!("我叫小林")),
            (Some(String), "{{ x }}", json!("{{ x }}")),
            (Some(Number), "大概三十五", json!(35)),
            (Some(Number), "2.5 小时", json!(2.5)),
            (Some(Integer), "2.5 小时", Value::Null),
            (Some(Integer), "3.0", json!(3)),
            (Some(Integer), "３５岁", json!(35)),
            (Some(Boolean), "没有", json!(false)),
            (Some(Boolean), "也许", Value::Null),
            (Some(Date), "2026年11月21日", json!("2026-11-21")),
            (Some(Date), "2026-11-21T20:00:00Z", json!("2026-11-21T20:00:00Z")),
            (Some(Date), "昨天", Value::Null),
            (Some(List), "爸爸，妈妈、奶奶; 哥哥\n\n姐姐,", json!(["爸爸", "妈妈", "奶奶", "哥哥", "姐姐"])),
            (Some(List), "，、", Value::Null),
            (Some(Object), "{\"a\": 1}", json!({ "a": 1 })),
            (Some(Object), "[1]", Value::Null),
            (Some(Object), "a: 1", Value::Null),
            (None, " \n\u{3000}", Value::Null),
        ];
        for (declared, text, expected) in table {
            let value = fill(&wanted(declared, Value::Null), text);
            assert_eq!(value, expected, "{declared:?} from {text:?}");
            assert!(declared.is_none_or(|declared| value.is_null() || declared.fits(&value)), "{declared:?} {value}");
        }
    }

    #[test]
    fn with_choices_only_a_choice_is_given() {
        use DeclaredType::{Boolean, Integer, List, String};
        let table = [
            (None, json!(["焦虑", "重度焦虑"]), "我有重度焦虑", json!("重度焦虑")),
            (Some(String), json!(["Low", "High"]), "rather HIGH i think", json!("High")),
            (None, json!(["male", "female"]), "female", json!("female")),
            (None, json!(["no", "maybe"]), "I don't know, maybe", json!("maybe")),
            (None, json!(["dog", "cat"]), "two dogs", json!("dog")),
            (None, json!(["甲", "乙"]), "乙和甲", json!("甲")),
            (None, json!(["甲", "乙"]), "丙", Value::Null),
            (Some(Integer), json!([1, 2, 3]), "三次", json!(3)),
            (Some(Integer), json!([1, 2, 3]), "四次", Value::Null),
            (Some(Boolean), json!([true]), "没有", Value::Null),
            (Some(List), json!(["父亲", "母亲", "祖母"]), "母亲，我的父亲、邻居", json!(["母亲", "父亲"])),
            (Some(List), json!(["父亲"]), "邻居", Value::Null),
            (None, json!(["", " "]), "any", Value::Null),
        ];
        for (declared, choices, text, expected) in table {
            assert_eq!(fill(&wanted(declared, choices.clone()), text), expected, "{choices} from {text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_person_writes_a_value_fits_its_type_or_is_null(
            text in "[一二三十百千万亿零点负两半年月日是不没有0-9０-９.,，、/:a-z \\-]{0,24}|\\PC{0,40}",
        ) {
            for declared in DeclaredType::ALL {
                let value = fill(&wanted(Some(declared), Value::Null), &text);
                proptest::prop_assert!(value.is_null() || declared.fits(&value), "{} from {:?}: {}", declared.name(), text, value);
            }
        }
    }
}
