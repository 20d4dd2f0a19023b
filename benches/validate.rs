//! What checking scripts costs, in one thread and without a disk: the bare YAML parse, the tree, the reading, the whole check,
//! for a script of 300 lines and for one of 3 MB (the issue asks for at most 2.5 × the bare parse there).

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench may fail where it stands, and criterion writes functions without docs"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bcc_script::engine::files::TemplateFolders;
use bcc_script::engine::pin::Pinned;
use bcc_script::prompt::layers::collect;
use bcc_script::script::findings::Findings;
use bcc_script::script::read::read;
use bcc_script::source::text::SourceFile;
use bcc_script::source::yaml::parse;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use granit_parser::Parser;

#[path = "support/realistic.rs"]
mod realistic;

fn script(lines: usize) -> Arc<SourceFile> {
    Arc::new(SourceFile::new("script.yaml", realistic::script(lines, 0)))
}

/// The events of the parser and nothing else.
fn bare(text: &str) -> usize {
    Parser::new_from_str(text).filter(Result::is_ok).count()
}

fn stages(c: &mut Criterion, name: &str, file: &Arc<SourceFile>) {
    let templates = collect(&TemplateFolders::of(Path::new(env!("CARGO_MANIFEST_DIR"))), None).expect("templates");
    let pinned = Pinned::new(Arc::clone(file), templates, BTreeMap::new());
    let (program, found) = pinned.check(parse(file)).expect("a check");
    assert!(program.is_some() && found.is_empty(), "the script is not clean: {:#?}", found.first());
    let lines = file.text().lines().count();
    let mut group = c.benchmark_group(format!("{name}, {lines} lines"));
    group.throughput(Throughput::Bytes(file.text().len() as u64));
    if file.text().len() > 1_000_000 {
        group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(5));
    }
    group.bench_function("bare parse", |b| b.iter(|| bare(black_box(file.text()))));
    group.bench_function("tree", |b| b.iter(|| parse(black_box(file))));
    group.bench_function("read", |b| {
        b.iter(|| parse(black_box(file)).root.and_then(|root| read(file, &root, &Findings::new())))
    });
    group.bench_function("check", |b| b.iter(|| pinned.check(parse(file))));
    group.finish();
}

fn validate(c: &mut Criterion) {
    stages(c, "small", &script(300));
    let mut large = script(75_000);
    if large.text().len() < 3_000_000 {
        large = script(75_000 * 3_000_000 / large.text().len());
    }
    stages(c, "large", &large);
}

criterion_group!(benches, validate);
criterion_main!(benches);
