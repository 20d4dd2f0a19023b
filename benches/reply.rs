//! Measures the cost of reading a reply compared with plain `serde_json` (at least 0.7 × its speed), of repairing one, and of showing
//! one live.

#![allow(
    clippy::panic,
    missing_docs,
    reason = "a bench may fail where it stands, and criterion writes functions without docs"
)]

use std::hint::black_box;

use bcc_lang::schema::embedded;
use bcc_lang::value::declared::DeclaredType;
use bcc_llm::reply::live::LiveContent;
use bcc_llm::reply::read::read;
use bcc_llm::reply::shape::{OutputField, ReplyShape};
use bcc_llm::reply::strategies::parse;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;

/// A typical reply of a model, about 1.5 KB.
const REPLY: &str = include_str!("reply.json");

fn shape() -> ReplyShape {
    let base = embedded::reply("ai_ask").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let wanted = |name: &str, declared| OutputField {
        name: name.to_owned(),
        declared: Some(declared),
        ..OutputField::default()
    };
    let outputs = [wanted("父亲职业", DeclaredType::String), wanted("工作年限", DeclaredType::Integer)];
    ReplyShape::new(&base, &outputs).unwrap_or_else(|error| panic!("{error}"))
}

fn reply(c: &mut Criterion) {
    let raw = REPLY.trim_end();
    let shape = shape();
    assert!(read(raw, &shape, false).is_ok_and(|reply| reply.coercions.is_empty() && reply.parse_retry_count == 1));
    let fenced = format!("好的，以下是回复：\n\n```json\n{raw}\n```\n");

    let mut group = c.benchmark_group("reply");
    group.throughput(Throughput::Bytes(raw.len() as u64));
    group.bench_function("serde_json::from_str::<Value>", |b| b.iter(|| serde_json::from_str::<Value>(black_box(raw))));
    group.bench_function("strategies::parse", |b| b.iter(|| parse(black_box(raw), &[], false)));
    group.bench_function("read::read", |b| b.iter(|| read(black_box(raw), &shape, false)));
    group.bench_function("read::read, fenced", |b| b.iter(|| read(black_box(&fenced), &shape, false)));
    group.finish();
}

/// A reply whose `content` has about `bytes` bytes, with line breaks and quotes.
fn long_reply(bytes: usize) -> String {
    let sentence = "您刚才说“有点累”，能再多说一点吗？\n";
    let content = sentence.repeat(bytes / sentence.len());
    serde_json::json!({ "safety_risk": { "detected": false }, "content": content, "EXIT": "NO", "BRIEF": "x" })
        .to_string()
}

fn repaired(c: &mut Criterion) {
    let raw = REPLY.trim_end();
    let large = long_reply(64 << 10);
    let broken = |text: &str| format!("{},}}", text.strip_suffix('}').unwrap_or(text));
    let with_raw_line_ends = |text: &str| broken(&text.replace("\\n", "\n"));
    let cases = [
        ("clean, 2 KB", raw.to_owned()),
        ("clean, 64 KB", large.clone()),
        ("fenced, 64 KB", format!("```json\n{large}\n```")),
        ("in prose, 64 KB", format!("好的，{{name}}：{large} 以上。")),
        ("mended, 2 KB", broken(raw)),
        ("mended, 64 KB", broken(&large)),
        ("mended, 64 KB of raw line ends", with_raw_line_ends(&large)),
        ("mended, Python, 64 KB", large.replace("\\n", "").replace('"', "'").replace("false", "False")),
        ("refused, 64 KB of brackets", "[".repeat(64 << 10)),
        ("refused, 64 KB of quotes", format!("{{\"a\":{}", "\"".repeat(64 << 10))),
    ];
    let mut group = c.benchmark_group("parse");
    for (name, text) in &cases {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(*name, |b| b.iter(|| parse(black_box(text), &[], true)));
    }
    group.finish();
}

fn live(c: &mut Criterion) {
    let text = long_reply(64 << 10);
    let pieces: Vec<String> = text.chars().collect::<Vec<_>>().chunks(4).map(|piece| piece.iter().collect()).collect();
    let mut group = c.benchmark_group("live words");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("64 KB, 4 characters a piece", |b| {
        b.iter(|| {
            let mut live = LiveContent::new();
            pieces.iter().map(|piece| live.push(black_box(piece)).len()).sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, reply, repaired, live);
criterion_main!(benches);
