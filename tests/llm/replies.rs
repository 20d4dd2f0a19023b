//! Tests of raw replies as models write them, parsed with the library: the cases of docs/replies.md and more, as data in
//! `tests/replies/` (see its README).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bcc_lang::schema::compiled::Compiled;
use bcc_lang::schema::embedded;
use bcc_lang::value::declared::DeclaredType;
use bcc_llm::reply::exit::is_yes;
use bcc_llm::reply::live::LiveContent;
use bcc_llm::reply::read::{Reply, read};
use bcc_llm::reply::shape::{OutputField, ReplyShape};
use bcc_llm::reply::strategies::ParseStrategy;
use proptest::prelude::{any, prop, prop_oneof, proptest};
use proptest::strategy::Strategy as _;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What the case shows, and its source.
    about: String,
    kind: String,
    #[serde(default)]
    wanted: Vec<Output>,
    /// The replies that one action receives, in order.
    replies: Vec<Exchange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    get: String,
    #[serde(rename = "type")]
    declared: Option<DeclaredType>,
    #[serde(default, rename = "enum")]
    choices: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    raw: String,
    /// The strategy that parses it; `None` when all fail.
    strategy: Option<ParseStrategy>,
    parse_retry_count: u8,
    /// Every coercion, in order, as `/path how`.
    #[serde(default)]
    bends: Vec<String>,
    /// Some fields, by JSON pointer.
    #[serde(default)]
    fields: BTreeMap<String, Value>,
    /// Whether EXIT is yes.
    exit: Option<bool>,
    /// What the person sees while the reply is streamed.
    live: Option<String>,
    /// A part of the last error, when all strategies fail.
    final_error: Option<String>,
}

fn base(kind: &str) -> Value {
    let text = embedded::reply(kind).unwrap_or_else(|| panic!("no reply schema of {kind}"));
    serde_json::from_str(text).unwrap()
}

fn shape(case: &Case) -> ReplyShape {
    let wanted = |output: &Output| OutputField {
        name: output.get.clone(),
        declared: output.declared,
        choices: output.choices.clone(),
        define: None,
        optional: false,
    };
    ReplyShape::new(&base(&case.kind), &case.wanted.iter().map(wanted).collect::<Vec<_>>()).unwrap()
}

fn shown(raw: &str) -> String {
    let mut live = LiveContent::new();
    raw.chars().map(|c| live.push(&c.to_string())).collect()
}

fn check_read(exchange: &Exchange, shape: &ReplyShape, reply: &Reply, at: &str) {
    let strategy =
        exchange.strategy.unwrap_or_else(|| panic!("{at}: was read, by strategy {}", reply.parse_retry_count));
    assert_eq!(strategy.number(), reply.parse_retry_count, "{at}: strategy");
    assert_eq!(reply.parse_retry_count, exchange.parse_retry_count, "{at}: parse_retry_count");
    let failed: Vec<_> = reply.failures.iter().map(|failure| failure.strategy).collect();
    let before: Vec<_> = ParseStrategy::ALL.into_iter().take_while(|earlier| *earlier != strategy).collect();
    assert_eq!(failed, before, "{at}: failures");
    let name = |coercion| serde_json::to_value(coercion).unwrap().as_str().unwrap().to_owned();
    let coercions: Vec<_> =
        reply.coercions.iter().map(|coercion| format!("{} {}", coercion.path, name(coercion.kind))).collect();
    assert_eq!(coercions, exchange.bends, "{at}: bends {:#?}", reply.coercions);
    let object = Value::Object(reply.object.clone());
    for (pointer, expected) in &exchange.fields {
        assert_eq!(object.pointer(pointer), Some(expected), "{at}: {pointer}");
    }
    if let Some(exit) = exchange.exit {
        assert_eq!(is_yes(&object["EXIT"]), exit, "{at}: EXIT");
    }
    let violations = Compiled::new(shape.schema()).unwrap().violations(&object);
    assert!(violations.is_empty(), "{at}: {violations:?}");
    let live = shown(&exchange.raw);
    assert!(live.is_empty() || object["content"] == live, "{at}: shown live, but not the content: {live}");
    if let Some(expected) = &exchange.live {
        assert_eq!(&live, expected, "{at}: live");
    }
}

