//! Tests of `sessions`: list, show, export, delete, prune.

use super::*;

#[test]
fn sessions_are_listed_shown_exported_and_deleted() {
    let home = Home::new();
    assert_eq!(sessions(&home, &["list"]).out, "");
    talk(&home, &["--user", "lin", "--clock", "2026-11-21T20:00:00Z"], "小林\n35\n芝麻开门\n");
    let script = home.script("short_talk.yaml").display().to_string();
    home.finish(["run", &script, "--session", "older", "--clock", "2020-01-01T00:00:00Z"], "");
    let list = sessions(&home, &["list"]).out;
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0][..5], ["t", "waiting_input", "two_phases", "user lin", "3 answers"]);
    assert_eq!(rows[1][..5], ["older", "waiting_input", "short_talk", "user default", "0 answers"]);

    let shown = sessions(&home, &["show", "t"]).out;
    for part in [
        "# 两段",
        "waiting_input",
        "- **ai** 怎么称呼你？",
        "- **user** 小林",
        "`age` = 35 (set by ask_age)",
        "`code` = ***",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(sessions(&home, &["export", "t", "--format", "md"]).out, shown);
    assert!(!shown.contains("芝麻开门"), "{shown}");

    assert_eq!(sessions(&home, &["delete", "t"]).code, Some(0));
    assert_eq!(sessions(&home, &["show", "t"]).code, Some(2));
    assert_eq!(sessions(&home, &["list"]).out.lines().count(), 1);
    // The id can be used again.
    let finished = talk(&home, &[], "");
    assert_eq!((finished.code, finished.out.as_str()), (Some(3), "你好。\n怎么称呼你？\n"));
}

#[test]
fn an_export_has_the_documented_fields_and_prompts_only_with_calls() {
    let home = Home::new();
    talk(&home, &["--user", "lin"], "小林\n35\n芝麻开门\n从前\n");
    let plain = sessions(&home, &["export", "t"]).out;
    let export: Value = serde_json::from_str(&plain).unwrap();
    let names: Vec<&String> = export.as_object().unwrap().keys().collect();
    let expected = [
        "version",
        "session",
        "transcript",
        "variables",
        "action_metrics_history",
        "progress_suggestion_history",
        "monitor_feedback",
        "plans",
        "outcomes",
        "usage",
        "model_calls",
    ];
    assert_eq!(names, expected);
    assert_eq!(export["version"], 1);
    for name in ["id", "user", "status", "script", "script_sha256", "started_at", "updated_at", "location"] {
        assert!(export["session"].get(name).is_some(), "{name}");
    }
    assert_eq!((&export["session"]["user"], &export["session"]["status"]), (&json!("lin"), &json!("completed")));
    assert_eq!(export["transcript"][2]["text"], "小林");
    assert_eq!(
        (&export["transcript"][2]["action_id"], &export["transcript"][2]["round"]),
        (&json!("ask_name"), &json!(1))
    );
    assert_eq!(export["action_metrics_history"][0]["action_id"], "ask_name");
    for name in ["metrics", "progress_suggestion", "timestamp", "action_type", "round"] {
        assert!(export["action_metrics_history"][0].get(name).is_some(), "{name}");
    }
    for secret in ["llm_prompt", "llm_response", "raw_response"] {
        assert!(!plain.contains(secret), "{secret}");
    }
    let with_calls = home.export("t").to_string();
    assert!(with_calls.contains("llm_prompt") && with_calls.contains("llm_response"));
    assert!(!plain.contains("芝麻开门") && !with_calls.contains("芝麻开门"), "a sensitive value is exported");
}

#[test]
fn prune_deletes_old_sessions_that_are_not_locked() {
    let home = Home::new();
    let script = home.script("short_talk.yaml").display().to_string();
    for (id, clock) in
        [("old", "2020-01-01T00:00:00Z"), ("held", "2020-01-01T00:00:00Z"), ("fresh", "2999-01-01T00:00:00Z")]
    {
        home.finish(["run", &script, "--session", id, "--clock", clock], "");
    }
    let holder = home.start(["run", &script, "--session", "held", "--json"]);
    holder.event_of("waiting");
    let pruned = sessions(&home, &["prune", "--older-than", "30d"]);
    assert_eq!(pruned.code, Some(0), "{}", pruned.err);
    assert_eq!(pruned.err, "deleted old\n1 sessions deleted\n");
    let list = sessions(&home, &["list"]).out;
    assert!(list.contains("held\t") && list.contains("fresh\t") && !list.contains("old\t"), "{list}");
}
