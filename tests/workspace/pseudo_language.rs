//! Runs the program in the pseudo-language, in which every message of the catalog is in brackets (docs/languages.md), and looks at
//! what stands outside of them: nothing there may be a sentence or the punctuation of one. Texts of the fixtures are Chinese or a
//! single word, so that any two adjacent Latin words come from the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::languages::BROKEN;
use crate::process::{Finished, Home};
use regex::Regex;

const TALK: &str = "session:
  session_id: intake
  declare:
    - { var: mood, enum: [warning, completed], value: completed }
  phases:
    - phase_id: opening
      topics:
        - topic_id: hello
          actions:
            - { action_type: ai_ask, action_id: ask_name, config: { content: 怎么称呼？, output: [{ get: nickname, define: 称呼 }] } }
            - { action_type: ai_say, action_id: greet, condition: mood == 'completed', config: { content: '{{ nickname }}，你好。' } }
            - { action_type: ai_ask, action_id: ask_age, config: { content: 几岁？ } }
";

const TEST: &str = "test: 问候
script: talk.yaml
dialogue:
  - ai: { contains: 年龄 }
  - user: 小林
  - expect: { variables: { mood: warning }, exit_reason: off_topic, location: ask_age, routes: [{ off_topic: end }] }
";

/// Invalid configurations, each for a project of its own.
const CONFIGURATIONS: [(&str, &str); 12] = [
    ("unclosed", "[models.default\n"),
    ("value", "[models.default]\nprovider = \n"),
    ("provider", "[models.default]\nprovider = \"opena\"\n"),
    ("field", "[models.default]\nprovider = \"offline\"\nmodle = \"m\"\n"),
    ("type", "[models.default]\nprovider = \"openai\"\nmodel = 5\n"),
    ("duration", "[models.default]\nprovider = \"openai\"\nmodel = \"m\"\ntimeout = \"1 parsec\"\n"),
    ("fallback", "[models.default]\nprovider = \"openai\"\nmodel = \"m\"\nfallback = [\"none\"]\n"),
    ("section", "[projct]\nscheme = \"english\"\n"),
    ("project", "[project]\nscheem = \"english\"\n"),
    ("allow", "[project]\nallow = [\"exce\"]\n"),
    ("rule", "[rules]\nunused-variabel = \"off\"\n"),
    ("twice", "[project]\nscheme = \"a\"\nscheme = \"b\"\n"),
];

fn root() -> &'static Path {
    Path::new(crate::ROOT)
}

/// A directory with projects, scripts and files of every sort.
fn fixtures() -> Home {
    let home = Home::new();
    for folder in ["err", "validate", "ok"] {
        for entry in fs::read_dir(root().join("tests/scripts").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                home.put(&format!("{folder}/{}", path.file_name().unwrap().display()), fs::read(&path).unwrap());
            }
        }
    }
    for (name, text) in [("talk.yaml", TALK), ("broken.yaml", BROKEN), ("talk.test.yaml", TEST)] {
        home.put(name, text);
    }
    for (name, text) in CONFIGURATIONS {
        home.put(&format!("config/{name}/bcc-script.toml"), text);
        home.put(&format!("config/{name}/talk.yaml"), TALK);
    }
    home.put("named/bcc-script.toml", "[models.default]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\napi_key_env = \"NONE\"\n[project]\nallow = [\"exec\"]\n");
    home.put("named/talk.yaml", TALK);
    home.put("old.yaml", TALK.replace("content:", "content_template:").replace("session_id", "sessionId"));
    home.put("not.db", "这不是数据库");
    home.put("README.md", "# 说明\n");
    home.put("data.json", "{\"mood\": ");
    home.put("list.json", "[1]");
    home.put("odd.json", "{\"mood\": \"other\", \"none\": 1}");
    home.put("latin.yaml", b"session: \xff\n");
    home.put(
        "templates/_system/config/default/ai_ask_v1.md",
        "---\nmodle: m\n---\n{{ content }} {{ contnet }} {% if %}\n",
    );
    home.put("templates/_system/config/custom/soft/ai_ask_v1.md", "{% include 'none.md' %}{{ nickname }}\n");
    home.put("templates/_system/config/custom/soft/ai_say_v1.md", "{{ content | nofilter }}\n");
    home.put("templates/_system/config/custom/soft/ai_think_v1.md", "{{ content }}{{ 1 // 0 }}\n");
    home.put("templates/_system/config/custom/a b/ai_ask_v1.md", "{{ content }}\n");
    home.put("templates/talk.yaml", TALK);
    home.put("replies.jsonl", "{\"purpose\": \"action\", \"action_id\": \"none\", \"text\": \"x\"}\nx\n");
    fs::create_dir_all(home.path().join("empty")).unwrap();
    home
}

