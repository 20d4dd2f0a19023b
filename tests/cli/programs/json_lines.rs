//! Tests of `--json`: event output, answer input, and the events that are repeated on resume.

use super::*;

/// The printed events that have a `seq`.
fn numbered(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event.get("seq").is_some()).collect()
}

#[test]
fn every_line_is_an_event_with_the_next_number() {
    let home = Home::new();
    let finished = talk(&home, &["--json"], ANSWERS);
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let events = finished.events();
    for (index, event) in numbered(&events).into_iter().enumerate() {
        assert_eq!(event["seq"], index + 1);
        assert_eq!(event["session_id"], "t");
        assert!(event["at"].as_str().unwrap().ends_with('Z') && event["location"].is_object(), "{event}");
    }
    assert_eq!(events[0]["type"], "session_started");
    assert_eq!(events.last().unwrap()["type"], "session_completed");
    assert_eq!(events.last().unwrap()["summary"]["answers"], 4);
    let unnumbered = events.iter().filter(|event| event.get("seq").is_none());
    assert!(unnumbered.clone().count() > 0 && unnumbered.clone().all(|event| event["type"] == "message_delta"));
    // The deltas of a message add up to its text.
    for message in of_type(&events, "message").into_iter().filter(|message| message["role"] == "ai") {
        let pieces =
            of_type(&events, "message_delta").into_iter().filter(|delta| delta["message_id"] == message["message_id"]);
        let text: String = pieces.map(|delta| delta["text"].as_str().unwrap()).collect();
        assert_eq!(text, message["text"].as_str().unwrap());
    }
    // `waiting` follows the message that asks for the answer, and has the same text.
    for pair in events.windows(3).filter(|pair| pair[2]["type"] == "waiting") {
        let question = pair.iter().find(|event| event["type"] == "message").unwrap();
        assert_eq!(question["text"], pair[2]["prompt"]);
        assert_eq!(pair[2]["for"], "input");
    }
    let ids: Vec<&str> =
        of_type(&events, "waiting").iter().map(|waiting| waiting["answer_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a1", "a2", "a3", "a4"]);
    let topics: Vec<&str> =
        of_type(&events, "topic_entered").iter().map(|topic| topic["name"].as_str().unwrap()).collect();
    assert_eq!(topics, ["打招呼", "数字", "故事"]);
    assert_eq!(events[0].get("model"), Some(&json!("offline")));
}

#[test]
fn plain_lines_and_objects_are_answers() {
    let home = Home::new();
    let input =
        ["小林", &json!({ "user": "35" }).to_string(), &answer("{\"user\": 1}", "a3"), "[not an object"].join("\n");
    assert_eq!(talk(&home, &["--json"], input).code, Some(0));
    assert_eq!(user_messages(&home)[..2], ["小林", "35"]);
    assert_eq!(user_messages(&home)[2..], ["***", "[not an object"], "the third is the sensitive code");
}

