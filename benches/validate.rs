//! Measures the cost of checking scripts, in one thread and without a disk: the bare YAML parse, the tree, the reading, the check of `run`
//! and the check of `validate`, for a script of 300 lines and one of 3 MB (target: at most 2.5 × the bare parse there).
//!
//! The stages alternate, so that other load affects all of them. `BCC_BENCH_RUNS` sets the number of runs (200 and 10).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bcc_check::check::{check, examine};
use bcc_check::context::CheckContext;
use bcc_check::library::SkillLibrary;
use bcc_engine::files::TemplateFolders;
use bcc_lang::schema::embedded;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::read;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::collect;
use bcc_lang::template::templates::Templates;
use bcc_runtime::actions::KINDS;
use granit_parser::Parser;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "support/realistic.rs"]
mod realistic;

/// Counts the events of the parser and does nothing else.
fn bare(text: &str) -> usize {
    Parser::new_from_str(text).filter(Result::is_ok).count()
}

fn stages(text: String, context: &CheckContext<'_>, runs: usize) {
    let file = Arc::new(SourceFile::new("script.yaml", text));
    let (program, found) = check(&file, parse(&file), context);
    assert!(program.is_some() && found.is_empty(), "the script is not clean: {:#?}", found.first());
    let stages: [(&str, &dyn Fn()); 5] = [
        ("bare parse", &|| {
            black_box(bare(black_box(file.text())));
        }),
        ("tree", &|| drop(black_box(parse(&file)))),
        ("read", &|| drop(black_box(parse(&file).root.and_then(|root| read(&file, &root, &Findings::new()))))),
        ("check, as for run", &|| drop(black_box(check(&file, parse(&file), context)))),
        ("check, as for validate", &|| drop(black_box(examine(&file, parse(&file), context)))),
    ];
    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..runs {
        for ((_, stage), times) in stages.iter().zip(&mut times) {
            let began = Instant::now();
            stage();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    let bytes = file.text().len() as f64;
    println!("{} lines, {:.2} MB, {runs} runs of each stage", file.text().lines().count(), bytes / 1e6);
    let mut first = None;
    for ((name, _), times) in stages.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let fastest = times.first().copied().unwrap_or_default();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let (bare_fastest, bare_median) = *first.get_or_insert((fastest, median));
        println!(
            "  {name:24} median {median:8.3} ms, {:4.2} × the bare parse   fastest {fastest:8.3} ms, {:4.2} ×",
            median / bare_median,
            fastest / bare_fastest
        );
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runs =
        |default: usize| std::env::var("BCC_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default);
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = collect(&TemplateFolders::of(project), None).expect("the templates");
    let templates = Arc::new(Templates::new(&files, "0123456789abcdef0123456789abcdef").expect("sound templates"));
    let schema = |kind: &str| Some((kind.to_owned(), serde_json::from_str(embedded::reply(kind)?).ok()?));
    let reply_schemas: BTreeMap<_, _> = KINDS.iter().filter_map(|kind| schema(kind.name())).collect();
    let library = SkillLibrary::default();
    let context = CheckContext {
        kinds: KINDS,
        custom: &Default::default(),
        templates,
        reply_schemas: &reply_schemas,
        library: &library,
        models: None,
    };
    stages(realistic::script(300, 0), &context, runs(200));
    let lines = 75_000;
    let large = realistic::script(lines, 0);
    let lines = lines * 3_000_000 / large.len() + 1;
    stages(realistic::script(lines, 0), &context, runs(10));
}