/// Every command with what a person can do right and wrong; `␤` in the last text is a line of the input.
const COMMANDS: &str = include_str!("pseudo_language.txt");

fn run(home: &Home, line: &str) -> Finished {
    let (arguments, input) = line.split_once(" < ").unwrap_or((line, ""));
    let (directory, arguments) = match arguments.strip_prefix('(') {
        Some(rest) => rest.split_once(") ").unwrap_or((rest, "")),
        None => ("", arguments),
    };
    let mut command = home.command(arguments.split_whitespace());
    command.current_dir(home.path().join(directory)).env("BCC_LANG", "pseudo");
    let mut running = crate::process::Running::start(command);
    running.feed(input.replace('␤', "\n").into_bytes());
    running.finish()
}

static BRACKETS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)⟦[^⟧]*⟧").unwrap());
/// A value in backticks that belong to the message.
static QUOTED_VALUE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`⟧[^⟦⟧]*⟦`").unwrap());
/// Commands to type, code, paths and addresses, lines of files and of differences between files.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"`[^`\n]*`|bcc-script( [\w./=<>-]+)+|[a-z]+://\S+|\w+( --[\w-]+ \w+)+|[\w.@-]*(/[\w.@-]+)+/?|<[A-Z_ |]+>",
    )
    .unwrap()
});
static LINE_OF_FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(\d+ |\d* *)[|+~-]|^\s*\d+ [+-]|^[-+ @\\]").unwrap());
static SENTENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z]{2,} [A-Za-z]{2,}|[A-Za-z`…](, |: |; )[A-Za-z`…]").unwrap());

/// The lines of an output in which something was said outside the catalog.
fn outside(text: &str) -> Vec<String> {
    let without_code = QUOTED_VALUE.replace_all(text, "``");
    let without_messages = BRACKETS.replace_all(&without_code, "§");
    let lines = without_messages.lines().filter(|line| !LINE_OF_FILE.is_match(line));
    lines.filter(|line| SENTENCE.is_match(&CODE.replace_all(line, "…"))).map(str::to_owned).collect()
}

#[test]
fn nothing_is_said_outside_the_catalog() {
    let home = fixtures();
    let mut found = BTreeSet::new();
    let (mut messages, mut commands) = (0, 0);
    for line in COMMANDS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let finished = run(&home, line);
        commands += 1;
        let output = format!("{}\n{}", finished.out, finished.err);
        messages += BRACKETS.find_iter(&output).count();
        found.extend(outside(&output).into_iter().map(|said| format!("$ {line}\n    {said}")));
    }
    assert!(commands > 100 && messages > 1_000, "{commands} commands, {messages} messages");
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Names, ids and values that are words of the catalog as well stay outside the brackets.
#[test]
fn values_of_others_are_never_translated() {
    let home = fixtures();
    run(&home, "run talk.yaml --session warning --model offline < completed␤");
    for line in [
        "sessions show warning",
        "sessions show warning --calls",
        "sessions list",
        "sessions export warning --format md",
    ] {
        let finished = run(&home, line);
        assert!(finished.code == Some(0) && finished.out.len() > 20, "{line}\n{}", finished.err);
        for value in ["⟦warning⟧", "⟦waiting_input⟧", "⟦offline⟧"] {
            assert!(!finished.out.contains(value), "{line}: {value}\n{}", finished.out);
        }
    }
}

#[test]
fn what_stands_outside_is_recognized() {
    let said = ["⟦a message⟧: no such file", "⟦a⟧`x`, `y`", "there are none", "⟦use ⟧one, two"];
    for text in said {
        assert_eq!(outside(text).len(), 1, "{text}");
    }
    let silent =
        ["⟦a message⟧talk.yaml⟦: ⟧`a, b`", "12 | two words", "⟦next: ⟧bcc-script sessions resume t", "怎么称呼？"];
    for text in silent {
        assert!(outside(text).is_empty(), "{text}");
    }
}
