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
        "- **咨询师** (20:00): 怎么称呼你？",
        "- **来访者** (20:00): 小林",
        "`age` = 35 (set by ask_age)",
        "`code` = ***",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // Only Markdown needs escapes.
    assert_eq!(sessions(&home, &["export", "t", "--format", "md"]).out.replace("\\*\\*\\*", "***"), shown);
    assert!(!shown.contains("芝麻开门"), "{shown}");

    assert_eq!(sessions(&home, &["delete", "t"]).code, Some(0));
    assert_eq!(sessions(&home, &["show", "t"]).code, Some(2));
    assert_eq!(sessions(&home, &["list"]).out.lines().count(), 1);
    // The id can be used again.
    let finished = talk(&home, &[], "");
    assert_eq!((finished.code, finished.out.as_str()), (Some(3), "你好。\n怎么称呼你？\n"));
}

#[test]
fn a_markdown_export_has_the_names_of_the_script_and_local_times() {
    let home = Home::new();
    let story = json!({ "user": "从前\n# 有座山\n\n- 山里有座庙" }).to_string();
    let input = ["小林", "不说", "35", "芝麻开门", &story].join("\n");
    talk(&home, &["--json", "--user", "lin", "--clock", "2026-11-21T20:00:00Z"], input);
    let export = |language: &str, zone: &str| {
        let mut command = home.command(["sessions", "export", "t", "--format", "md", "--lang", language]);
        command.env("TZ", zone);
        let finished = process::finished(command, "");
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        finished.out
    };
    insta::assert_snapshot!("a_markdown_export_in_english", export("en", "UTC"));
    // The session began in the evening, and it is the next morning eight hours further east.
    insta::assert_snapshot!("a_markdown_export_in_chinese", export("zh", "CST-8"));
}

#[test]
fn an_export_refuses_an_extension_that_is_no_format() {
    let home = Home::new();
    talk(&home, &[], "小林\n");
    for file in ["talk.docx", "talk.PDF", "talk.md.bak"] {
        let refused = sessions(&home, &["export", "t", "-o", file]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        for part in ["cannot be exported", "`.json`, `.md`, `.html` or `.ipynb`"] {
            assert!(refused.err.contains(part), "{part} in {}", refused.err);
        }
        assert!(!home.path().join(file).exists());
    }
    for (arguments, start) in [
        (["-o", "talk.MD", "--format", "md"], "# 两段"),
        (["-o", "talk.docx", "--format", "json"], "{"),
        (["-o", "talk", "--format", "html"], "<!"),
    ] {
        let finished = sessions(&home, &["export", "t", arguments[0], arguments[1], arguments[2], arguments[3]]);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        assert!(std::fs::read_to_string(home.path().join(arguments[1])).unwrap().starts_with(start), "{arguments:?}");
    }
    assert_eq!(sessions(&home, &["export", "t", "-o", "plain"]).code, Some(0));
    assert!(std::fs::read_to_string(home.path().join("plain")).unwrap().starts_with('{'), "without an extension");
}

#[test]
fn a_session_that_failed_or_stopped_shows_why() {
    let home = Home::new();
    assert_eq!(run(&home, "failing.yaml", &[], "不说\n").code, Some(1));
    let shown = sessions(&home, &["show", "t"]).out;
    assert!(shown.contains("\n- failed because: ") && shown.contains("`age >= 18`"), "{shown}");
    assert!(home.export("t")["session"]["reason"].as_str().unwrap().contains("`age >= 18`"));

    let home = Home::new();
    assert_eq!(talk(&home, &["--budget", "turns=2"], "小林\n").code, Some(3));
    let shown = sessions(&home, &["show", "t", "--lang", "zh"]).out;
    assert!(shown.contains("\n- 停止原因：预算已用完"), "{shown}");
    // It is the reason only as long as the session is stopped.
    assert_eq!(home.finish(["sessions", "resume", "t", "--budget", "turns=50"], "小林\n").code, Some(3));
    assert!(!sessions(&home, &["show", "t"]).out.contains("because"));
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
