//! Tests of the documentation: its links are valid, its scripts have no findings, its commands parse, and the output that it shows is the
//! actual output.

use crate::checking;
use crate::offline_conversation;
use crate::pages;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use bcc_lang::source::text::SourceFile;
use bcc_lang::value::declared::DeclaredType;
use bcc_llm::providers::replay::Replay;
use bcc_llm::reply::read::read;
use bcc_llm::reply::shape::{OutputField, ReplyShape};
use bcc_runtime::program::exchange::PROMPT_NAMES;
use bcc_runtime::program::monitor::MONITOR_NAMES;
use bcc_runtime::program::turn::ENGINE_NAMES;
use bcc_runtime::run::session::SessionPause;
use bcc_script::cli::cli::Arguments;
use checking::{findings, findings_report};
use clap::Parser;
use pages::{Block, Page, all, link_exists, root};
use serde_json::{Value, json};

/// The page whose commands tests/cli/first_ten_minutes.rs runs one after the other.
const TEN_MINUTES: &str = "docs/first-ten-minutes.md";

/// The variables that are declared around the examples of single actions.
const DECLARED: &str = "[{ var: user_name }, { var: mood, type: string }, { var: attempts, type: integer, value: 0 }, \
     { var: age, type: integer }, { var: sleep_hours, type: number }, { var: sleep_quality, type: string }]";

#[test]
fn every_link_target_exists() {
    let mut count = 0;
    for page in all() {
        for link in page.links() {
            if !link.contains("://") {
                assert!(link_exists(&page, &link), "{}: {link}", page.path);
                count += 1;
            }
        }
    }
    assert!(count > 30, "only {count} links found");
}

fn indented(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
}

/// A session around a list of actions.
fn around_actions(actions: &str) -> String {
    format!(
        "session:\n  session_id: around\n  tools: [web_search, graph_rag]\n  declare: {DECLARED}\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{}",
        indented(actions, 12)
    )
}

/// A session with `action`, one line, as its only one.
const ONE_ACTION: &str = "  phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_say, action_id: a, config: { content: x } }] }] }]\n";

/// The complete script for a YAML block of a page.
fn full_script(block: &Block) -> Option<String> {
    let text = &block.text;
    let parsed: Value = serde_yaml::from_str(text).unwrap_or_else(|error| panic!("line {}: {error}", block.line));
    let has = |name: &str| parsed.get(name).is_some();
    Some(match () {
        () if parsed.is_array() => around_actions(text),
        () if parsed.pointer("/session/phases").is_some() => text.clone(),
        () if has("skill") => text.clone(),
        () if has("session") => format!("{text}{ONE_ACTION}"),
        () if has("declare") => format!("session:\n  session_id: around\n{}{ONE_ACTION}", indented(text, 2)),
        () if has("condition") => around_actions(&format!(
            "- action_type: ai_say\n  action_id: a\n  config: {{ content: x }}\n{}",
            indented(text, 2)
        )),
        () if has("output") => around_actions(&format!(
            "- action_type: ai_ask\n  action_id: a\n  config:\n    content: x\n{}",
            indented(text, 4)
        )),
        () => return None,
    })
}

/// A script with this skill under `skills:`.
fn calling(skill: &str) -> String {
    let skill = indented(skill.trim_start_matches("skill:").trim_start_matches('\n'), 4);
    format!("session:\n  session_id: around\n  skills:\n    -\n{skill}{ONE_ACTION}")
}

/// A project with the scheme that `docs/templates.md` creates.
fn project() -> tempfile::TempDir {
    let project = tempfile::tempdir().unwrap();
    let gentle = project.path().join("_system/config/custom/gentle");
    fs::create_dir_all(&gentle).unwrap();
    let english = root().join("_system/config/custom/english");
    for entry in fs::read_dir(english).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, gentle.join(path.file_name().unwrap())).unwrap();
    }
    project
}

