//! The Python client of docs/embedding.md survives a child that is killed, wherever that happens.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::Home;

const ANSWERS: [&str; 4] = ["小林", "35", "芝麻开门", "从前"];

/// The process that this one has started, as the kernel knows it.
fn child_of(parent: u32) -> Option<String> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next().map(str::to_owned)
}

/// The talk of the client; before each answer whose number is in `kills`, its child is killed with SIGKILL.
fn talk(kills: &[usize]) -> Vec<String> {
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    let mut client = Command::new("python3")
        .arg(Path::new(crate::ROOT).join("examples/client.py"))
        .args([script.as_os_str(), "talk".as_ref()])
        .env_clear()
        .envs(home.variables())
        .env("BCC_SCRIPT", env!("CARGO_BIN_EXE_bcc-script"))
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (pid, mut input) = (client.id(), client.stdin.take().unwrap());
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut said = vec![lines.next().unwrap().unwrap()];
    for (number, answer) in ANSWERS.iter().enumerate() {
        if kills.contains(&number)
            && let Some(child) = child_of(pid)
        {
            assert!(Command::new("kill").args(["-9", &child]).status().unwrap().success());
        }
        writeln!(input, "{answer}").unwrap();
        // Its own words, and at least one line of the AI, or the end.
        let mut ours = false;
        for line in lines.by_ref() {
            let line = line.unwrap();
            let of_ai = line.starts_with("ai: ");
            said.push(line);
            if ours && of_ai {
                break;
            }
            ours |= !of_ai;
        }
    }
    drop(input);
    said.extend(lines.map(Result::unwrap));
    assert!(client.wait().unwrap().success());
    said
}

#[test]
fn the_python_client_goes_on_when_its_child_is_killed() {
    let undisturbed = talk(&[]);
    assert_eq!(undisturbed.iter().filter(|line| line.starts_with("user: ")).count(), ANSWERS.len(), "{undisturbed:?}");
    for kills in [&[0][..], &[1], &[3], &[0, 1, 2, 3]] {
        assert_eq!(talk(kills), undisturbed, "killed before {kills:?}");
    }
}
