//! Raw replies as models write them, read through the library: the cases of docs/replies.md and more, as data in
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
    /// What it shows, and where it comes from.
    about: String,
    kind: String,
    #[serde(default)]
    wanted: Vec<Output>,
    /// Replies that one action gets, one after the other.
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
    /// The strategy that reads it; none when all fail.
    strategy: Option<ParseStrategy>,
    parse_retry_count: u8,
    /// Every bend, in order, as `/path how`.
    #[serde(default)]
    bends: Vec<String>,
    /// Some fields, by JSON pointer.
    #[serde(default)]
    fields: BTreeMap<String, Value>,
    /// Whether EXIT says yes.
    exit: Option<bool>,
    /// What the person sees while it arrives.
    live: Option<String>,
    /// A part of the last failure, when all fail.
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
    let how = |bending| serde_json::to_value(bending).unwrap().as_str().unwrap().to_owned();
    let bends: Vec<_> = reply.bends.iter().map(|bend| format!("{} {}", bend.path, how(bend.bending))).collect();
    assert_eq!(bends, exchange.bends, "{at}: bends {:#?}", reply.bends);
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
fn the_record_of_a_bend_says_what_was_wanted_and_found_but_never_the_value() {
    let shape = ReplyShape::new(&base("ai_say"), &[]).unwrap();
    let raw = json!({
        "safety_risk": { "detected": false }, "content": "x", "EXIT": "NO", "BRIEF": 4711,
        "metrics": { "user_engagement": ["秘密4711"], "emotional_intensity": "a" },
        "progress_suggestion": "秘密4711", "metadata": "秘密4711",
    });
    let reply = read(&raw.to_string(), &shape, false).unwrap();
    let bends = serde_json::to_value(&reply.bends).unwrap();
    assert_eq!(
        bends,
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
fn nothing_is_left_of_a_reply_of_many_megabytes_that_is_none() {
    let shape = ReplyShape::new(&base("ai_ask"), &[]).unwrap();
    for unit in ["{", "{\"content\":\"", "你好", "```json\n", "[[", "{\"a\":[{"] {
        assert!(read(&unit.repeat((2 << 20) / unit.len()), &shape, false).is_err(), "{unit}");
    }
}

/// The text that arrives in pieces of so many bytes: a character that is cut comes with the piece that completes it, as the
/// providers join them.
fn shown_in_bytes(raw: &str, sizes: &[usize]) -> String {
    let mut live = LiveContent::new();
    let (mut shown, mut taken, mut arrived) = (String::new(), 0, 0);
    for size in sizes.iter().cycle() {
        arrived = raw.len().min(arrived + size);
        let whole = (taken..=arrived).rev().find(|&at| raw.is_char_boundary(at)).unwrap();
        shown.push_str(&live.push(&raw[taken..whole]));
        taken = whole;
        if arrived == raw.len() {
            return shown;
        }
    }
    shown
}

#[test]
fn a_reply_that_was_cut_off_before_it_said_whether_it_is_safe_is_refused() {
    let shape = ReplyShape::new(&base("ai_say"), &[]).unwrap();
    let refused = [
        r#"{"content":"您好","EXIT":"NO""#,
        r#"{"content":"您好","safety_risk":{"detected":tr"#,
        r#"{"content":"您好","safety_risk":{"risk_type":"x"}"#,
    ];
    for raw in refused {
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
    fn what_is_shown_of_any_reply_in_any_pieces_of_bytes_is_the_content_that_is_read(
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