#[test]
fn every_script_in_the_pages_checks_without_a_finding() {
    let project = project();
    let mut count = 0;
    for page in all() {
        // A block that is shown as a separate file is available to the other examples of the page.
        let blocks: Vec<&Block> = page.blocks_in(&["yaml"]).collect();
        let skill = |text: &str| text.starts_with("skill:");
        let skills = blocks.iter().map(|block| block.text.clone()).filter(|text| skill(text));
        let skills: Vec<_> = skills.map(|text| Arc::new(SourceFile::new("skill.yaml", text))).collect();
        // Conversation tests are run by tests/cli/test_runner.rs, with their scripts.
        for block in page.blocks_in(&["yaml"]).filter(|block| !block.text.starts_with("test:")) {
            let place = format!("{}:{}", page.path, block.line);
            match full_script(block) {
                Some(script) => {
                    let script = if skill(&script) { calling(&script) } else { script };
                    let found = findings(project.path(), &script, &skills);
                    assert!(found.is_empty(), "{place}:\n{}\n{script}", findings_report(&found));
                }
                None => {
                    Replay::parse(&place, &block.text).unwrap();
                }
            }
            count += 1;
        }
    }
    assert!(count >= 13, "only {count} examples found");
}

#[test]
fn every_other_data_block_is_valid() {
    for page in all() {
        for block in &page.blocks {
            let place = format!("{}:{}", page.path, block.line);
            match block.language.as_str() {
                "toml" => drop(bcc_engine::config::config::parse(&place, &block.text).unwrap()),
                "json" => {
                    drop(serde_json::from_str::<Value>(&block.text).unwrap_or_else(|error| panic!("{place}: {error}")))
                }
                "jsonl" if page.path == "docs/configuration.md" => drop(Replay::parse(&place, &block.text).unwrap()),
                "jsonl" => block.text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap())),
                "yaml"
                | "yaml scripts/intake.yaml"
                | "yaml scripts/release.yaml"
                | "yaml scripts/mails.yaml"
                | "sh"
                | "console"
                | "text"
                | "" => {}
                // Run by tests/cli/templates.rs.
                "shell-session" if page.path == "docs/templates.md" => {}
                // Applied by tests/cli/first_ten_minutes.rs.
                changes if changes.starts_with("diff ") && page.path == TEN_MINUTES => {}
                other => panic!("{place}: nobody checks blocks of {other:?}"),
            }
        }
    }
}

/// The outputs in the first YAML example of a page.
fn outputs_of(page: &Page) -> Vec<OutputField> {
    let actions: Value = serde_yaml::from_str(&page.blocks_in(&["yaml"]).next().unwrap().text).unwrap();
    let list = |name: &str| actions.pointer(&format!("/0/config/{name}")).and_then(Value::as_array).cloned();
    let outputs = list("output").or_else(|| list("slots")).unwrap_or_default();
    let text = |output: &Value, name: &str| output[name].as_str().map(str::to_owned);
    let output_field = |output: Value| OutputField {
        name: text(&output, "get").unwrap(),
        declared: text(&output, "type").map(|name| DeclaredType::parse(&name).unwrap()),
        choices: output["enum"].as_array().cloned().unwrap_or_default(),
        define: text(&output, "define"),
        optional: false,
    };
    outputs.into_iter().map(output_field).collect()
}

#[test]
fn every_reply_in_the_pages_of_kinds_is_parsed_without_coercion() {
    let mut count = 0;
    for kind in bcc_lang::schema::embedded::replies().filter(|name| *name != "ai_say_monitor") {
        let path =
            if kind == "ai_ask_monitor" { "docs/monitors.md".to_owned() } else { format!("docs/actions/{kind}.md") };
        let page = Page::of(&path);
        let base = serde_json::from_str(bcc_lang::schema::embedded::reply(kind).unwrap()).unwrap();
        let outputs = if kind == "ai_ask_monitor" { Vec::new() } else { outputs_of(&page) };
        let shape = ReplyShape::new(&base, &outputs).unwrap();
        for block in page.blocks_in(&["json"]) {
            let reply = read(block.text.trim(), &shape, false).unwrap();
            assert_eq!((reply.parse_retry_count, reply.coercions.len()), (1, 0), "{kind}: {:?}", reply.coercions);
            for output in shape.wanted() {
                assert!(reply.object.contains_key(output), "{kind}: the reply does not carry `{output}`");
            }
            count += 1;
        }
    }
    assert_eq!(count, 5);
}

