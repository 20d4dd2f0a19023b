//! Tests of a standard output that cannot be written: a full disk, a reader that has left, and one that does not read.

use super::*;

use process::{POLL_INTERVAL, TIMEOUT, wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Instant;

fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader has left.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    wait_until_unread(&writer);
    writer.into()
}

/// Waits until nobody can read a pipe: a process that another test starts at this moment has the reader, too, until it runs its program.
fn wait_until_unread(writer: &PipeWriter) {
    let mut states = [PollFd::new(writer, PollFlags::empty())];
    let limit = Timespec { tv_sec: i64::try_from(TIMEOUT.as_secs()).unwrap(), tv_nsec: 0 };
    poll(&mut states, Some(&limit)).unwrap();
    assert!(states[0].revents().contains(PollFlags::ERR), "someone still reads");
}

/// The exit code and standard error of a command with this input.
fn ended(mut command: Command, output: Stdio, input: &str) -> (Option<i32>, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    (wait(&mut child).code(), err)
}

fn start(home: &Home, arguments: &[&str]) -> Command {
    let script = home.script("two_phases.yaml").display().to_string();
    let fixed = ["run", &script, "--session", "t"];
    home.command(fixed.iter().chain(arguments))
}

#[test]
fn a_session_that_cannot_be_shown_takes_no_answer_and_waits() {
    for (output, error) in [(full_disk as fn() -> Stdio, "No space left"), (closed_pipe, "Broken pipe")] {
        for arguments in [&[][..], &["--json"]] {
            let home = Home::new();
            let (code, err) = ended(start(&home, arguments), output(), ANSWERS);
            assert_eq!(code, Some(3), "{arguments:?}: {err}");
            assert!(err.contains("error: cannot write to standard output") && err.contains(error), "{err}");
            assert!(err.contains("Resume with: bcc-script sessions resume t\n"), "{err}");
            assert_eq!(user_messages(&home), Vec::<String>::new());
            let (code, err) = ended(home.command(["sessions", "resume", "t"]), output(), ANSWERS);
            assert_eq!(code, Some(3), "{arguments:?}: {err}");
            assert!(user_messages(&home).len() <= 1);
            assert_eq!(home.finish(["sessions", "resume", "t"], ANSWERS).code, Some(0));
        }
    }
}

#[test]
fn an_answer_is_not_taken_after_the_reader_has_left() {
    for (arguments, question) in [(&[][..], "怎么称呼你？"), (&["--json"], "\"waiting\"")] {
        let home = Home::new();
        let mut command = start(&home, arguments);
        let (reader, writer) = std::io::pipe().unwrap();
        let stdout = Stdio::from(writer.try_clone().unwrap());
        let mut child = command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(reader);
        let mut line = String::new();
        while !line.contains(question) {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "no question");
        }
        drop(output);
        wait_until_unread(&writer);
        child.stdin.as_mut().unwrap().write_all("小林\n".as_bytes()).unwrap();
        let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert_eq!(wait(&mut child).code(), Some(3), "{err}");
        assert!(err.contains("cannot write to standard output"), "{err}");
        assert_eq!(user_messages(&home), Vec::<String>::new());
    }
}

#[test]
fn other_commands_report_a_full_disk_and_not_a_closed_pipe() {
    let home = Home::new();
    talk(&home, &[], "小林\n");
    let broken = home.file("broken.yaml", "script: broken\nphases: []\n").display().to_string();
    let commands: [(&[&str], i32); 8] = [
        (&["validate", &broken], 1),
        (&["validate", &broken, "--format", "json"], 1),
        (&["sessions", "list"], 0),
        (&["sessions", "show", "t"], 0),
        (&["sessions", "export", "t"], 0),
        (&["explain", "unknown-name"], 0),
        (&["--help"], 0),
        (&["schema", "script"], 0),
    ];
    for (arguments, usual) in commands {
        let (code, err) = ended(home.command(arguments), full_disk(), "");
        assert_eq!(code, Some(1), "{arguments:?}: {err}");
        assert!(err.contains("No space left"), "{arguments:?}: {err}");
        let (code, err) = ended(home.command(arguments), closed_pipe(), "");
        assert_eq!(code, Some(usual), "{arguments:?}: {err}");
        assert!(!err.contains("Broken pipe"), "{arguments:?}: {err}");
    }
}

/// A session that is blocked because nobody reads its output, after its first message is committed.
fn blocked(home: &Home) -> (Child, ChildStderr, std::io::PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // Fills the pipe exactly.
    let capacity = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'.'; capacity]).unwrap();
    let mut command = start(home, &[]);
    let mut child = command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let deadline = Instant::now() + TIMEOUT;
    while !home.store().exists() || !sessions(home, &["show", "t"]).out.contains("你好。") {
        assert!(Instant::now() < deadline, "the session does not begin");
        std::thread::sleep(POLL_INTERVAL);
    }
    let err = child.stderr.take().unwrap();
    (child, err, reader)
}

#[test]
fn a_session_that_is_blocked_by_a_full_pipe_ends_after_a_signal_and_at_once_after_the_second() {
    for signals in [&[Signal::TERM][..], &[Signal::INT, Signal::TERM]] {
        let home = Home::new();
        let (mut child, err, _reader) = blocked(&home);
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        signals.iter().for_each(|signal| kill_process(process, *signal).unwrap());
        assert_eq!(wait(&mut child).code(), Some(130), "{signals:?}");
        let err = std::io::read_to_string(err).unwrap();
        // The second signal ends the program before anything is written.
        assert_eq!(err.contains("interrupted; nothing is lost"), signals.len() == 1, "{signals:?}: {err}");
        assert_eq!(home.finish(["sessions", "resume", "t"], ANSWERS).code, Some(0));
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    let home = Home::new();
    let (mut child, _err, mut reader) = blocked(&home);
    child.stdin.take().unwrap().write_all(ANSWERS.as_bytes()).unwrap();
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut out).unwrap();
    assert!(String::from_utf8_lossy(&out).ends_with("讲个故事吧。\n再见，小林。\n"));
    assert_eq!(wait(&mut child).code(), Some(0));
}
