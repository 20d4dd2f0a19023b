//! Tests that a program cannot affect the process that runs it beyond its documented result.

use super::*;
use crate::effects::output::{MAX_KEPT_HALF, NoOutputObserver};

pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn shell(text: &str) -> Vec<String> {
    ["/bin/sh", "-c", text].map(str::to_owned).to_vec()
}

pub(crate) async fn run_in(
    directory: &Path,
    command: &[String],
    input: &[u8],
    limit: Duration,
) -> Result<ProcessResult, StartError> {
    let path = std::env::var("PATH").unwrap_or_default();
    let variables = BTreeMap::from([("PATH".to_owned(), path), ("GIVEN".to_owned(), "given".to_owned())]);
    run(&ProcessRequest {
        command,
        directory,
        working_directory: directory,
        input,
        variables: &variables,
        timeout: limit,
        observer: &NoOutputObserver,
    })
    .await
}

async fn ran(text: &str, input: &[u8], limit: Duration) -> ProcessResult {
    let directory = tempfile::tempdir().unwrap();
    run_in(directory.path(), &shell(text), input, limit).await.unwrap()
}

pub(crate) fn text(printed: &ProcessOutput) -> &str {
    std::str::from_utf8(&printed.bytes).unwrap()
}

#[tokio::test]
async fn a_program_reads_its_input_and_both_outputs_are_stored() {
    let ran = ran("cat; echo beside >&2; exit 3", b"{\"a\": 1}", LONG).await;
    assert_eq!((ran.ended, text(&ran.stdout), text(&ran.stderr)), (ProcessEnd::Code(3), "{\"a\": 1}", "beside\n"));
}

#[tokio::test]
async fn arguments_are_not_interpreted_by_a_shell() {
    let directory = tempfile::tempdir().unwrap();
    let command = ["/bin/echo", "$(touch here); `touch here`", "> here"].map(str::to_owned);
    let ran = run_in(directory.path(), &command, b"", LONG).await.unwrap();
    assert_eq!(text(&ran.stdout), "$(touch here); `touch here` > here\n");
    assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn a_program_runs_in_its_directory_with_only_the_given_variables() {
    let directory = tempfile::tempdir().unwrap();
    let ran = run_in(directory.path(), &shell("pwd -P; echo \"${HOME:-none} ${PATH:+path} $GIVEN\""), b"", LONG)
        .await
        .unwrap();
    let directory = std::fs::canonicalize(directory.path()).unwrap();
    assert_eq!(text(&ran.stdout), format!("{}\nnone path given\n", directory.display()));
}

#[tokio::test]
async fn long_output_is_cut_and_counted() {
    let ran = ran("echo first; head -c 20000000 /dev/zero; echo last; head -c 9000000 /dev/zero >&2", b"", LONG).await;
    assert_eq!(
        (ran.stdout.bytes.len(), ran.stdout.tail.len(), ran.stdout.len()),
        (MAX_KEPT_HALF, MAX_KEPT_HALF, 20_000_011)
    );
    assert!(ran.stdout.bytes.starts_with(b"first\n") && ran.stdout.tail.ends_with(b"last\n"));
    assert_eq!(ran.stderr.dropped, 9_000_000 - 2 * MAX_KEPT_HALF as u64);
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_does_not_block() {
    assert_eq!(ran("exit 0", &vec![b'x'; 4_000_000], LONG).await.ended, ProcessEnd::Code(0));
    let ended = ran("sleep 1000", &vec![b'x'; 4_000_000], Duration::from_millis(50)).await.ended;
    assert_eq!(ended, ProcessEnd::TimedOut);
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_stopped_and_its_output_is_stored() {
    let ran = ran("echo begun; sleep 1000", b"", Duration::from_millis(300)).await;
    assert_eq!((ran.ended, text(&ran.stdout)), (ProcessEnd::TimedOut, "begun\n"));
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed() {
    let ran = ran("trap '' TERM; while :; do sleep 0.05; done", b"", Duration::from_millis(50)).await;
    assert_eq!(ran.ended, ProcessEnd::TimedOut);
}

#[tokio::test]
async fn a_child_that_keeps_the_pipes_open_does_not_block_and_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let ran = run_in(directory.path(), &shell("sleep 1000 & echo $!"), b"", LONG).await.unwrap();
    assert_eq!(ran.ended, ProcessEnd::Code(0));
    wait_until_gone(text(&ran.stdout).trim().parse().unwrap()).await;
}

#[tokio::test]
async fn dropping_the_future_kills_the_program_and_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let command = shell("sleep 1000 & echo $! > child; wait");
    let child = directory.path().join("child");
    let child_started = async {
        loop {
            let written = std::fs::read_to_string(&child).unwrap_or_default();
            if written.ends_with('\n') {
                break written.trim().parse().unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    let id = tokio::select! {
        _ = run_in(directory.path(), &command, b"", LONG) => panic!("it waits for ever"),
        id = child_started => id,
    };
    wait_until_gone(id).await;
}

/// Returns when the process has ended or is a zombie.
pub(crate) async fn wait_until_gone(id: i32) {
    let is_running = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_running() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_start_error_has_a_message_and_help() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("plain.txt"), "words").unwrap();
    let table = [
        (vec!["no-such-program-anywhere"], "was not found", "install it"),
        (vec!["./missing.sh", "a"], "`./missing.sh` was not found", "the project directory"),
        (vec!["./plain.txt"], "no permission to run", "chmod +x"),
        (vec![], "no program", "argument"),
    ];
    for (command, message, help) in table {
        let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
        let error = run_in(directory.path(), &command, b"", LONG).await.unwrap_err();
        assert!(error.message.to_string().contains(message) && error.help.to_string().contains(help), "{error:?}");
    }
}
