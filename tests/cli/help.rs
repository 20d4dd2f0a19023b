//! Tests of `--help` and of errors in arguments, in both languages.

use std::fs;

use bcc_authoring::schemas;
use bcc_lang::message::language::Language;
use bcc_script::cli::cli::localized_command;
use clap::Command;
use regex::Regex;

use crate::process::{Finished, Home};

const LANGUAGES: [&str; 2] = ["en", "zh"];

/// Every command with its words, such as `["sessions", "list"]`; the first is the program itself.
fn commands() -> Vec<(Vec<String>, Command)> {
    fn add(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        found.push((words.to_vec(), command.clone()));
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            add(inner, &[words, &[inner.get_name().to_owned()]].concat(), found);
        }
    }
    let mut command = localized_command(Language::English);
    command.build();
    let mut found = Vec::new();
    add(&command, &[], &mut found);
    found
}

fn run(home: &Home, language: &str, words: &[&str]) -> Finished {
    home.finish([&["--lang", language], words].concat(), "")
}

fn help(home: &Home, language: &str, words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let finished = run(home, language, &words);
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{words:?}");
    finished.out
}

fn is_chinese(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
}

#[test]
fn the_help_of_an_option_names_its_environment_variable() {
    let home = Home::new();
    let variables =
        [("store", "BCC_STORE"), ("project", "BCC_PROJECT"), ("trust", "BCC_TRUST"), ("model", "BCC_MODEL")];
    let mut checked = 0;
    for (words, command) in commands() {
        // These options have no variable: the schema of no project, and tests, which use no model unless they are told to.
        let without =
            |option: &str| matches!((words.join(" ").as_str(), option), ("schema", "project") | ("test", "model"));
        let named: Vec<_> = variables
            .iter()
            .filter(|(option, _)| command.get_arguments().any(|argument| argument.get_long() == Some(*option)))
            .filter(|(option, _)| !without(option))
            .collect();
        for language in LANGUAGES.into_iter().filter(|_| !named.is_empty()) {
            let text = help(&home, language, &words);
            for (option, variable) in &named {
                // The text up to the next option.
                let own = text.split(&format!("--{option}")).nth(1).unwrap_or_default();
                let own = own.split("\n      --").next().unwrap_or_default();
                assert!(own.contains(variable), "{language} {words:?} --{option}: {own}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 50, "only {checked} options");
}

#[test]
fn the_help_lists_the_exit_codes() {
    let home = Home::new();
    let table: [(&[&str], &[u8]); 6] = [
        (&[], &[0, 1, 2, 3, 4, 130]),
        (&["run"], &[0, 1, 2, 3, 4, 130]),
        (&["sessions", "resume"], &[0, 1, 2, 3, 4, 130]),
        (&["validate"], &[0, 1, 2, 130]),
        (&["test"], &[0, 1, 2]),
        (&["templates", "diff"], &[0, 1, 2]),
    ];
    for (words, codes) in table {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        for (language, heading) in [("en", "\nExit codes:\n"), ("zh", "\n退出码：\n")] {
            let text = help(&home, language, &words);
            let (_, listed) = text.split_once(heading).unwrap_or_else(|| panic!("{language} {words:?}: {text}"));
            let listed: Vec<u8> =
                listed.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
            assert_eq!(listed, codes, "{language} {words:?}");
        }
    }
}

#[test]
fn the_help_has_the_punctuation_of_its_language() {
    let home = Home::new();
    let ascii_mark = Regex::new(r"\p{Han}[,;:()\[\]]|[,;:()\[\]]\p{Han}").unwrap();
    let list = Regex::new(r"(默认|可选值)：[^（）]*\w, \w").unwrap();
    for (words, _) in commands() {
        let english = help(&home, "en", &words);
        assert!(!english.contains(is_chinese), "{words:?}: {english}");
        let chinese = help(&home, "zh", &words);
        let lines = chinese.lines().filter(|line| !line.starts_with("用法：bcc-script "));
        let wrong: Vec<&str> =
            lines.filter(|line| ascii_mark.is_match(line) || list.is_match(line) || line.ends_with(':')).collect();
        assert!(wrong.is_empty(), "{words:?}: {wrong:#?}");
        for english in ["[OPTIONS]", "<COMMAND>", "[default", "Possible values", "possible values", "：:"] {
            assert!(!chinese.contains(english), "{words:?}: {english}\n{chinese}");
        }
    }
}

#[test]
fn the_chinese_help_lists_values_with_their_descriptions_and_defaults_in_brackets() {
    let home = Home::new();
    let text = help(&home, "zh", &["test".to_owned()]);
    insta::assert_snapshot!("help_of_test_in_chinese", text);
    let short = run(&home, "zh", &["test", "-h"]).out;
    assert!(short.contains("结果的输出格式（默认：human；可选值：human、json）"), "{short}");
    let shells = help(&home, "zh", &["completions".to_owned()]);
    assert!(shells.contains("（可选值：bash、elvish、fish、powershell、zsh）"), "{shells}");
}

#[test]
fn the_help_of_schema_names_every_document_and_the_list_is_translated() {
    let home = Home::new();
    let text = help(&home, "en", &["schema".to_owned()]);
    let actions = bcc_runtime::actions::KINDS.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    for (name, _) in schemas::list().into_iter().filter(|(name, _)| !actions.contains(name)) {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(text.contains("workflow"), "{text}");
    let list = run(&home, "zh", &["schema", "--list"]).out;
    assert_eq!(list.lines().count(), schemas::list().len());
    assert!(list.lines().all(|line| line.ends_with('。')), "{list}");
}

#[test]
fn an_error_names_only_the_arguments_that_are_missing() {
    let home = Home::new();
    for (words, english, chinese) in [
        (&["templates", "render", "--script", "a.yaml"][..], "\n  --action <ID>\n", "缺少参数：--action <ID>\n"),
        (&["templates", "render", "--session", "s"], "\n  --action <ID>\n", "缺少参数：--action <ID>\n"),
        (&["templates", "render"], "\n  <NAME>\n", "缺少参数：<NAME>\n"),
        (
            &["templates", "render", "--clock", "2026-01-01T00:00:00Z"],
            "\n  --action <ID>\n  --script <FILE>\n\n",
            "缺少参数：--action <ID>、--script <FILE>\n",
        ),
    ] {
        for (language, expected) in [("en", english), ("zh", chinese)] {
            let finished = run(&home, language, words);
            assert_eq!(finished.code, Some(2), "{words:?}");
            assert!(finished.err.contains(expected), "{language} {words:?}: {}", finished.err);
        }
    }
    let format = run(&home, "zh", &["validate", "--format", "xml"]).err;
    assert!(format.contains("有效值：human、json、sarif、github\n"), "{format}");
}

#[test]
fn a_name_is_explained_with_an_example_in_the_language_of_the_person() {
    let home = Home::new();
    home.file("bcc-script.toml", "");
    for (language, example, other) in [("en", "`first_talk`", "初次访谈"), ("zh", "`初次访谈`", "as in")] {
        let finished = run(&home, language, &["new", "script", "a b"]);
        assert_eq!(finished.code, Some(2));
        assert!(finished.err.contains(example) && !finished.err.contains(other), "{}", finished.err);
    }
}

#[test]
fn migrate_says_which_files_are_not_scripts() {
    let home = Home::new();
    home.file("README.md", "# Notes\n\nSome text.\n");
    home.file("other.yaml", "services:\n  web: {}\n");
    home.file("talk.yaml", "session:\n  session_id: a\n  phases: []\n");
    let told =
        |name: &str| format!("{name} is not a script, a skill, a test or a template: nothing was migrated in it\n");
    for options in [&["migrate"][..], &["migrate", "--check"], &["migrate", "--write"]] {
        let alone = run(&home, "en", &[options, &["README.md"]].concat());
        let expected = format!("{}1 file checked: nothing to migrate\n", told("README.md"));
        assert!(alone.err.ends_with(&expected), "{}", alone.err);
        assert_eq!(alone.code, Some(1));
        let both = run(&home, "en", &[options, &["other.yaml", "talk.yaml"]].concat());
        assert!(both.err.contains(&told("other.yaml")), "{}", both.err);
        assert!(both.err.contains("2 files checked: ") && !both.err.contains("talk.yaml is not"), "{}", both.err);
        assert_eq!(both.code, Some(1));
    }
    let chinese = run(&home, "zh", &["migrate", "README.md"]).err;
    assert!(chinese.contains("\nREADME.md 不是脚本、技能、测试或模板："), "{chinese}");
}

#[test]
fn documents_are_written_into_missing_directories() {
    let home = Home::new();
    home.put("talk.yaml", "session:\n  session_id: a\n  phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_say, action_id: hi, config: { content: 您好 } }] }] }]\n");
    home.put("tests/a.yaml", "test: a\nscript: ../talk.yaml\ndialogue: []\n");
    let commands: [(&[&str], &str); 3] = [
        (&["test", "--junit", "out/a/junit.xml"], "out/a/junit.xml"),
        (&["test", "--coverage=json", "--coverage-out", "out/b/coverage.json"], "out/b/coverage.json"),
        (&["graph", "talk.yaml", "-o", "out/c/talk.mmd"], "out/c/talk.mmd"),
    ];
    for (words, path) in commands {
        let finished = run(&home, "en", words);
        assert!(fs::metadata(home.path().join(path)).is_ok(), "{words:?}: {}{}", finished.out, finished.err);
        let command = vec![words.first().copied().unwrap_or_default().to_owned()];
        assert!(help(&home, "en", &command).contains("missing directories are created"), "{words:?}");
    }
}
