//! Property tests: whole replies, damaged or surrounded in many ways, are read exactly or rejected, by every strategy.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::reply::repair::record::RepairKind;
use crate::reply::strategies::parse;

const OWN: &[&str] = &["safety_risk", "content", "EXIT", "BRIEF", "score", "list"];

/// The number of replies, each damaged in every way. BCC_DAMAGED_REPLIES tests another number, and PROPTEST_RNG_SEED other replies.
const REPLIES: usize = 300;

/// A damage: its name, and the damaged text of a reply; `None` if it would not be damaged, or if the result would be ambiguous.
type Damage = (&'static str, fn(&Reply) -> Option<String>);

#[derive(Debug)]
struct Reply {
    object: Map<String, Value>,
    /// As compact JSON.
    json: String,
    /// As indented JSON.
    pretty: String,
    /// A text that may occur anywhere in prose.
    prose: String,
    position: usize,
}

const GERMAN: &str = "Das ist „gut\", sagt er.";

const DAMAGES: [Damage; 57] = [
    ("prose before", |r| Some(format!("{}\n{}", r.prose, r.json))),
    ("prose after", |r| Some(format!("{}\n{}", r.json, r.prose))),
    ("fence", |r| Some(format!("```json\n{}\n```", r.pretty))),
    ("fence and prose", |r| Some(format!("{}\n\n```JSON\n{}\n```\n{}", r.prose, r.pretty, r.prose))),
    ("open fence", |r| Some(format!("```\n{}", r.json))),
    ("reasoning", |r| Some(format!("<think>{} {{\"content\":\"draft\"}}</think>{}", r.prose, r.json))),
    ("reasoning in another tag", |r| Some(format!("<thinking>\n{}\n</thinking>\n{}", draft(r), r.json))),
    ("reasoning without its opening tag", |r| Some(format!("{} {}</reasoning>{}", r.prose, draft(r), r.json))),
    ("reasoning in a channel", |r| {
        Some(format!("<|channel|>analysis<|message|>{}<|end|><|channel|>final<|message|>{}", draft(r), r.json))
    }),
    ("example before", |r| Some(format!("例如 {}。\n{}", draft(r), r.json))),
    ("example after", |r| Some(format!("{}\n或者 {}", r.json, draft(r)))),
    ("example in a fence", |r| Some(format!("{}\n```json\n{}\n```", r.json, draft(r)))),
    ("an example of something else", |r| Some(format!("{{\"key\": \"value\"}} {}", r.json))),
    ("twice", |r| Some(format!("{}\n{}", r.json, r.pretty))),
    ("in a list", |r| Some(format!("[{}]", r.json))),
    ("doubled braces", |r| Some(format!("{{{}}}", r.json))),
    ("a closing brace too many", |r| Some(format!("{}}}", r.json))),
    ("a closing brace too many inside", |r| between(r, "}", |before| before == '}')),
    ("no opening brace", |r| Some(r.json[1..].to_owned())),
    ("no first half", |r| Some(cut(r).1.to_owned())),
    ("a text that contains a fenced reply", |r| raw_content(r, "You wrote:\n```json\n{}\n```\nIs that so?")),
    ("a text that contains a reply", |r| raw_content(r, "You wrote {} here.")),
    ("a text in single quotes that contains a reply", |r| {
        Some(format!("{{'content': 'You wrote {}', 'EXIT': 'NO'}}", draft(r)))
    }),
    ("a reply with bare keys that contains a reply", |r| {
        Some(format!("{{content: 'You wrote {}', EXIT: 'NO'}}", draft(r)))
    }),
    ("a text in single quotes that contains a fenced reply", |r| {
        Some(format!("{{\"content\": 'You wrote\n```json\n{}\n```', \"EXIT\": \"NO\"}}", draft(r)))
    }),
    ("a text without quotes that contains a fenced reply", |r| {
        Some(format!("{{\"content\": You wrote\n```json\n{}\n```\n}}", draft(r)))
    }),
    ("YAML that contains a reply", |r| Some(format!("content: You wrote {}\nEXIT: NO", draft(r)))),
    ("a call that contains a reply", |r| Some(format!("reply(content=\"You wrote {}\", EXIT=\"NO\")", draft(r)))),
    ("encoded twice", |r| Some(Value::from(r.json.as_str()).to_string())),
    ("escaped quotes", |r| {
        let encoded = Value::from(r.json.as_str()).to_string();
        Some(encoded[1..encoded.len() - 1].to_owned())
    }),
    ("escaped quotes and a comma too many", |r| {
        let encoded = Value::from(format!("{},}}", &r.json[..r.json.len() - 1])).to_string();
        Some(encoded[1..encoded.len() - 1].to_owned())
    }),
    ("raw line ends", |r| r.json.contains("\\n").then(|| r.json.replace("\\n", "\n"))),
    ("a comment before a comma", |r| between(r, "/* 好 */", |before| matches!(before, '"' | '}' | ']'))),
    ("a comment at a line's end", |r| Some(r.pretty.replace(",\n", ", // 好 x\n"))),
    ("no colon", |r| without(r, ": ", "\" ", |after| !after.starts_with(['{', '[']))),
    ("an equals sign", |r| without(r, ": ", "\"=", |_| true)),
    ("a comma too few", |r| without(r, ",\n", "\n", |_| true).filter(|text| !text.is_empty())),
    ("a comma too many", |r| Some(r.pretty.replace("\n}", ",\n}"))),
    ("an ellipsis", |r| Some(format!("{}, ...}}", &r.json[..r.json.len() - 1]))),
    ("no last brace", |r| Some(r.json[..r.json.len() - 1].to_owned())),
    ("a bracket of the wrong kind", |r| replaced(r, ']', "}")),
    ("a bracket too few", |r| replaced(r, ']', "")),
    ("a brace too few", |r| replaced(r, '}', "")),
    ("a German quotation", |r| raw_content(r, GERMAN)),
    ("no closing quote", |r| requoted(r, &r.json, Token::Text, |text| Some(text.strip_suffix('"')?.to_owned()))),
    ("no closing quote on a line", |r| {
        requoted(r, &r.pretty, Token::Text, |text| Some(text.strip_suffix('"')?.to_owned()))
    }),
    ("no closing quote and no comma", |r| {
        let text = requoted(r, &r.pretty, Token::Text, |text| Some(format!("{}@@@", text.strip_suffix('"')?)))?;
        // The comma could be the one between the fields.
        if text.contains(",@@@") {
            return None;
        }
        Some(text.replace("@@@,", "").replace("@@@", ""))
    }),
    ("no closing quote of a key", |r| requoted(r, &r.json, Token::Key, |key| Some(key.strip_suffix('"')?.to_owned()))),
    ("no opening quote", |r| {
        requoted(r, &r.json, Token::Text, |text| {
            // A space could be the one after the colon.
            text.strip_prefix('"').filter(|text| !text.starts_with(' ')).map(str::to_owned)
        })
    }),
    ("no opening quote of a key", |r| requoted(r, &r.json, Token::Key, |key| Some(key.strip_prefix('"')?.to_owned()))),
    ("a doubled opening quote", |r| requoted(r, &r.json, Token::Any, |text| Some(format!("\"{text}")))),
    ("a doubled closing quote", |r| requoted(r, &r.json, Token::Any, |text| Some(format!("{text}\"")))),
    ("a quote that is not escaped", |r| {
        requoted(r, &r.json, Token::Text, |text| {
            // At the beginning, it would be a doubled opening quote.
            let is_inside = text.contains("\\\"") && !text.starts_with("\"\\\"");
            is_inside.then(|| text.replacen("\\\"", "\"", 1))
        })
    }),
    ("all quotes doubled", |r| Some(r.json.replace('"', "\"\""))),
    ("a word before a key", |r| requoted(r, &r.json, Token::Key, |key| Some(format!("NOTE {key}")))),
    ("a line end in a key", |r| {
        requoted(r, &r.json, Token::Key, |key| Some(format!("{}\n\"", key.strip_suffix('"')?)))
    }),
    ("a text that contains fields", |r| raw_content(r, "You wrote, \"EXIT\": \"YES\", \"score\": 10 WRONG")),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Key,
    Text,
    Any,
}

/// `json`, compact or indented, with the quoted text or key at one position replaced.
fn requoted(reply: &Reply, json: &str, token: Token, damage: fn(&str) -> Option<String>) -> Option<String> {
    let outside = outside(json);
    let quotes: Vec<usize> = outside.into_iter().filter(|&at| json[at..].starts_with('"')).collect();
    let ends = |start: usize| {
        let mut stream = serde_json::Deserializer::from_str(&json[start..]).into_iter::<String>();
        stream.next();
        start + stream.byte_offset()
    };
    let damaged: Vec<String> = quotes
        .into_iter()
        .map(|start| (start, ends(start)))
        .filter(|&(_, end)| match token {
            Token::Any => true,
            _ => json[end..].starts_with(':') == (token == Token::Key),
        })
        .filter_map(|(start, end)| Some(format!("{}{}{}", &json[..start], damage(&json[start..end])?, &json[end..])))
        .collect();
    damaged.get(reply.position % damaged.len().max(1)).cloned()
}

/// Another reply, which is not the one that is meant.
fn draft(reply: &Reply) -> String {
    json!({ "content": format!("WRONG {}", reply.position), "EXIT": "YES", "score": 10 }).to_string()
}

fn cut(reply: &Reply) -> (&str, &str) {
    let mut at = reply.position % reply.json.len();
    while !reply.json.is_char_boundary(at) {
        at += 1;
    }
    reply.json.split_at(at)
}

/// The reply with `content` in place of its content, unescaped, and the JSON of another reply in place of `{}`.
fn raw_content(reply: &Reply, content: &str) -> Option<String> {
    let mut object = reply.object.clone();
    object.insert("content".into(), json!("@@@"));
    Some(Value::Object(object).to_string().replace("@@@", &content.replace("{}", &draft(reply))))
}

/// The positions in indented or compact JSON that are outside strings.
fn outside(json: &str) -> Vec<usize> {
    let (mut string, mut escaped) = (false, false);
    let mut found = Vec::new();
    for (at, c) in json.char_indices() {
        if !string {
            found.push(at);
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if string => escaped = true,
            '"' => string = !string,
            _ => {}
        }
    }
    found
}

/// The compact text with `inserted` at one position outside strings whose previous character is accepted.
fn between(reply: &Reply, inserted: &str, before: fn(char) -> bool) -> Option<String> {
    let places: Vec<usize> = outside(&reply.json)
        .into_iter()
        .filter(|&at| matches!(reply.json[at..].chars().next(), Some(',' | '}')))
        .filter(|&at| reply.json[..at].chars().next_back().is_some_and(before))
        .collect();
    let at = *places.get(reply.position % places.len().max(1))?;
    Some(format!("{}{inserted}{}", &reply.json[..at], &reply.json[at..]))
}

/// The indented text with one `removed` outside strings replaced; the replacement for a colon includes the quote before it.
fn without(reply: &Reply, removed: &str, by: &str, after: fn(&str) -> bool) -> Option<String> {
    let text = &reply.pretty;
    let places: Vec<usize> = outside(text)
        .into_iter()
        .filter(|&at| text[at..].starts_with(removed) && after(&text[at + removed.len()..]))
        .collect();
    let at = *places.get(reply.position % places.len().max(1))?;
    let start = if by.starts_with('"') { at - 1 } else { at };
    Some(format!("{}{by}{}", &text[..start], &text[at + removed.len()..]))
}

/// The compact text with one `bracket` outside strings replaced, but not the last character.
fn replaced(reply: &Reply, bracket: char, by: &str) -> Option<String> {
    let text = &reply.json;
    let places: Vec<usize> =
        outside(text).into_iter().filter(|&at| text[at..].starts_with(bracket) && at + 1 < text.len()).collect();
    let at = *places.get(reply.position % places.len().max(1))?;
    Some(format!("{}{by}{}", &text[..at], &text[at + 1..]))
}

/// Parts of texts that look like syntax, in several languages.
const PIECES: [&str; 40] = [
    "您好",
    "„gut“",
    "„gut\"",
    "“还好”",
    "「是」",
    "it's",
    "\"",
    "\"",
    "'",
    "`",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\\",
    "\n",
    "\t",
    "//",
    "/* x */",
    "#",
    "```json\n",
    "\n```\n",
    "{\"content\": \"x\"}",
    "\", \"EXIT\": \"YES\"",
    "</think>",
    "<think>",
    "...",
    "…",
    "content: ",
    "1.10",
    "20241018220014123456789012",
    " + ",
    "、",
    "，",
    "：",
    "}}",
    "\"}",
    " a b ",
];

fn any_text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..6).prop_map(|pieces| pieces.concat())
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let prose =
        prop::sample::select(&["好的：", "Sure, here it is.", "用 {name} 称呼 {称呼}：", "他说\"好\"，", ""][..]);
    let item = prop_oneof![
        any_text().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(json!({ "k": [1, "b"] }))
    ];
    let fields = (any_text(), any_text(), prop::collection::vec(item, 0..4), any::<i32>());
    (fields, prose, any::<u16>()).prop_map(|((content, brief, list, score), prose, position)| {
        let value = json!({
            "safety_risk": { "detected": false }, "content": content, "list": list, "EXIT": "NO", "score": score,
            "BRIEF": brief, "metadata": { "tags": ["a", brief] },
        });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let Value::Object(object) = value else { unreachable!() };
        let json = Value::Object(object.clone()).to_string();
        Reply { object, json, pretty, prose: prose.to_owned(), position: usize::from(position) }
    })
}