#[test]
fn the_page_of_monitors_lists_every_name_that_their_prompts_get() {
    let page = Page::of("docs/monitors.md");
    for name in MONITOR_NAMES.iter().chain(&["user_feedback_history"]) {
        assert!(page.text.lines().any(|row| row.starts_with('|') && row.contains(&format!("`{name}`"))), "{name}");
    }
}

#[test]
fn the_template_page_lists_every_name_that_a_prompt_gets() {
    let page = Page::of("docs/templates.md");
    let (_, names) = page.text.split_once("## Names").unwrap();
    let (names, _) = names.split_once("\n## ").unwrap();
    for name in PROMPT_NAMES.iter().chain(&ENGINE_NAMES).chain(&["goal", "inputs"]) {
        assert!(names.lines().any(|row| row.starts_with('|') && row.contains(&format!("`{name}`"))), "{name}");
    }
    let (_, reserved) = Page::of("docs/language.md")
        .text
        .split_once("### Names you cannot use")
        .map(|(a, b)| (a.len(), b.to_owned()))
        .unwrap();
    for name in ENGINE_NAMES {
        assert!(reserved.contains(&format!("`{name}`")), "{name}");
    }
}

/// The level of each heading, in order, and every keyword of the language in backticks outside of code blocks.
fn skeleton(page: &Page) -> (Vec<usize>, std::collections::BTreeSet<String>) {
    let mut in_code = false;
    let (mut headings, mut words) = (Vec::new(), std::collections::BTreeSet::new());
    for line in page.text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            headings.extend(line.starts_with('#').then(|| line.chars().take_while(|c| *c == '#').count()));
            let spans = line.split('`').skip(1).step_by(2);
            words.extend(spans.filter(|span| !span.contains(' ') && span.is_ascii()).map(str::to_owned));
        }
    }
    (headings, words)
}

#[test]
fn the_chinese_language_page_has_the_headings_and_keywords_of_the_english_one() {
    let (english, chinese) = (Page::of("docs/language.md"), Page::of("docs/language.zh.md"));
    let ((headings, words), (its_headings, its_words)) = (skeleton(&english), skeleton(&chinese));
    assert_eq!(headings, its_headings, "the headings of the two pages");
    let missing: Vec<&String> = words.difference(&its_words).collect();
    assert!(missing.is_empty(), "docs/language.zh.md does not speak of {missing:?}");
    let rows = |page: &Page| page.text.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows(&english), rows(&chinese), "the rows of the tables of the two pages");
    let examples = |page: &Page| page.blocks_in(&["yaml"]).count();
    assert_eq!(examples(&english), examples(&chinese), "the examples of the two pages");
    for (page, other) in [(&english, "language.zh.md"), (&chinese, "language.md")] {
        assert!(page.links().iter().any(|link| link == other), "{} does not link {other}", page.path);
    }
}

