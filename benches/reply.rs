//! What reading a clean reply costs beside plain `serde_json` (the issue asks for at least 0.7 × its speed).

#![allow(
    clippy::panic,
    missing_docs,
    reason = "a bench may fail where it stands, and criterion writes functions without docs"
)]

use std::hint::black_box;

use bcc_script::reply::read::read;
use bcc_script::reply::shape::{ReplyShape, Wanted};
use bcc_script::reply::strategies::parse;
use bcc_script::schema::embedded;
use bcc_script::value::declared::DeclaredType;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;

/// A reply as a model writes it, about 1.5 KB.
const REPLY: &str = include_str!("reply.json");

fn shape() -> ReplyShape {
    let base = embedded::reply("ai_ask").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let wanted = |name: &str, declared| Wanted { name: name.to_owned(), declared: Some(declared), ..Wanted::default() };
    let outputs = [wanted("父亲职业", DeclaredType::String), wanted("工作年限", DeclaredType::Integer)];
    ReplyShape::new(&base, &outputs).unwrap_or_else(|error| panic!("{error}"))
}

fn reply(c: &mut Criterion) {
    let raw = REPLY.trim_end();
    let shape = shape();
    assert!(read(raw, &shape, false).is_ok_and(|reply| reply.bends.is_empty() && reply.parse_retry_count == 1));
    let fenced = format!("好的，以下是回复：\n\n```json\n{raw}\n```\n");

    let mut group = c.benchmark_group("reply");
    group.throughput(Throughput::Bytes(raw.len() as u64));
    group.bench_function("serde_json::from_str::<Value>", |b| b.iter(|| serde_json::from_str::<Value>(black_box(raw))));
    group.bench_function("strategies::parse", |b| b.iter(|| parse(black_box(raw), false)));
    group.bench_function("read::read", |b| b.iter(|| read(black_box(raw), &shape, false)));
    group.bench_function("read::read, fenced", |b| b.iter(|| read(black_box(&fenced), &shape, false)));
    group.finish();
}

criterion_group!(benches, reply);
criterion_main!(benches);