#[test]
fn an_answer_whose_id_was_taken_is_ignored_with_a_committed_warning() {
    let home = Home::new();
    let input = [
        answer("小林", "a1"),
        answer("小林", "a1"),
        answer("不是我的", "a9"),
        answer("35", "of-the-client"),
        answer("36", "of-the-client"),
        answer("别的", "a2"),
        answer("芝麻开门", "a3"),
    ];
    let finished = talk(&home, &["--json"], input.join("\n"));
    assert_eq!(finished.code, Some(3), "{}", finished.err);
    let events = finished.events();
    for (index, event) in numbered(&events).into_iter().enumerate() {
        assert_eq!(event["seq"], index + 1);
    }
    let codes: Vec<&str> =
        of_type(&events, "warning").iter().map(|warning| warning["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["answer-taken", "answer-unknown", "answer-taken", "answer-taken"]);
    assert_eq!(of_type(&events, "warning")[0]["help"], "the expected answer is `a2`");
    assert_eq!(user_messages(&home), ["小林", "35", "***"]);
    // Printed events are stored, and a taken answer stays taken in the next process.
    let again = home.finish(
        ["sessions", "resume", "t", "--json", "--after", "0"],
        [answer("35", "of-the-client"), answer("x", "a1")].join("\n"),
    );
    let warnings = of_type(&again.events(), "warning").len();
    assert_eq!(warnings, 4 + 2, "{}", again.out);
    assert_eq!(user_messages(&home).len(), 3);
}

/// The codes of the errors among `events`. Each must be a committed event with a help.
fn errors(events: &[Value]) -> Vec<&str> {
    for (index, event) in numbered(events).into_iter().enumerate() {
        assert_eq!(event["seq"], index + 1);
    }
    let errors = of_type(events, "error");
    assert!(errors.iter().all(|error| error["message"].is_string() && error["help"].is_string()), "{errors:?}");
    errors.into_iter().map(|error| error["code"].as_str().unwrap()).collect()
}

#[test]
fn an_unusable_line_is_an_error_event_and_the_session_continues_to_wait() {
    let home = Home::new();
    let lines: [&[u8]; 9] = [
        b"{bad json",
        b"",
        "  \r".as_bytes(),
        br#"{"text": "5"}"#,
        br#"{"user": 12345}"#,
        br#"{"user": "x", "answer_id": 12345}"#,
        b"a\xff\xfeb",
        br#"{"user": "half"#,
        "小林".as_bytes(),
    ];
    let finished = talk(&home, &["--json"], lines.join(&b'\n'));
    assert_eq!((finished.code, finished.err.contains("error")), (Some(3), false), "{}", finished.err);
    let events = finished.events();
    let expected = [
        "answer-not-json",
        "answer-not-readable",
        "answer-not-readable",
        "answer-not-readable",
        "answer-not-utf8",
        "answer-not-json",
    ];
    assert_eq!(errors(&events), expected);
    assert!(!finished.out.contains("12345"), "an error repeats the input: {}", finished.out);
    assert_eq!(user_messages(&home), ["小林"]);
}

#[test]
fn with_json_objects_a_plain_line_is_an_error_event() {
    let home = Home::new();
    let input = ["小林", "", "\"小林\"", &answer("小林", "a1")].join("\n");
    let finished = talk(&home, &["--json", "--json-objects"], input);
    assert_eq!(finished.code, Some(3), "{}", finished.err);
    assert_eq!(errors(&finished.events()), ["answer-not-an-object"; 2]);
    assert_eq!(user_messages(&home), ["小林"]);
    let resumed = home.finish(["sessions", "resume", "t", "--json", "--json-objects"], "35\n");
    assert_eq!(of_type(&resumed.events(), "error").len(), 1, "{}", resumed.out);
    assert_eq!(user_messages(&home), ["小林"]);
    assert_eq!(talk(&home, &["--json-objects"], "").code, Some(2), "it needs --json");
}

#[test]
fn unused_lines_of_input_are_reported_and_are_no_event() {
    let home = Home::new();
    let finished = talk(&home, &["--json"], format!("{ANSWERS}one too many\n\n{{bad json\n"));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(finished.events().last().unwrap()["type"], "session_completed");
    assert!(
        finished.err.contains("warning: unused lines of input: 2; the session asked no further"),
        "{}",
        finished.err
    );
    let stopped = talk(&Home::new(), &["--json", "--budget", "turns=3"], ANSWERS);
    assert_eq!(stopped.code, Some(3));
    assert!(stopped.err.contains("warning: unused lines of input: "), "{}", stopped.err);
}

#[test]
fn a_resumed_session_reports_its_location_and_repeats_waiting() {
    let home = Home::new();
    let first = talk(&home, &["--json"], "小林\n不说\n");
    let printed: Vec<&str> = first.out.lines().collect();
    let waiting = *printed.last().unwrap();
    let last_seq = numbered(&first.events()).len();
    for (number, arguments) in
        [vec!["sessions", "resume", "t", "--json"], vec!["run", "two_phases.yaml", "--session", "t", "--json"]]
            .iter()
            .enumerate()
    {
        let finished = home.finish(arguments, "");
        assert_eq!(finished.code, Some(3), "{}", finished.err);
        let lines: Vec<&str> = finished.out.lines().collect();
        assert_eq!(lines.len(), 2, "{}", finished.out);
        let resumed = &finished.events()[0];
        assert_eq!(resumed["type"], "session_resumed");
        assert_eq!((&resumed["script"], &resumed["model"]), (&json!("two_phases"), &json!("offline")));
        assert_eq!(resumed["last_seq"], last_seq + number);
        assert_eq!(resumed["seq"], last_seq + number + 1);
        assert_eq!(resumed["answers"], 2);
        assert_eq!(lines[1], waiting, "told again as it was");
    }
}

#[test]
fn after_repeats_exactly_the_missed_events() {
    let home = Home::new();
    let first = talk(&home, &["--json"], "小林\n");
    let mut printed: Vec<String> =
        first.out.lines().filter(|line| line.starts_with("{\"seq\"")).map(str::to_owned).collect();
    let waiting = printed.last().unwrap().clone();
    for after in [printed.len(), 7, 0, printed.len() + 1, 9999] {
        let finished = home.finish(["sessions", "resume", "t", "--json", "--after", &after.to_string()], "");
        let lines: Vec<&str> = finished.out.lines().collect();
        let missed = printed.get(after..).unwrap_or_default();
        assert_eq!(lines[..missed.len()], *missed, "after {after}");
        let [resumed, again] = &lines[missed.len()..] else { panic!("after {after}: {lines:#?}") };
        assert!(resumed.starts_with(&format!("{{\"seq\":{},", printed.len() + 1)), "{resumed}");
        assert_eq!(*again, waiting);
        printed.push((*resumed).to_owned());
    }
    // For a completed session, the missed events at its end are printed.
    assert_eq!(talk(&home, &["--json"], "35\n芝麻开门\n从前\n").code, Some(0));
    let ended = home.finish(["sessions", "resume", "t", "--json", "--after", &printed.len().to_string()], "");
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert_eq!(ended.events()[0]["type"], "session_resumed");
    assert_eq!(ended.events().last().unwrap()["type"], "session_completed");
}

#[test]
fn the_same_clock_and_answers_give_the_same_output_to_the_byte() {
    let outputs = ["2026-11-21T20:00:00Z", "2026-11-21T20:00:00Z", "2026-11-21T20:00:01Z"].map(|clock| {
        let home = Home::new();
        let finished = talk(&home, &["--json", "--clock", clock, "--seed", "7"], ANSWERS);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        (finished.out, home.export("t"))
    });
    assert_eq!(outputs[0], outputs[1]);
    assert_ne!(outputs[0], outputs[2]);
    assert!(outputs[0].0.contains("\"at\":\"2026-11-21T20:00:00.001000Z\""));
}

#[test]
fn an_edited_script_changes_no_running_session() {
    let home = Home::new();
    talk(&home, &["--json"], "小林\n");
    let edited =
        std::fs::read_to_string(home.path().join("two_phases.yaml")).unwrap().replace("你的密码？", "另一个问题？");
    let script = home.file("two_phases.yaml", &edited).display().to_string();
    let finished = home.finish(["run", &script, "--session", "t"], "35\n");
    assert_eq!(finished.out, "你的密码？\n", "{}", finished.err);
    assert!(finished.err.contains("was edited"), "{}", finished.err);
    std::fs::remove_file(&script).unwrap();
    let finished = home.finish(["sessions", "resume", "t"], "芝麻开门\n从前\n");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
}
