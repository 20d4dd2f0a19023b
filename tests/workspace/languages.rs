//! Tests of the translations: the catalog has every message that people read, and no unused one.

use crate::process;
use crate::pseudo_terminal as terminal;
use crate::rust_literals;
use crate::rust_source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bcc_authoring::schemas;
use bcc_lang::message::chinese::{FILES, UNTRANSLATED, parse_file};
use bcc_lang::message::language::Language;
use bcc_lang::message::pattern::{PatternPiece, pieces};
use bcc_script::cli::cli::localized_command;
use clap::Command;
use process::{Finished, Home};
use rust_literals::{Literal, is_prose, literals};
use terminal::Terminal;

/// The folder of the catalog.
const CATALOGUE: &str = "crates/lang/src/message/chinese";

/// Parts of the catalog that are incomplete, so that missing messages are allowed. Must be empty for a release.
const INCOMPLETE: [&str; 0] = [];

/// A message as the catalog knows it: the format of a placeholder makes no difference.
type Key = Vec<PatternPiece>;

fn root() -> PathBuf {
    Path::new(crate::ROOT).to_path_buf()
}

/// The files of `src/` and `crates/` except those for tests, each with its literals.
fn sources() -> BTreeMap<String, Vec<Literal>> {
    let texts = rust_source::files(&root());
    let only_tests = rust_source::only_tests(&texts);
    texts
        .iter()
        .filter(|(name, _)| !only_tests.contains(*name) && !name.starts_with("crates/macros/"))
        .map(|(name, text)| (name.clone(), literals(text)))
        .collect()
}

/// The file of the catalog with the messages of a source file.
fn catalogue_of(name: &str) -> &str {
    name.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).unwrap_or("cli")
}

/// `files` and `literals` of untranslated.toml.
fn untranslated() -> (BTreeSet<String>, BTreeSet<Key>) {
    let table: toml::Table = toml::from_str(UNTRANSLATED).unwrap();
    let texts = |name: &str| table[name].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
    (texts("files").collect(), texts("literals").map(|text| pieces(&text)).collect())
}

fn known() -> BTreeSet<Key> {
    FILES.iter().flat_map(|(_, text)| parse_file(text)).map(|(english, _)| pieces(&english)).collect()
}

/// Adds the texts of `--help`, each with its command.
fn help_texts(command: &Command, command_path: &str, found: &mut Vec<(String, String)>) {
    let command_path = format!("{command_path} {}", command.get_name());
    let mut add = |text: Option<String>| found.extend(text.map(|text| (command_path.trim().to_owned(), text)));
    for text in [command.get_about(), command.get_long_about(), command.get_after_help(), command.get_after_long_help()]
    {
        add(text.map(ToString::to_string));
    }
    for argument in command.get_arguments() {
        add(argument.get_help().map(ToString::to_string));
        add(argument.get_long_help().map(ToString::to_string));
        add(argument.get_help_heading().map(str::to_owned));
        for value in argument.get_possible_values() {
            add(value.get_help().map(ToString::to_string));
        }
    }
    command.get_subcommands().for_each(|inner| help_texts(inner, &command_path, found));
}

/// The texts of the command line: of `--help`, and the descriptions of `schema --list`.
fn help() -> Vec<(String, String)> {
    let mut command = localized_command(Language::English);
    command.build();
    let mut found = Vec::new();
    help_texts(&command, "", &mut found);
    found.extend(schemas::list().into_iter().map(|(name, text)| (format!("schema --list, {name}"), text)));
    found
}

#[test]
fn every_message_has_a_chinese_translation() {
    let (files, exempt) = untranslated();
    let known = known();
    let mut missing = Vec::new();
    let mut reported = BTreeSet::new();
    for (name, literals) in sources() {
        let part = catalogue_of(&name);
        if files.contains(&name) || INCOMPLETE.contains(&part) {
            continue;
        }
        for literal in literals.iter().filter(|literal| is_prose(&literal.text)) {
            let key = pieces(&literal.text);
            let trimmed = known.contains(&pieces(literal.text.trim()));
            if !trimmed && !known.contains(&key) && !exempt.contains(&key) && reported.insert(key) {
                let (line, text) = (literal.line, serde_json::Value::from(literal.text.as_str()));
                missing.push(format!("{name}:{line}: in {CATALOGUE}/{part}.toml\n    {text} = \"…\""));
            }
        }
    }
    for (command, text) in help() {
        if is_prose(&text)
            && !INCOMPLETE.contains(&"help")
            && !known.contains(&pieces(&text))
            && reported.insert(pieces(&text))
        {
            let text = serde_json::Value::from(text);
            missing.push(format!("help of `{command}`: in {CATALOGUE}/help.toml\n    {text} = \"…\""));
        }
    }
    assert!(
        missing.is_empty(),
        "\n{} messages have no Chinese. Write it down, or put the literal into `literals` of untranslated.toml when no person \
         reads it (docs/languages.md):\n{}\n",
        missing.len(),
        missing.join("\n")
    );
}

