//! Which steps a retry names as undone: those that it keeps, not those that it runs again (docs/retry.md).

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};

/// Runs some of its steps twice, and then fails.
const SCRIPT: &str = "
session:
  session_id: trip
  declare: [{ var: n, type: integer, value: 0 }]
  skills:
    - skill_id: sub
      actions:
        - { action_type: set, action_id: early, config: { values: { x: 1 } }, compensate: [{ action_type: set, action_id: un_early, config: { values: { x: 0 } } }] }
        - { action_type: set, action_id: late, config: { values: { y: 1 } }, compensate: [{ action_type: set, action_id: un_late, config: { values: { y: 0 } } }] }
  phases:
    - phase_id: p
      topics:
        - topic_id: before
          actions:
            - { action_type: set, action_id: first, config: { values: { a: 1 } }, compensate: [{ action_type: set, action_id: un_first, config: { values: { a: 0 } } }] }
        - topic_id: t
          actions:
            - { action_type: set, action_id: count, config: { values: { n: '{{ n + 1 }}' } } }
            - { action_type: set, action_id: book, config: { values: { b: 1 } }, compensate: [{ action_type: set, action_id: un_book, config: { values: { b: 0 } } }] }
            - { action_type: use_skill, action_id: call, config: { skill: sub } }
            - { action_type: condition, action_id: again, config: { cases: [{ when: n < 2, goto: count }] } }
            - { action_type: condition, action_id: wrong, on_exit: { exit_criteria_met: fail }, config: { cases: [{ when: 'false', set: { x: 1 } }] } }
";

fn call(home: &Home, line: &str) -> Finished {
    finished(home.command(line.split(' ')), "")
}

#[test]
fn a_step_that_runs_again_is_not_named_as_undone_and_kept() {
    let home = Home::new();
    home.put("s.yaml", SCRIPT);
    assert_eq!(call(&home, "run s.yaml --session one").code, Some(1));
    for (from, undone) in [
        ("first", json!([])),
        ("count", json!(["before/first"])),
        ("book", json!(["before/first"])),
        ("call", json!(["before/first", "t/book"])),
        ("early", json!(["before/first", "t/book"])),
        ("late", json!(["before/first", "t/book", "t/call/sub#2/early"])),
        ("wrong", json!(["before/first", "t/book", "t/call/sub#2/early", "t/call/sub#2/late"])),
    ] {
        let preview = call(&home, &format!("sessions retry one --from {from} --preview --json"));
        let plan: Value = serde_json::from_str(&preview.out).unwrap_or_else(|_| panic!("{from}: {preview:?}"));
        assert_eq!(plan["undone"], undone, "{from}");
    }
    let again = call(&home, "sessions retry one --from book");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("not run again: `before/first`\n"), "{}", again.err);
}