/// Whether `read` is what was meant: the whole object, or only complete fields of it if the text is recorded as cut off.
fn is_right(read: &Map<String, Value>, reply: &Reply, is_cut: bool) -> bool {
    *read == reply.object || (is_cut && read.iter().all(|(key, value)| reply.object.get(key) == Some(value)))
}

#[test]
fn a_damaged_reply_is_read_exactly_or_rejected_by_every_strategy() {
    let mut runner = TestRunner::new(Config::default());
    let replies = std::env::var("BCC_DAMAGED_REPLIES").ok().and_then(|count| count.parse().ok()).unwrap_or(REPLIES);
    // For each damage: damaged, read by the first three strategies, read with repair.
    let mut counts = BTreeMap::<&str, [usize; 3]>::new();
    let mut wrong = Vec::new();
    for _ in 0..replies {
        let reply = any_reply().new_tree(&mut runner).unwrap().current();
        for (name, damage) in DAMAGES {
            let Some(raw) = damage(&reply) else { continue };
            let count = counts.entry(name).or_default();
            count[0] += 1;
            for (column, repair) in [(1, false), (2, true)] {
                let Ok(parsed) = parse(&raw, OWN, repair) else { continue };
                count[column] += 1;
                // Without its opening brace, the first fields may be missing.
                let is_partial = |kind| matches!(kind, RepairKind::CutOff | RepairKind::MissingBrace);
                let is_cut = parsed.repairs.iter().any(|repair| is_partial(repair.kind));
                if !is_right(&parsed.object, &reply, is_cut) && !is_right_content(name, &parsed.object) {
                    wrong.push(format!(
                        "{name}: {raw}\n    {}\n    {:?}",
                        Value::Object(parsed.object),
                        parsed.repairs
                    ));
                }
            }
        }
    }
    let table: String =
        counts.iter().map(|(name, [all, plain, repaired])| format!("{name}: {all} {plain} {repaired}\n")).collect();
    println!("{table}");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.iter().take(400).cloned().collect::<Vec<_>>().join("\n")
    );
    assert!(counts.len() >= 40);
    // These can be read in one way only.
    for name in ["fence", "reasoning in another tag", "reasoning in a channel", "prose before"] {
        let [all, plain, _] = counts[name];
        assert!(plain * 10 >= all * 9, "{name}:\n{table}");
    }
    for name in ["encoded twice", "raw line ends"] {
        let [all, _, repaired] = counts[name];
        assert!(repaired * 10 >= all * 9, "{name}:\n{table}");
    }
    for name in [
        "a comment before a comma",
        "a comma too many",
        "an equals sign",
        "no colon",
        "no last brace",
        "a bracket too few",
    ] {
        let [all, _, repaired] = counts[name];
        assert!(repaired * 2 >= all, "{name}:\n{table}");
    }
}

/// Whether a reply whose content was replaced, or that contains another one as a text, was read as it was written.
fn is_right_content(name: &str, object: &Map<String, Value>) -> bool {
    let content = object.get("content").and_then(Value::as_str).unwrap_or_default();
    let is_whole = content.starts_with("You wrote") && content.contains("WRONG") && name.contains("contains");
    object.get("EXIT").is_some_and(|exit| exit == "NO") && (is_whole || content == GERMAN)
}
