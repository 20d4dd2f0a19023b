//! Tests of the text that is shown while a reply is streamed.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// The text that is shown for `raw` when it arrives in pieces of `size` characters.
fn shown(raw: &str, size: usize) -> String {
    let mut live = LiveContent::new();
    let characters: Vec<char> = raw.chars().collect();
    let pushed: String = characters.chunks(size).map(|piece| live.push(&piece.iter().collect::<String>())).collect();
    assert_eq!(pushed, live.shown(), "{raw}");
    pushed
}

const SAFE: &str = r#""safety_risk":{"detected":false},"#;

#[test]
fn words_that_may_not_count_are_shown_only_after_an_exit_that_means_no() {
    let table = [
        (r#"{"EXIT":"NO","safety_risk":{"detected":false},"content":"a"}"#, "a"),
        (r#"{"EXIT":false,"safety_risk":{"detected":false},"content":"a"}"#, "a"),
        (r#"{"EXIT":"YES","safety_risk":{"detected":false},"content":"a"}"#, ""),
        (r#"{"EXIT":1,"safety_risk":{"detected":false},"content":"a"}"#, ""),
        (r#"{"safety_risk":{"detected":false},"content":"a","EXIT":"NO"}"#, ""),
        (r#"{"metadata":{"EXIT":"NO"},"safety_risk":{"detected":false},"content":"a"}"#, ""),
        (r#"{"EXIT":"NO","safety_risk":{"detected":true},"content":"a"}"#, ""),
    ];
    for (raw, expected) in table {
        let mut live = LiveContent::only_without_exit();
        let shown: String = raw.chars().map(|c| live.push(&c.to_string())).collect();
        assert_eq!(shown, expected, "{raw}");
        assert_eq!(LiveContent::new().push(raw).is_empty(), raw.contains("true}"), "{raw}");
    }
}

#[test]
fn the_message_of_structured_actions_is_shown_and_nothing_else() {
    let table = [
        (r#"{"llm_reply":{"message":"a\nb"},"actions":[{"parameters":{"message":"no"}}]}"#, "a\nb"),
        (r#"{"actions":[{"llm_reply":{"message":"no"}}],"llm_reply":{"tone":[1],"message":"a"}}"#, "a"),
        (r#"{"message":"no","content":"no","llm_reply":{"x":{"message":"no"},"message":"a"}}"#, "a"),
        (r#"{"safety_risk":{"detected":false},"llm_reply":{"message":"a"}}"#, "a"),
        (r#"{"safety_risk":{"detected":true},"llm_reply":{"message":"a"}}"#, ""),
        (r#"{"llm_reply":{"message":7},"actions":[]}"#, ""),
        (r#"{"llm_reply":"a"}"#, ""),
        (r#"{"llm_reply":{"message":"a"},"llm_reply":{"message":"b"}}"#, "a"),
    ];
    for (raw, expected) in table {
        let mut live = LiveContent::of_structured_actions();
        let shown: String = raw.chars().map(|c| live.push(&c.to_string())).collect();
        assert_eq!(shown, expected, "{raw}");
        let parsed: Map<String, Value> = serde_json::from_str(raw).unwrap_or_default();
        if !expected.is_empty() && !raw.contains("\"b\"") {
            assert_eq!(MessageField::LlmReply.text_in(&parsed), Some(expected), "{raw}");
        }
    }
}

#[test]
fn the_content_is_shown_regardless_of_the_text_around_the_object() {
    let reply = format!("{{{SAFE}\"content\":\"你好\\n\\\"小林\\\" \\ud83d\\ude00\\u4f60\\\\\",\"EXIT\":\"NO\"}}");
    let surroundings = [
        ("", ""),
        (" \n\u{feff}", "\n"),
        ("```json\n", "\n```"),
        ("```JSON", "```"),
        ("好的：", "。"),
        ("<think>{\"content\":\"no\"} < </thin </think>\n", ""),
        ("<<Think>a</THINK>", ""),
        ("用 {name} 和 {a: {\"b\"}} ", ""),
        ("{", "}"),
        ("[", "]"),
        ("{ \n", "}"),
    ];
    for (before, after) in surroundings {
        for size in [1, 2, 3, 7, 1000] {
            let raw = format!("{before}{reply}{after}");
            assert_eq!(shown(&raw, size), "你好\n\"小林\" 😀你\\", "{raw}");
        }
    }
}

#[test]
fn characters_are_shown_with_the_piece_that_completes_them() {
    let mut live = LiveContent::new();
    let pieces = [
        ("{\"safety_risk\":{\"detected\":false},\"con", ""),
        ("tent\" : \"你", "你"),
        ("好\\", "好"),
        ("n\\u4f", "\n"),
        ("60a\\ud83d", "你a"),
        ("\\ud", ""),
        ("e00", "😀"),
        ("b\",\"BRIEF\":\"c\"}", "b"),
        ("{\"content\":\"d\"}", ""),
    ];
    for (piece, expected) in pieces {
        assert_eq!(live.push(piece), expected, "{piece}");
    }
}

#[test]
fn the_shown_content_equals_the_parsed_content() {
    for spaces in ["", " ", "\n\t"] {
        let raw = format!(
            "{{{spaces}\"a\"{spaces}:{spaces}[1,-2.5e3{spaces},[],{{}},null,\"]\"]{spaces},\"safe\\u0074y_risk\":{{\"reason\":null,\"detected\":false{spaces}}},\"conten\\u0074\":\"x\"}}"
        );
        let parsed: Value = serde_json::from_str(&raw).unwrap();
        assert_eq!(shown(&raw, 1), parsed["content"].as_str().unwrap());
    }
}

#[test]
fn only_content_that_is_cleared_is_shown() {
    let raws = [
        // Safety is not confirmed.
        r#"{"content":"x","safety_risk":{"detected":false}}"#,
        r#"{"content":"x"}"#,
        r#"{"safety_risk":{"detected":true},"content":"x"}"#,
        r#"{"safety_risk":{"detected":"false"},"content":"x"}"#,
        r#"{"safety_risk":{"detected":null},"content":"x"}"#,
        r#"{"safety_risk":{"detected":{"detected":false}},"content":"x"}"#,
        r#"{"safety_risk":{"detected":[false]},"content":"x"}"#,
        r#"{"safety_risk":{"detected":falsey},"content":"x"}"#,
        r#"{"safety_risk":{"detected":false,"detected":true},"content":"x"}"#,
        r#"{"safety_risk":{"detected":true,"detected":false},"content":"x"}"#,
        r#"{"safety_risk":{"reason":"detected: false"},"content":"x"}"#,
        r#"{"safety_risk":{"deep":{"detected":false}},"content":"x"}"#,
        r#"{"safety_risk":[{"detected":false}],"content":"x"}"#,
        r#"{"safety_risk":false,"content":"x"}"#,
        r#"{"metadata":{"detected":false},"content":"x"}"#,
        r#"{"detected":false,"content":"x"}"#,
        // Another `content`.
        r#"{"safety_risk":{"detected":false,"content":"x"},"BRIEF":"y"}"#,
        r#"{"safety_risk":{"detected":false},"metadata":{"content":"x"},"BRIEF":"\"content\":\"x\""}"#,
        r#"{"safety_risk":{"detected":false},"a":["content","x",{"content":"x"}]}"#,
        r#"{"safety_risk":{"detected":false},"content ":"x","Content":"x"}"#,
        r#"{"safety_risk":{"detected":false},"content":{"content":"x"}}"#,
        r#"{"safety_risk":{"detected":false},"content":null,"a":"x","content":"x"}"#,
        // Reasoning, another object, invalid syntax.
        r#"<think>{"safety_risk":{"detected":false},"content":"x"}"#,
        r#"{"a":1} {"safety_risk":{"detected":false},"content":"x"}"#,
        r#"{"a" 1,"safety_risk":{"detected":false},"content":"x"}"#,
        r#"{a: {"safety_risk":{"detected":false},"content":"x"}}"#,
        r#"{"safety_risk":{"detected":false]},"content":"x"}"#,
        r#"{"safety_risk":{"detected":false},,"content":"x"}"#,
        "{\"a\":\"\n\",\"safety_risk\":{\"detected\":false},\"content\":\"x\"}",
    ];
    for raw in raws {
        for size in [1, 5, 1000] {
            assert_eq!(shown(raw, size), "", "{raw}");
        }
    }
}

#[test]
fn an_invalid_string_is_shown_up_to_the_error() {
    for (text, expected) in
        [("ab\\x c", "ab"), ("ab\nc", "ab"), ("ab\\ud83dc\"", "ab"), ("ab\\u12", "ab"), ("ab\"c\"", "ab")]
    {
        let raw = format!("{{{SAFE}\"content\":\"{text}");
        assert_eq!(shown(&raw, 1), expected, "{raw}");
    }
}

#[test]
fn nesting_beyond_the_limit_shows_nothing() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(shown(&format!("{{\"a\":{deep},{SAFE}\"content\":\"x\"}}"), 1000), "");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop_oneof!["content", "safety_risk", "detected", ".{0,3}"], inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Writes JSON with escapes for all characters that are not printable ASCII, as some models do.
fn escaped(value: &Value) -> String {
    let plain = value.to_string();
    plain.chars().fold(String::new(), |mut text, c| {
        match c {
            ' '..='~' => text.push(c),
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
        }
        text
    })
}

proptest! {
    #[test]
    fn the_content_of_any_reply_is_shown_regardless_of_piece_boundaries(
        before in prop::collection::vec(("[a-z]{1,8}", any_json()), 0..3),
        risk in prop::collection::vec(("[a-c]{1,8}", any_json()), 0..3),
        content in any::<String>(),
        after in prop::collection::vec(("[d-z]{1,8}", any_json()), 0..3),
        cuts in prop::collection::vec(1usize..9, 1..40),
        style in 0..3,
    ) {
        let mut safety: Map<String, Value> = risk.into_iter().collect();
        safety.insert("detected".into(), json!(false));
        let mut reply: Map<String, Value> = before.into_iter().filter(|(name, _)| name != "content").collect();
        reply.insert("safety_risk".into(), Value::Object(safety));
        reply.insert("content".into(), json!(content));
        reply.extend(after.into_iter().filter(|(name, _)| name != "content"));
        let reply = Value::Object(reply);
        let raw = match style {
            0 => reply.to_string(),
            1 => serde_json::to_string_pretty(&reply).unwrap(),
            _ => escaped(&reply),
        };
        let mut live = LiveContent::new();
        let mut text = String::new();
        let mut characters = raw.chars().peekable();
        for size in cuts.iter().cycle() {
            let piece: String = characters.by_ref().take(*size).collect();
            text.push_str(&live.push(&piece));
            if characters.peek().is_none() {
                break;
            }
        }
        prop_assert_eq!(&text, &content);
        prop_assert_eq!(live.shown(), content);
    }

    #[test]
    fn piece_boundaries_do_not_matter(raw in r#"([{}\[\]:,"\\]|"content"|"safety_risk":\{"detected":false\},|<think>|</think>|.){0,40}"#, size in 1usize..5) {
        prop_assert_eq!(shown(&raw, size), shown(&raw, 10_000));
    }
}