#[test]
fn the_chinese_readme_has_the_parts_and_the_commands_of_the_english_one() {
    let (english, chinese) = (Page::of("README.md"), Page::of("README.zh.md"));
    assert_eq!(skeleton(&english).0, skeleton(&chinese).0, "the headings of the two pages");
    let commands = |page: &Page| -> Vec<String> {
        let lines = page.blocks_in(&["sh"]).flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>());
        lines.map(|line| line.split(" #").next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(commands(&english), commands(&chinese), "the commands of the two pages");
    for link in chinese.links().iter().filter(|link| !link.contains("://")) {
        assert!(link_exists(&chinese, link), "README.zh.md: {link}");
    }
    for block in chinese.blocks_in(&["yaml"]).filter(|block| !block.text.starts_with("test:")) {
        let found = findings(&root(), &full_script(block).unwrap(), &[]);
        assert!(found.is_empty(), "README.zh.md:{}:\n{}", block.line, findings_report(&found));
    }
}

/// The words of a shell command, without quotes.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The arguments of `bcc-script` in a command, if it is one; panics on an unknown command.
fn arguments(command: &str) -> Option<Vec<String>> {
    let words = shell_words(command);
    let mut words = words.iter().map(String::as_str).skip_while(|word| word.contains('=') && !word.starts_with('-'));
    match words.next()? {
        "bcc-script" => {}
        "cargo" => {
            let rest: Vec<&str> = words.by_ref().take_while(|word| *word != "--").collect();
            match rest.first().copied() {
                Some("run") if !rest.contains(&"--example") => {}
                Some("run" | "test" | "fmt" | "clippy" | "install" | "nextest" | "insta" | "+nightly") => return None,
                other => panic!("{command}: cargo {other:?}"),
            }
        }
        // Sent by tests/server/openapi.rs.
        "curl" => return None,
        "printf" | "export" | "mkdir" | "python3" | "cp" | "cd" | "grep" | ".ci/run" => return None,
        other => panic!("{command}: nobody checks `{other}`"),
    }
    let end = |word: &&str| !matches!(*word, "2>/dev/null" | ">" | "<" | "#");
    Some(std::iter::once("bcc-script").chain(words.take_while(end)).map(str::to_owned).collect())
}

#[test]
fn every_command_in_the_pages_parses() {
    let mut count = 0;
    for page in all() {
        let blocks = page.blocks_in(&["sh", "console"]).flat_map(|block| {
            let shown = block.language == "console";
            block.text.lines().filter_map(move |line| if shown { line.strip_prefix("$ ") } else { Some(line) })
        });
        let mut in_code = false;
        let prose = page.text.lines().filter(|line| {
            in_code ^= line.starts_with("```");
            !in_code
        });
        let prose: Vec<&str> = prose.collect();
        let spans = prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2));
        let spans = spans.filter(|span| span.starts_with("bcc-script ") || span.starts_with("cargo run"));
        for line in blocks.chain(spans) {
            for command in line.split(" | ").filter(|command| !command.trim().is_empty()) {
                let Some(arguments) = arguments(command) else { continue };
                // `--version` and `--help` also end the parsing, but are not errors.
                if let Err(error) = Arguments::try_parse_from(&arguments)
                    && error.use_stderr()
                {
                    panic!("{}: {line}\n{error}", page.path);
                }
                count += 1;
            }
        }
    }
    assert!(count >= 15, "only {count} commands found");
}

#[test]
fn the_first_commands_of_the_readme_are_the_main_job_and_the_tests() {
    let readme = Page::of("README.md");
    let commands: Vec<&str> = readme.blocks_in(&["sh"]).take(2).map(|block| block.text.trim()).collect();
    assert_eq!(commands, ["cargo run --release -- run scripts/welcome.yaml", "cargo test"]);
}

/// A directory with the files that the pages mention.
fn example_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let readme = Page::of("README.md");
    let hello = &readme.blocks_in(&["yaml"]).next().unwrap().text;
    let configuration = Page::of("docs/configuration.md");
    let replies = &configuration.blocks_in(&["yaml"]).next().unwrap().text;
    fs::write(directory.path().join("hello.yaml"), hello).unwrap();
    fs::write(directory.path().join("typo.yaml"), hello.replace("{ content:", "{ contnet:")).unwrap();
    fs::write(directory.path().join("replies.yaml"), replies).unwrap();
    let migrate = Page::of("docs/migrate.md");
    fs::write(directory.path().join("old.yaml"), &migrate.blocks_in(&["text"]).next().unwrap().text).unwrap();
    directory
}

/// Runs a line of shell in `directory`, with nothing configured.
fn shell(directory: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_bcc-script")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(program.to_path_buf()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env_clear()
        .env("PATH", path)
        .env("HOME", directory)
        .output()
        .unwrap()
}

#[test]
fn the_output_that_the_pages_show_is_printed() {
    let mut count = 0;
    for page in all().into_iter().filter(|page| page.path != TEN_MINUTES) {
        for block in page.blocks_in(&["console"]) {
            let directory = example_directory();
            for shown in block.text.split("$ ").filter(|shown| !shown.is_empty()) {
                let (command, expected) = shown.split_once('\n').unwrap();
                let output = shell(directory.path(), command);
                // A failure prints to standard error only.
                let printed = if output.stdout.is_empty() { output.stderr } else { output.stdout };
                assert_eq!(String::from_utf8(printed).unwrap(), expected, "{}: {command}", page.path);
                count += 1;
            }
        }
    }
    assert!(count >= 5, "only {count} commands are shown with what they print");
}

