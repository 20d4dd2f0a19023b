//! Tests of `--budget`: a session that used up its budget continues only with a larger one.

use super::*;

#[test]
fn a_session_with_an_exhausted_budget_exits_with_3_and_says_how_to_continue() {
    let home = Home::new();
    let stopped = talk(&home, &["--budget", "turns=2"], ANSWERS);
    assert_eq!((stopped.code, stopped.out.as_str()), (Some(3), "你好。\n怎么称呼你？\n"), "{}", stopped.err);
    let command = "sessions resume t --budget turns=4";
    assert!(stopped.err.contains("the budget is used up") && stopped.err.contains(command), "{}", stopped.err);
    // The answer was committed before the session stopped.
    assert_eq!(user_messages(&home), ["小林"]);

    // Without a larger budget it stops again at once and asks nothing.
    let script = home.script("two_phases.yaml").display().to_string();
    let again: [&[&str]; 3] =
        [&["sessions", "resume", "t"], &["sessions", "resume", "t"], &["run", &script, "--session", "t"]];
    for arguments in again {
        let finished = home.finish(arguments, ANSWERS);
        assert_eq!((finished.code, finished.out.as_str()), (Some(3), ""), "{arguments:?}");
        assert!(finished.err.contains(command), "{}", finished.err);
    }
    assert_eq!(user_messages(&home), ["小林"]);

    let enough = home.finish(["sessions", "resume", "t", "--budget", "turns=400"], "35\n芝麻开门\n从前\n");
    assert_eq!(enough.code, Some(0), "{}", enough.err);
    assert_eq!(user_messages(&home), ["小林", "35", "***", "从前"]);
}

#[test]
fn a_larger_budget_is_stored_for_later_resumes() {
    let home = Home::new();
    talk(&home, &["--budget", "turns=2", "--budget", "model_calls=50"], "小林\n");
    home.finish(["sessions", "resume", "t", "--budget", "turns=4"], "35\n");
    let list = sessions(&home, &["list"]).out;
    assert!(list.contains("\tstopped\t") && list.contains("4 of 4 turns, 4 of 50 model calls, 0 tokens"), "{list}");
    let shown = sessions(&home, &["show", "t"]).out;
    assert!(shown.contains("- used: 4 of 4 turns, 4 of 50 model calls"), "{shown}");
    let session = home.export("t")["session"].clone();
    assert_eq!(session["budget"], json!({ "turns": 4, "model_calls": 50 }));
    assert_eq!(session["used"]["turns"], 4);
    assert!(session["used"]["active_ms"].is_u64(), "{session}");
    // `run --session` resumes it in the same way.
    let finished = talk(&home, &["--budget", "turns=99"], "芝麻开门\n从前\n");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
}

#[test]
fn an_invalid_budget_is_rejected_before_anything_changes() {
    let home = Home::new();
    talk(&home, &["--budget", "turns=2"], "小林\n");
    let before = home.export("t");
    let invalid = [
        ("turns", "no `=`"),
        ("turns=0", "is not a whole number greater than 0"),
        ("turns=lots", "is not a whole number greater than 0"),
        ("hours=2", "one of turns, model_calls, tokens, minutes"),
        ("turns=9,turns=8", "`turns` twice"),
        ("turns=2", "2 of 2 turns are already used"),
        ("tokens=9,turns=1", "2 of 1 turns are already used"),
    ];
    for (budget, message) in invalid {
        let finished = home.finish(["sessions", "resume", "t", "--budget", budget], "");
        assert_eq!(finished.code, Some(2), "{budget}: {}", finished.err);
        assert!(finished.err.contains(message), "{budget}: {}", finished.err);
    }
    assert_eq!(home.export("t"), before);
    let script = home.script("two_phases.yaml").display().to_string();
    let finished = home.finish(["run", &script, "--session", "new", "--budget", "turns=none"], "");
    assert_eq!(finished.code, Some(2), "{}", finished.err);
    assert_eq!(sessions(&home, &["list"]).out.lines().count(), 1);
}

#[test]
fn a_program_is_told_which_limit_was_reached() {
    let home = Home::new();
    let events = talk(&home, &["--json", "--budget", "model_calls=1,turns=3"], ANSWERS).events();
    let reached: Vec<&Value> =
        of_type(&events, "budget_reached").iter().map(|event| &event["reason"]).collect::<Vec<_>>();
    assert_eq!(reached, ["model_calls"], "{events:#?}");
    let event = of_type(&events, "budget_reached")[0];
    assert_eq!((&event["route"], &event["why"]), (&json!("stop"), &json!("1 of 1 model calls are used")));
    let stopped = of_type(&events, "session_stopped")[0];
    let reason = stopped["summary"]["reason"].as_str().unwrap();
    for part in ["1 of 1 model calls", "--budget model_calls=2"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(events.last().unwrap()["type"], "session_stopped");
}