/// The placeholders of a text with backticks directly around them. In English they may have no numbers, in Chinese they begin with 1.
fn placeholders_in_code(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut rest, mut before, mut unnumbered) = (text, '\0', 0);
    while let Some((start, tail)) = rest.split_once('{') {
        let before_brace = start.chars().next_back().unwrap_or(before);
        let Some((name, after)) = tail.split_once('}') else { break };
        if name.is_empty() {
            unnumbered += 1;
        }
        let name = if name.is_empty() { unnumbered.to_string() } else { name.to_owned() };
        let is_placeholder = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        if is_placeholder && before_brace == '`' && after.starts_with('`') {
            found.insert(name);
        }
        (rest, before) = (after, '}');
    }
    found
}

#[test]
fn what_is_code_in_a_message_is_code_in_its_translation() {
    let numbered_from_zero = |text: &str| text.contains("{0}");
    let wrong: Vec<String> = FILES
        .iter()
        .flat_map(|(_, text)| parse_file(text))
        .filter(|(english, _)| !numbered_from_zero(english))
        .filter(|(english, chinese)| placeholders_in_code(english) != placeholders_in_code(chinese))
        .map(|(english, chinese)| format!("{english}\n    {chinese}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_entry_of_the_catalog_is_used() {
    let mut used: BTreeSet<Key> = help().iter().map(|(_, text)| pieces(text)).collect();
    let sources = sources();
    for literal in sources.values().flatten() {
        used.insert(pieces(&literal.text));
        used.insert(pieces(literal.text.trim()));
    }
    let mut stale = Vec::new();
    for (part, text) in FILES.iter().filter(|(part, _)| *part != "libraries") {
        let table: toml::Table = toml::from_str(text).unwrap();
        let keys = table.keys().filter(|key| !used.contains(&pieces(key)));
        stale.extend(keys.map(|key| format!("{CATALOGUE}/{part}.toml: {key}")));
    }
    let (files, exempt) = untranslated();
    stale.extend(
        files.iter().filter(|file| !root().join(file).is_file()).map(|file| format!("untranslated.toml: {file}")),
    );
    stale.extend(exempt.difference(&used).map(|key| format!("untranslated.toml: {key:?}")));
    assert!(stale.is_empty(), "\nno literal of the source is this any more:\n{}\n", stale.join("\n"));
}

#[test]
fn literals_are_read_as_rust_reads_them() {
    let text = "#[error(\"an error {0}\")] #[doc = \"no\"] struct A; // \"no\"\nfn f() { debug!(\"no\"); g(\"a \\\n   \\u{4f60}\\n\", r#\"b \"c\"\"#, b\"no\", '\"'); }\n#[cfg(test)]\nmod tests { const A: &str = \"no\"; }";
    let found: Vec<(usize, String)> = literals(text).into_iter().map(|literal| (literal.line, literal.text)).collect();
    assert_eq!(found, [(1, "an error {0}".into()), (2, "a 你\n".into()), (3, "b \"c\"".into())]);
    for prose in ["there is no file", "write `{x}`", "deleted {id}", "{n} times"] {
        assert!(is_prose(prose), "{prose}");
    }
    for code in ["file", "a/b c_d", "{name} ({kind})", "`bcc-script run FILE`", "{ms} ms", "", "phase_id"] {
        assert!(!is_prose(code), "{code}");
    }
}

pub(crate) const BROKEN: &str = "session:
  session_id: intake
  phases:
    - phase_id: opening
      topics:
        - topic_id: hello
          actions:
            - { action_type: ai_say, action_id: greet, config: { contnet: 你好 } }
            - { action_type: ai_sya, action_id: greet, config: { content: no files, nothing to report } }
";

const TALK: &str = "session:
  session_id: intake
  phases:
    - phase_id: opening
      topics:
        - topic_id: hello
          actions:
            - { action_type: ai_ask, action_id: ask_name, config: { content: remove it, max_rounds: 3 } }
";

/// Runs the program in Chinese.
fn chinese(home: &Home, arguments: &[&str], input: &str) -> Finished {
    home.finish([&["--lang", "zh"], arguments].concat(), input)
}

/// The output, with the home directory and values that depend on time or chance replaced.
fn shown(home: &Home, finished: &Finished) -> String {
    let text = format!("{}--\n{}--\n{:?}", finished.out, finished.err, finished.code);
    let text = text.replace(&home.path().canonicalize().unwrap().display().to_string(), "HOME");
    let text = text.replace(&home.path().display().to_string(), "HOME");
    let timestamp = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
    let minutes = regex::Regex::new(r"\d+(\.\d+)? 分钟").unwrap();
    minutes.replace_all(&timestamp.replace_all(&text, "MOMENT"), "N 分钟").into_owned()
}

#[test]
fn the_help_is_in_chinese() {
    let home = Home::new();
    insta::assert_snapshot!("help", shown(&home, &chinese(&home, &["--help"], "")));
    insta::assert_snapshot!("help_of_validate", shown(&home, &chinese(&home, &["validate", "--help"], "")));
    let mut command = home.command(["sessions", "-h"]);
    command.env("LANG", "zh_CN.UTF-8");
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(out.contains("列出会话，最新的在前") && !out.contains("List"), "{out}");
}

#[test]
fn what_is_wrong_with_arguments_is_told_in_chinese() {
    let home = Home::new();
    let invalid: [&[&str]; 9] = [
        &["runn"],
        &["validate", "--al"],
        &["validate", "--format", "xml"],
        &["run"],
        &["run", "a.yaml", "--seed"],
        &["run", "a.yaml", "--seed", "x"],
        &["test", "--jobs", "0"],
        &["run", "a.yaml", "--record", "a", "--replay", "b"],
        &["run", "a.yaml", "--seed", "1", "--seed", "2"],
    ];
    let mut told = String::new();
    for arguments in invalid {
        let finished = chinese(&home, arguments, "");
        assert_eq!(finished.code, Some(2), "{arguments:?}");
        told += &format!("$ {}\n{}\n", arguments.join(" "), finished.err);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn findings_are_in_chinese_and_lines_of_files_are_not() {
    let home = Home::new();
    home.file("broken.yaml", BROKEN);
    let validated = chinese(&home, &["validate", "broken.yaml"], "");
    insta::assert_snapshot!("validate", shown(&home, &validated));
    assert!(validated.out.contains("content: no files, nothing to report"), "{}", validated.out);
    insta::assert_snapshot!("run_with_errors", shown(&home, &chinese(&home, &["run", "broken.yaml"], "")));
}

/// The pieces of English sentences that have a translation: at least three words, so that no name is one by chance.
fn english_pieces() -> Vec<String> {
    let texts = known().into_iter().flatten().filter_map(|piece| match piece {
        PatternPiece::Text(text) => Some(text.trim().to_owned()),
        PatternPiece::Place { .. } => None,
    });
    texts.filter(|text| text.len() >= 16 && text.split_whitespace().count() >= 3 && !text.contains('`')).collect()
}

/// Lines of an output that contain English sentences of the program, except lines of files and code in backticks.
fn left_in_english(pieces: &[String], text: &str) -> Vec<String> {
    let line_of_file = regex::Regex::new(r"^\s*\d* [|+~-]").unwrap();
    let code = regex::Regex::new(r"`[^`]*`").unwrap();
    let lines = text.lines().filter(|line| !line_of_file.is_match(line));
    let english = |line: &str| {
        let line = code.replace_all(line, "`…`");
        pieces.iter().any(|piece| line.contains(piece.as_str()))
    };
    lines.filter(|line| english(line)).map(str::to_owned).collect()
}

#[test]
fn nothing_that_has_a_translation_is_printed_in_english() {
    let home = Home::new();
    let pieces = english_pieces();
    assert!(pieces.len() > 1_000, "only {} pieces are looked for", pieces.len());
    for folder in ["err", "validate"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
        for entry in fs::read_dir(root().join("tests/scripts").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                fs::copy(&path, home.path().join(folder).join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    home.file("broken.yaml", BROKEN);
    let commands: [&[&str]; 21] = [
        &["test", "--jobs", "0"],
        &["run", "broken.yaml", "--seed", "x"],
        &["run", "broken.yaml", "--budget", "turns=x"],
        &["run", "broken.yaml", "--lang"],
        &["sessions", "prune", "--older-than", "x"],
        &["templates", "render", "ai_ask", "--round", "0"],
        &["validate", "--all", "err", "validate"],
        &["migrate", "err"],
        &["run", "broken.yaml"],
        &["test"],
        &["doctor"],
        &["models", "list"],
        &["models", "check"],
        &["sessions", "list"],
        &["sessions", "show", "none"],
        &["templates", "list"],
        &["templates", "diff", "--scheme", "english"],
        &["templates", "render", "ai_ask"],
        &["schema", "none"],
        &["explain", "none"],
        &["trust", "none"],
    ];
    let mut english = Vec::new();
    for arguments in commands {
        let finished = chinese(&home, arguments, "");
        let found = left_in_english(&pieces, &(finished.out + "\n" + &finished.err));
        english.extend(found.into_iter().map(|line| format!("{arguments:?}: {line}")));
    }
    english.sort();
    english.dedup();
    assert!(english.is_empty(), "{} lines:\n{}", english.len(), english.join("\n"));
}

/// A file name that would be translated if it were a message of the program.
const FILE: &str = "no files; remove it.yaml";

#[test]
fn names_of_files_are_never_translated() {
    let home = Home::new();
    for folder in ["a", "n/tests"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    home.file("a/broken.yaml", BROKEN);
    home.file(&format!("n/{FILE}"), BROKEN);
    home.file(&format!("n/tests/{FILE}"), "test: a talk\nscript: none.yaml\ndialogue: []\n");
    let path = format!("n/{FILE}");
    let (missing, below) = (format!("m/{FILE}"), format!("a/broken.yaml/{FILE}"));
    let commands: [&[&str]; 16] = [
        &["validate", &path],
        &["validate", &missing],
        &["validate", &below],
        &["migrate", &missing],
        &["run", &path],
        &["run", &missing],
        &["run", &path, "--project", &missing],
        &["run", &path, "--store", &path],
        &["sessions", "list", "--store", &missing],
        &["sessions", "list", "--store", &path],
        &["test", &missing],
        &["test", "n/tests"],
        &["trust", &missing],
        &["graph", &missing],
        &["run", &path, "--vars", &missing],
        &["init", &path],
    ];
    for arguments in commands {
        let finished = chinese(&home, arguments, "");
        let printed = format!("{}{}", finished.out, finished.err);
        assert!(printed.contains(FILE), "{arguments:?}\n{printed}");
        assert!(
            !printed.contains("没有文件；") && !printed.contains("删除它.yaml") && !printed.contains("；remove"),
            "{arguments:?}\n{printed}"
        );
        let chinese = |line: &str| line.chars().any(|c| matches!(c, '\u{4e00}'..='\u{9fff}'));
        assert!(printed.lines().any(chinese), "{arguments:?}\n{printed}");
    }
}

#[test]
fn a_session_is_described_in_chinese_and_its_messages_are_not() {
    let home = Home::new();
    let script = home.file("talk.yaml", TALK);
    let talk =
        chinese(&home, &["run", script.to_str().unwrap(), "--session", "s1", "--model", "offline"], "no files\n");
    insta::assert_snapshot!("run", shown(&home, &talk));
    insta::assert_snapshot!("sessions_list", shown(&home, &chinese(&home, &["sessions", "list"], "")));
    let missing = chinese(&home, &["sessions", "show", "nobody"], "");
    insta::assert_snapshot!("sessions_show_nobody", shown(&home, &missing));
    let document = chinese(&home, &["sessions", "export", "s1"], "");
    assert_eq!(
        document.out,
        home.finish(["sessions", "export", "s1"], "").out,
        "a document for programs is in English"
    );
}

#[test]
fn the_commands_of_the_terminal_answer_in_chinese() {
    let home = Home::new();
    let more = "            - { action_type: ai_ask, action_id: ask_age, config: { content: 几岁, max_rounds: 3 } }\n";
    home.file("talk.yaml", &format!("{TALK}{more}"));
    let arguments = ["--lang", "zh", "run", "talk.yaml", "--session", "s1", "--model", "offline"];
    let mut terminal = Terminal::start(&home, &arguments, false);
    terminal.answers("no files");
    terminal.answers("/help");
    let help = terminal.until("会接到下一行");
    assert!(help.contains("/vars     变量"), "{help}");
    terminal.answers("/why");
    let why = terminal.until("/why");
    let why = why + &terminal.until("已完成");
    assert!(why.contains("您在") && why.contains("\"no files\""), "{why}");
    terminal.answers("/nothing");
    terminal.until("没有命令 /nothing");
    terminal.answers("/quit");
    terminal.until("恢复请用：bcc-script sessions resume s1");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn a_test_report_is_in_chinese_and_documents_for_programs_are_not() {
    let home = Home::new();
    home.file("talk.yaml", TALK);
    home.file(
        "test.yaml",
        "test: a talk\nscript: talk.yaml\ndialogue:\n  - ai: { contains: \"remove it. Then warning\" }\n",
    );
    insta::assert_snapshot!("test", shown(&home, &chinese(&home, &["test", "test.yaml"], "")));
    let more = "    - phase_id: warning
      topics:
        - topic_id: bye
          actions:
            - { action_type: ai_say, action_id: greet, config: { content: 再见 } }
";
    home.file("two.yaml", &format!("{TALK}{more}"));
    let place = "test: a place\nscript: two.yaml\ndialogue:\n  - expect: { location: warning, status: completed }\n";
    home.file("place.yaml", place);
    insta::assert_snapshot!("test_of_a_place", shown(&home, &chinese(&home, &["test", "place.yaml"], "")));
    for format in ["json", "sarif", "github"] {
        home.file("broken.yaml", BROKEN);
        let arguments = ["validate", "broken.yaml", "--format", format];
        assert_eq!(chinese(&home, &arguments, "").out, home.finish(arguments, "").out, "{format}");
    }
}
