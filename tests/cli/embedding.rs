//! Tests that the Python client of docs/embedding.md continues after its child process was killed at any time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::Home;

const ANSWERS: [&str; 4] = ["小林", "35", "芝麻开门", "从前"];

/// The child process of this process, according to the kernel.
fn child_of(parent: u32) -> Option<String> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next().map(str::to_owned)
}

/// The output of the client; before each answer whose number is in `kills`, its child is killed with SIGKILL.
fn run_client(kills: &[usize]) -> Vec<String> {
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
    let mut output = vec![lines.next().unwrap().unwrap()];
    for (number, answer) in ANSWERS.iter().enumerate() {
        if kills.contains(&number)
            && let Some(child) = child_of(pid)
        {
            assert!(Command::new("kill").args(["-9", &child]).status().unwrap().success());
        }
        writeln!(input, "{answer}").unwrap();
        // The client's own message and at least one line of the AI, or the end.
        let mut own_message = false;
        for line in lines.by_ref() {
            let line = line.unwrap();
            let from_ai = line.starts_with("ai: ");
            output.push(line);
            if own_message && from_ai {
                break;
            }
            own_message |= !from_ai;
        }
    }
    drop(input);
    output.extend(lines.map(Result::unwrap));
    assert!(client.wait().unwrap().success());
    output
}

#[test]
fn the_python_client_continues_when_its_child_is_killed() {
    let uninterrupted = run_client(&[]);
    assert_eq!(
        uninterrupted.iter().filter(|line| line.starts_with("user: ")).count(),
        ANSWERS.len(),
        "{uninterrupted:?}"
    );
    for kills in [&[0][..], &[1], &[3], &[0, 1, 2, 3]] {
        assert_eq!(run_client(kills), uninterrupted, "killed before {kills:?}");
    }
}