fn check(exchange: &Exchange, shape: &ReplyShape, at: &str) {
    match read(&exchange.raw, shape, false) {
        Ok(reply) => check_read(exchange, shape, &reply, at),
        Err(unreadable) => {
            assert_eq!(exchange.strategy, None, "{at}: {unreadable}");
            assert_eq!(unreadable.retry_count(), exchange.parse_retry_count, "{at}: parse_retry_count");
            assert_eq!(unreadable.strategies(), ["direct_parse", "trim_and_parse", "extract_json_block"], "{at}");
            let expected = exchange.final_error.as_deref().unwrap_or_default();
            assert!(unreadable.final_error().to_string().contains(expected), "{at}: {}", unreadable.final_error());
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

#[test]
fn every_raw_reply_is_read_as_its_file_says() {
    let folder = Path::new(crate::ROOT).join("tests/replies");
    let files = files(&folder);
    assert!(files.len() >= 10, "the folder of cases is not there: {}", folder.display());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let case: Case =
            serde_yaml::from_str(&fs::read_to_string(&file).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!case.about.is_empty() && !case.replies.is_empty(), "{name}");
        let shape = shape(&case);
        for (number, exchange) in case.replies.iter().enumerate() {
            check(exchange, &shape, &format!("{name}, reply {}", number + 1));
        }
    }
}

#[test]
fn the_record_of_a_coercion_has_the_expected_and_found_type_but_not_the_value() {
    let shape = ReplyShape::new(&base("ai_say"), &[]).unwrap();
    let raw = json!({
        "safety_risk": { "detected": false }, "content": "x", "EXIT": "NO", "BRIEF": 4711,
        "metrics": { "user_engagement": ["秘密4711"], "emotional_intensity": "a" },
        "progress_suggestion": "秘密4711", "metadata": "秘密4711",
    });
    let reply = read(&raw.to_string(), &shape, false).unwrap();
    let coercions = serde_json::to_value(&reply.coercions).unwrap();
    assert_eq!(
        coercions,
        json!([
            { "path": "/BRIEF", "bending": "coerced", "expected": "string", "found": "number" },
            { "path": "/metrics/user_engagement", "bending": "mistyped", "expected": "string", "found": "list" },
            { "path": "/metrics/understanding_level", "bending": "missing", "expected": "string", "found": "nothing" },
            { "path": "/progress_suggestion", "bending": "not_one_of",
              "expected": "one of continue_needed, completed, blocked", "found": "string" },
            { "path": "/metadata", "bending": "mistyped", "expected": "object", "found": "string" },
        ])
    );
}

#[test]
fn a_huge_invalid_reply_is_rejected() {
    let shape = ReplyShape::new(&base("ai_ask"), &[]).unwrap();
    for unit in ["{", "{\"content\":\"", "你好", "```json\n", "[[", "{\"a\":[{"] {
        assert!(read(&unit.repeat((2 << 20) / unit.len()), &shape, false).is_err(), "{unit}");
    }
}

/// The text shown when the reply is streamed in pieces of these sizes in bytes: a character that is split is passed on with the piece
/// that completes it, as providers do.
fn shown_in_bytes(raw: &str, sizes: &[usize]) -> String {
    let mut live = LiveContent::new();
    let (mut shown, mut consumed, mut wait_for_result) = (String::new(), 0, 0);
    for size in sizes.iter().cycle() {
        wait_for_result = raw.len().min(wait_for_result + size);
        let end = (consumed..=wait_for_result).rev().find(|&at| raw.is_char_boundary(at)).unwrap();
        shown.push_str(&live.push(&raw[consumed..end]));
        consumed = end;
        if wait_for_result == raw.len() {
            return shown;
        }
    }
    shown
}

#[test]
fn a_reply_cut_off_before_its_safety_field_is_rejected() {
    let shape = ReplyShape::new(&base("ai_say"), &[]).unwrap();
    let rejected = [
        r#"{"content":"您好","EXIT":"NO""#,
        r#"{"content":"您好","safety_risk":{"detected":tr"#,
        r#"{"content":"您好","safety_risk":{"risk_type":"x"}"#,
    ];
    for raw in rejected {
        let unreadable = read(raw, &shape, true).unwrap_err();
        assert_eq!(unreadable.strategies().last(), Some(&"repair_json"), "{raw}");
        assert_eq!(unreadable.retry_count(), 4, "{raw}");
        assert!(unreadable.final_error().to_string().contains("safe"), "{raw}");
    }
    let raw = r#"{"safety_risk":{"detected":true},"content":"您好","EXIT":"N"#;
    let reply = read(raw, &shape, true).unwrap();
    assert!(reply.cut_off() && reply.parse_retry_count == 4);
    assert_eq!(reply.object["safety_risk"]["detected"], true);
    let think = ReplyShape::new(&base("ai_think"), &[]).unwrap();
    assert!(read(r#"{"BRIEF":"x","more":"#, &think, true).is_ok(), "a kind without safety_risk asks nothing of it");
}

proptest! {
    #[test]
    fn streamed_text_of_any_reply_in_any_pieces_is_its_content(
        content in any::<String>(),
        others in prop::collection::vec(("[a-z]{1,6}", any::<String>()), 0..4),
        before in prop::sample::select(vec!["", " \n", "好的：", "```json\n", "<think>{\"content\":\"x\"}</think>", "{name} "]),
        escape in any::<bool>(),
        sizes in prop::collection::vec(1usize..9, 1..20),
    ) {
        let mut reply = serde_json::Map::new();
        reply.insert("safety_risk".into(), json!({ "detected": false }));
        reply.extend(others.into_iter().map(|(name, text)| (name, json!(text))));
        reply.shift_remove("content");
        reply.insert("content".into(), json!(content));
        let mut raw = Value::Object(reply).to_string();
        if escape {
            raw = raw.chars().map(|c| match c {
                ' '..='~' => c.to_string(),
                _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
            }).collect();
        }
        let raw = format!("{before}{raw}");
        let shape = ReplyShape::new(&base("ai_say"), &[]).unwrap();
        for repair in [false, true] {
            let read = read(&raw, &shape, repair).unwrap();
            assert!(read.parse_retry_count < 4 && read.repairs.is_empty());
            assert_eq!(read.object["content"], content.as_str());
        }
        assert_eq!(shown_in_bytes(&raw, &sizes), content);
    }

    #[test]
    fn no_text_whatsoever_panics(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(
                    "{ } [ ] : , \" \\ \\\" ``` ```json <think> </think> null true false 1 -1e9 1e999 \\u4f60 \\ud83d 你好 \u{feff} {} \
                     \"content\": \"EXIT\":\"YES\" \"metrics\":{} \"safety_risk\":{\"detected\":false}, \"用户名\":"
                        .split(' ').collect::<Vec<_>>()
                ).prop_map(str::to_owned),
                prop::sample::select(vec![" ", "\n", "\r\n", "\t", "\0"]).prop_map(str::to_owned),
                any::<String>(),
            ],
            0..30,
        ),
        kind in prop::sample::select(embedded::replies().collect::<Vec<_>>()),
        repair in any::<bool>(),
    ) {
        let wanted = [OutputField { name: "用户名".into(), declared: Some(DeclaredType::Date), ..OutputField::default() }];
        let shape = ReplyShape::new(&base(kind), &wanted).unwrap();
        let raw = pieces.concat();
        shown(&raw);
        if let Ok(reply) = read(&raw, &shape, repair) {
            for name in shape.reserved().chain(shape.wanted()) {
                assert!(reply.object.contains_key(name), "{name} in the reply to {raw}");
            }
        }
    }
}
