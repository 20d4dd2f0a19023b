//! Tests of `docs/first-ten-minutes.md`: its commands run one after the other in one temporary directory, its edits are applied, and the
//! output that it shows is the output of the program.
//!
//! * A ```` ```console ```` block holds commands after `$ `, each with its output (stdout and stderr). `…` stands for text that
//!   differs each time, such as an id or a path; everything else must be exactly the same.
//! * A ```` ```diff FILE ```` block edits that file: its lines without `+` must occur at exactly one place, and are replaced by its
//!   lines without `-`.

use crate::pages;
use crate::process;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pages::{Block, Page};
use process::{Home, Running};

/// Stands for text that differs each time.
const ANYTHING: char = '…';

/// The commands of a block with their output.
fn commands(block: &Block) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => printed.push_str(&format!("{line}\n")),
            (None, None) => panic!("line {}: a block begins with a command", block.line),
        }
    }
    commands
}

/// Whether `printed` matches `shown`, line by line.
fn output_matches(shown: &str, printed: &str) -> bool {
    let (mut shown, mut printed): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), printed.lines().collect());
    // A last line with only `…` stands for all remaining lines: the output of doctor about the machine differs between machines.
    if shown.last() == Some(&ANYTHING.to_string().as_str()) && printed.len() >= shown.len() {
        shown.pop();
        printed.truncate(shown.len());
    }
    shown.len() == printed.len() && shown.iter().zip(&printed).all(|(shown, printed)| line_matches(shown, printed))
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let parts: Vec<&str> = shown.split(ANYTHING).collect();
    let (Some((first, rest)), Some(mut remaining)) = (parts.split_first(), Some(printed)) else { return false };
    let Some(after) = remaining.strip_prefix(first) else { return false };
    remaining = after;
    let Some((last, middle)) = rest.split_last() else { return remaining.is_empty() };
    for part in middle {
        match remaining.split_once(part) {
            Some((_, after)) => remaining = after,
            None => return false,
        }
    }
    remaining.ends_with(last)
}

/// `text` with the edit of a block applied.
fn changed(text: &str, block: &Block) -> String {
    let lines_with_sign = |own_sign: char| -> Vec<&str> {
        let lines = block.text.lines().filter_map(|line| match line.chars().next() {
            Some(sign) if sign == ' ' || sign == own_sign => Some(&line[1..]),
            None => Some(""),
            Some('+' | '-') => None,
            Some(other) => panic!("line {}: a line of a change begins with `{other}`", block.line),
        });
        lines.collect()
    };
    let (before, after) = (lines_with_sign('-'), lines_with_sign('+'));
    assert_ne!(before, after, "line {}: the change changes nothing", block.line);
    let lines: Vec<&str> = text.lines().collect();
    let places = lines.windows(before.len()).enumerate().filter(|(_, window)| *window == before);
    let places: Vec<usize> = places.map(|(start, _)| start).collect();
    let [start] = places.as_slice() else {
        panic!("line {}: these lines stand at {} places:\n{}", block.line, places.len(), before.join("\n"))
    };
    let changed_lines = [&lines[..*start], &after, &lines[start + before.len()..]].concat();
    changed_lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Runs a shell command; returns its stdout and stderr in order.
fn shell(home: &Home, directory: &Path, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_bcc-script")).parent().unwrap().display().to_string();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("PATH='{program}':$PATH; exec 2>&1; {line}")]);
    // The most common locale among readers of the page.
    command.env_clear().envs(home.variables()).env("LANG", "C.UTF-8").current_dir(directory);
    let mut running = Running::start(command);
    running.feed(vec![]);
    running.finish().out
}

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let page = Page::of("docs/first-ten-minutes.md");
    let home = Home::new();
    let mut current_directory: PathBuf = home.path().join("work");
    fs::create_dir(&current_directory).unwrap();
    let (mut run, mut edits) = (0, 0);
    for block in &page.blocks {
        match block.language.split_once(' ').unwrap_or((block.language.as_str(), "")) {
            ("console", "") => {
                for (command, shown) in commands(block) {
                    if let Some(directory) = command.strip_prefix("cd ") {
                        current_directory.push(directory);
                        assert!(current_directory.is_dir(), "{command}");
                    } else {
                        let printed = shell(&home, &current_directory, &command);
                        assert!(
                            output_matches(&shown, &printed),
                            "line {}: {command}\nshown:\n{shown}\nprinted:\n{printed}",
                            block.line
                        );
                        run += 1;
                    }
                }
            }
            ("diff", file) => {
                let path = current_directory.join(file);
                let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
                fs::write(&path, changed(&text, block)).unwrap();
                edits += 1;
            }
            (other, _) => panic!("line {}: nobody runs blocks of {other:?}", block.line),
        }
    }
    assert!(run >= 12 && edits >= 4, "{run} commands, {edits} changes");
    // The page contains every command that a new user should try.
    let expected_commands = [
        "init",
        "run",
        "validate",
        "validate --fix",
        "templates diff",
        "templates render",
        "new test",
        "test",
        "graph",
        "doctor",
    ];
    let blocks: String = page.blocks_in(&["console"]).map(|block| block.text.as_str()).collect();
    for command in expected_commands {
        assert!(blocks.contains(&format!("bcc-script {command}")), "{command}");
    }
    // At the end, the project has no findings and its tests pass.
    assert!(
        shell(&home, &current_directory, "bcc-script validate --deny warnings && bcc-script test && echo fine")
            .ends_with("fine\n")
    );
}

#[test]
fn only_what_differs_each_time_may_differ_from_the_page() {
    let table = [
        ("a\nb", "a\nb", true),
        ("a\nb", "a\nb\nc", false),
        ("a", "b", false),
        ("a … c …", "a b c 2026", true),
        ("a … c", "a b d", false),
        ("…", "whatever", true),
        ("… ms", "12 ms", true),
        ("… ms", "12 s", false),
        ("a…b…c", "abc", true),
    ];
    for (shown, printed, same) in table {
        assert_eq!(output_matches(shown, printed), same, "{shown:?} {printed:?}");
    }
}

#[test]
fn an_edit_of_the_page_is_applied_at_exactly_one_place() {
    let block = |text: &str| Block { language: "diff x".into(), text: text.into(), line: 1 };
    assert_eq!(changed("a\nb\nc\n", &block(" a\n-b\n+d\n+e\n")), "a\nd\ne\nc\n");
    assert_eq!(changed("a\n\nb\n", &block(" a\n\n+x\n b\n")), "a\n\nx\nb\n");
    for (text, change) in [("a\na\n", "-a\n+b\n"), ("xa\n", "-a\n+b\n"), ("a\n", " a\n")] {
        let change = block(change);
        assert!(std::panic::catch_unwind(|| changed(text, &change)).is_err(), "{text:?}");
    }
}