/// Whether `real` has every field of `shown`, with the same value.
fn is_part(shown: &Value, real: &Value) -> bool {
    shown.as_object().unwrap().iter().all(|(name, value)| real.get(name) == Some(value))
}

#[test]
fn the_worked_example_of_json_is_what_is_written() {
    let page = Page::of("docs/sessions.md");
    let command = page.blocks_in(&["sh"]).map(|block| block.text.trim()).find(|text| text.contains("--json")).unwrap();
    let output = shell(example_directory().path(), command);
    assert!(output.status.success());
    let written: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut rest = written.iter();
    for line in page.blocks_in(&["jsonl"]).next().unwrap().text.lines() {
        let shown: Value = serde_json::from_str(line).unwrap();
        let same = |real: &&Value| shown.get("seq") == real.get("seq") && shown["type"] == real["type"];
        let real = rest.find(same).unwrap_or_else(|| panic!("not written: {line}"));
        assert!(is_part(&shown, real), "shown:\n{line}\nwritten:\n{real}");
    }
    // Every event type that is printed has a row in the table.
    let (_, table) = page.text.split_once("### The events").unwrap();
    for event in &written {
        let kind = event["type"].as_str().unwrap();
        let row = table
            .lines()
            .find(|row| row.starts_with('|') && row.split('|').nth(1).unwrap().contains(&format!("`{kind}`")));
        let row = row.unwrap_or_else(|| panic!("no row for {kind}"));
        let common = ["type", "seq", "at", "session_id", "location"];
        for field in event.as_object().unwrap().keys().filter(|field| !common.contains(&field.as_str())) {
            assert!(row.contains(&format!("`{field}`")), "{kind} has no `{field}` in its row");
        }
    }
}

#[tokio::test]
async fn the_transcript_of_the_chinese_readme_is_a_run_of_the_welcome() {
    let readme = Page::of("README.zh.md");
    let shown = &readme.blocks_in(&["text"]).find(|block| block.text.starts_with("── 欢迎")).unwrap().text;
    let answers: Vec<String> = shown.lines().filter_map(|line| line.strip_prefix("> ").map(str::to_owned)).collect();
    let conversation = offline_conversation::run(&root().join("scripts/welcome.yaml"), &answers, None).await;
    assert_eq!(conversation.pause, SessionPause::Completed);
    // As in the terminal: a line for a change of phase or topic, before the next message.
    let (mut lines, mut phase, mut topic, mut place) = (Vec::new(), String::new(), String::new(), String::new());
    for event in &conversation.events {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "phase_entered" => phase = text("name"),
            "topic_entered" => topic = text("name"),
            "message" if event["role"] == "user" => lines.push(format!("> {}", text("text"))),
            "message" => {
                let heading = format!("── {phase} › {topic} ──");
                if heading != place {
                    lines.push(heading.clone());
                    place = heading;
                }
                lines.push(text("text"));
            }
            _ => {}
        }
    }
    assert_eq!(lines, shown.lines().collect::<Vec<_>>());
}

#[test]
fn the_export_page_lists_every_field_of_an_export() {
    let directory = example_directory();
    let output = shell(
        directory.path(),
        "printf 'Ann\\n' | bcc-script run hello.yaml --session demo >/dev/null && bcc-script sessions export demo",
    );
    let export: Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = Page::of("docs/sessions.md");
    let (_, table) = page.text.split_once("## Export").unwrap();
    let row_of = |key: &str| {
        table.lines().find(|row| row.starts_with('|') && row.split('|').nth(1).unwrap().contains(&format!("`{key}`")))
    };
    for (key, value) in export.as_object().unwrap() {
        let row = row_of(key).unwrap_or_else(|| panic!("no row for `{key}`"));
        let fields = match key.as_str() {
            "session" => value.as_object(),
            "transcript" | "action_metrics_history" => value[0].as_object(),
            _ => None,
        };
        for field in fields.into_iter().flat_map(|fields| fields.keys()) {
            assert!(row.contains(&format!("`{field}`")), "`{key}` has no `{field}` in its row");
        }
    }
    assert_eq!(export["transcript"][1]["text"], json!("Ann"));
}
