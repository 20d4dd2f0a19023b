//! A recording of a behavior loop that runs code can be replayed, although the code takes another time.

use std::path::Path;

use crate::process::{Finished, Home, finished};
use crate::test_kernel::{kernel_python, kernel_variables};

const SCRIPT: &str = "
session:
  session_id: loop
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: behavior_loop, action_id: work, config: { target: Count, max_behaviors: 3, reask: 0 } }
";

const REPLIES: &str = "
replies:
  work:
    - { actions: [{ action: add, content_type: code, content: print(6 * 7), metadata: { should_execute: true } }] }
    - { target_achieved: false, reason: the text is missing }
    - { actions: [{ action: add, content: It is 42. }] }
    - { target_achieved: true, reason: all is there }
";

fn run(home: &Home, python: &Path, arguments: &[&str]) -> Finished {
    let mut command = home.command(["run", "loop.yaml", "--trust", "--json"].iter().chain(arguments));
    command.envs(kernel_variables(python));
    finished(command, "")
}

#[test]
fn a_recording_of_a_loop_that_runs_code_is_replayed_strictly() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    home.file("loop.yaml", SCRIPT);
    home.file("replies.yaml", REPLIES);
    let recorded = run(&home, &python, &["--model", "replay:replies.yaml", "--record", "talk.jsonl"]);
    assert_eq!(recorded.code, Some(0), "{}", recorded.err);
    let replayed = run(&home, &python, &["--session", "again", "--replay", "talk.jsonl"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.err);
    let cells = home.export("again")["notebook"]["cells"].clone();
    assert_eq!((&cells[0]["outputs"][0]["text"], &cells[1]["content"]), (&"42\n".into(), &"It is 42.".into()));
}
