//! Tests that processes which leave the group of their program end with it, without orphans being adopted.

use super::tests::{LONG, run_in, shell, text, wait_until_gone};
use super::*;

/// A process in a session of its own, without a parent, that ignores SIGTERM. Prints its id.
const LEAVES: &str = "(setsid sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 0.05; done' > /dev/null 2>&1 &); \
    while [ ! -s child ]; do sleep 0.01; done; cat child";

#[tokio::test]
async fn a_process_that_left_the_group_is_ended_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let ran = run_in(directory.path(), &shell(LEAVES), b"", LONG).await.unwrap();
    assert_eq!(ran.ended, ProcessEnd::Code(0));
    assert!(ran.left_processes >= 1);
    wait_until_gone(text(&ran.stdout).trim().parse().unwrap()).await;
}

#[tokio::test]
async fn dropping_the_future_kills_processes_that_left_the_group() {
    let directory = tempfile::tempdir().unwrap();
    let child = directory.path().join("child");
    let started = async {
        loop {
            match std::fs::read_to_string(&child).unwrap_or_default().trim().parse() {
                Ok(id) => break id,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let command = shell(&format!("{LEAVES}; sleep 1000"));
    let id = tokio::select! {
        _ = run_in(directory.path(), &command, b"", LONG) => panic!("it waits for ever"),
        id = started => id,
    };
    wait_until_gone(id).await;
}

#[tokio::test]
async fn commands_that_run_at_the_same_time_end_only_their_own_processes() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (quick, slow) = (shell(LEAVES), shell(&format!("{LEAVES}; while [ ! -e go ]; do sleep 0.01; done")));
    let slow = run_in(other.path(), &slow, b"", LONG);
    tokio::pin!(slow);
    let quick = async {
        let ran = run_in(one.path(), &quick, b"", LONG).await.unwrap();
        let file = other.path().join("child");
        while std::fs::read_to_string(&file).unwrap_or_default().is_empty() {
            tokio::task::yield_now().await;
        }
        let id = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        assert!(std::fs::exists(format!("/proc/{id}")).unwrap(), "the process of the other command runs");
        std::fs::write(other.path().join("go"), "").unwrap();
        ran
    };
    let (ran, slow) = tokio::join!(quick, slow);
    for output in [&ran.stdout, &slow.unwrap().stdout] {
        wait_until_gone(text(output).trim().parse().unwrap()).await;
    }
}

#[tokio::test]
async fn a_pipeline_that_still_writes_after_the_program_is_not_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let ran = run_in(directory.path(), &shell("(sleep 0.1; echo late) & echo early"), b"", LONG).await.unwrap();
    assert_eq!((text(&ran.stdout), ran.left_processes), ("early\nlate\n", 0));
}
