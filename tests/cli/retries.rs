//! Tests of `sessions retry` (docs/retry.md): what is kept, what runs again, and what is refused.

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};
use crate::session_output::journal;

/// A script that fails until the file `ok` exists. Its commands write to logs how often they ran.
const RELEASE: &str = "
session:
  session_id: release
  declare:
    - { var: password, value: tops3cret, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: command
              action_id: check
              config: { command: [sh, -c, 'echo run >> check.log; echo fine'], output: { checked: stdout } }
            - action_type: ai_ask
              action_id: ask
              config: { content: 为什么？, delivery: verbatim, max_rounds: 1, output: [{ get: why, define: 原因 }] }
            - { action_type: ai_think, action_id: think, config: { content: '总结 {{ why }}', output: [{ get: short, define: 总结 }] } }
            - action_type: command
              action_id: deploy
              config: { command: [sh, -c, 'echo run >> deploy.log; test -e ok'] }
            - { action_type: set, action_id: end, config: { values: { result: '{{ checked }} {{ why }}' } } }
";

fn call(home: &Home, line: &str, input: &str) -> Finished {
    let mut command = home.command(line.split(' '));
    command.env("TZ", "UTC").env("BCC_TRUST", "1");
    finished(command, input)
}

fn project(script: &str) -> Home {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("s.yaml", script);
    home
}

/// The failed session `one` of [`RELEASE`].
fn failed() -> Home {
    let home = project(RELEASE);
    let done = call(&home, "run s.yaml --session one", "因为\n");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!((runs(&home, "check"), runs(&home, "deploy")), (1, 1));
    home
}

/// How often a command really ran.
fn runs(home: &Home, log: &str) -> usize {
    std::fs::read_to_string(home.path().join(format!("{log}.log"))).map_or(0, |text| text.lines().count())
}

fn ids(home: &Home) -> Vec<String> {
    let listed = call(home, "sessions list", "").out;
    listed.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// The session that is not one of these.
fn other(home: &Home, known: &[&str]) -> String {
    let found: Vec<String> = ids(home).into_iter().filter(|id| !known.contains(&id.as_str())).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

fn variable(home: &Home, id: &str, name: &str) -> Value {
    home.export(id)["variables"]["session"][name]["value"].clone()
}

#[test]
fn a_retry_keeps_what_was_done_before_the_failed_step_and_runs_the_rest_again() {
    let home = failed();
    let before = (journal(&home, "one"), home.export("one"));
    home.put("ok", "");
    let done = call(&home, "sessions retry one", "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("repeats one from t/deploy"), "{}", done.err);
    assert_eq!((runs(&home, "check"), runs(&home, "deploy")), (1, 2), "effects before the step are not repeated");
    assert_eq!((journal(&home, "one"), home.export("one")), before, "the earlier session is unchanged");

    let new = other(&home, &["one"]);
    assert_eq!(variable(&home, &new, "result"), "fine 因为");
    let events = journal(&home, &new);
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no gaps");
    assert!(events.iter().all(|event| event["session_id"] == json!(new)));
    assert_eq!(events[0]["retry_of"], "one");
    let effects = |events: &[Value]| -> Vec<Value> {
        let started = events.iter().filter(|event| event["type"] == "effect_started");
        started.map(|event| event["effect_id"].clone()).collect()
    };
    let (old, new_effects) = (effects(&before.0), effects(&events));
    assert_eq!((old.len(), new_effects.len()), (2, 2));
    assert_eq!(old[0], new_effects[0], "kept");
    assert_ne!(old[1], new_effects[1], "a new effect");
    let transcript = home.export(&new)["transcript"].clone();
    assert_eq!(transcript[1]["text"], "因为", "{transcript}");

    let shown = |id: &str| call(&home, &format!("sessions show {id}"), "").out;
    assert!(shown(&new).contains("it repeats the session one"), "{}", shown(&new));
    assert!(shown("one").contains(&format!("it is repeated by the session {new}")), "{}", shown("one"));
    let report: Value = serde_json::from_str(&call(&home, &format!("report {new} --format json"), "").out).unwrap();
    assert_eq!((&report["session"]["retry_of"], report["steps"].as_array().unwrap().len()), (&json!("one"), 5));
    assert!(!format!("{events:?}{report}").contains("tops3cret"), "what was masked remains masked");
}

#[test]
fn a_preview_changes_nothing_and_says_what_is_kept_and_what_runs() {
    let home = failed();
    let store = std::fs::read(home.store()).unwrap();
    let preview = call(&home, "sessions retry one --from think --preview", "");
    assert_eq!(preview.code, Some(0), "{preview:?}");
    insta::assert_snapshot!(preview.out);
    let chinese = call(&home, "--lang zh sessions retry one --from think --preview", "").out;
    assert!(chinese.contains("保留 2 个步骤"), "{chinese}");
    let plan: Value =
        serde_json::from_str(&call(&home, "sessions retry one --from think --preview --json", "").out).unwrap();
    assert_eq!(plan["model_calls"], json!({ "earlier": 1, "recorded": 1, "not_run_yet": 0 }));
    let runs_again: Vec<&Value> = plan["runs"].as_array().unwrap().iter().map(|step| &step["action_id"]).collect();
    assert_eq!(runs_again, [&json!("think"), &json!("deploy"), &json!("end")]);
    assert_eq!(ids(&home), ["one"]);
    assert_eq!(runs(&home, "deploy"), 1);
    assert_eq!(std::fs::read(home.store()).unwrap(), store);
}

#[test]
fn an_action_that_was_left_before_the_step_does_not_run_again() {
    let home = project(
        "
session:
  session_id: left
  triggers: [{ trigger_id: leave, when: \"last_user_message is regex('账单')\", then: { goto: pay } }]
  phases:
    - phase_id: p
      topics:
        - topic_id: talk
          actions: [{ action_type: ai_ask, action_id: ask, config: { content: 好吗？, max_rounds: 3 } }]
        - topic_id: pay
          actions:
            - { action_type: ai_think, action_id: bill, config: { content: 账单, output: [{ get: sum, define: 总数 }] } }
            - { action_type: set, action_id: end, config: { values: { done: true } } }
",
    );
    let done = call(&home, "run s.yaml --session one --model offline", "账单\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    let preview = call(&home, "sessions retry one --from bill --preview --json", "").out;
    let plan: Value = serde_json::from_str(&preview).unwrap();
    let ids: Vec<&Value> = plan["runs"].as_array().unwrap().iter().map(|step| &step["action_id"]).collect();
    assert_eq!(ids, [&json!("bill"), &json!("end")]);
}

#[test]
fn recorded_replies_are_used_while_the_prompts_are_the_same() {
    let home = failed();
    home.put("ok", "");
    let models = |id: &str| -> Vec<(Value, Value)> {
        let events = journal(&home, id);
        let calls = events.iter().filter(|event| event["type"] == "model_call");
        calls.map(|event| (event["model"].clone(), event["attempts"].clone())).collect()
    };
    assert_eq!(call(&home, "sessions retry one --from think", "").code, Some(0));
    let same = other(&home, &["one"]);
    assert_eq!(models(&same)[1], (json!("recorded"), json!(0)));
    let prompt = |id: &str| {
        let events = journal(&home, id);
        events.iter().rfind(|event| event["action_type"] == "ai_think").unwrap()["debug_info"].clone()
    };
    assert_eq!(prompt(&same)["llm_response"], prompt("one")["llm_response"]);

    home.put("edited.yaml", RELEASE.replace("总结 {{ why }}", "概括 {{ why }}"));
    assert_eq!(call(&home, "sessions retry one --from think --script edited.yaml", "").code, Some(0));
    let edited = other(&home, &["one", &same]);
    assert_eq!(models(&edited)[1].0, "offline", "another prompt");
    assert_eq!(call(&home, "sessions retry one --from think --model offline", "").code, Some(0));
    let asked = other(&home, &["one", &same, &edited]);
    assert_eq!(models(&asked)[1].0, "offline", "a model was asked for");
}

/// Prompts contain the time, which is another one when they are repeated.
#[test]
fn recorded_replies_are_used_although_the_time_is_another_one() {
    let home = project(RELEASE);
    home.put("ok", "");
    let ran = |minute: usize| {
        // An event takes a millisecond: the event `minute` is the first one of the next minute, in both sessions.
        let clock = format!("2026-11-21T20:00:59.{:03}Z", 1000 - minute);
        let id = format!("minute-{minute}");
        let done = call(&home, &format!("run s.yaml --session {id} --clock {clock}"), "因为\n");
        assert_eq!(done.code, Some(0), "{done:?}");
        id
    };
    let is_start = |event: &Value| event["type"] == "action_started" && event["location"]["action_id"] == "think";
    let start = journal(&home, &ran(1)).iter().position(is_start).unwrap() + 1;
    for minute in start..start + 4 {
        let retried = call(&home, &format!("sessions retry {} --from think --json", ran(minute)), "");
        assert_eq!(retried.code, Some(0), "{retried:?}");
        let events = retried.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let models: Vec<Value> =
            events.filter(|event| event["type"] == "model_call").map(|event| event["model"].clone()).collect();
        assert_eq!(models, ["recorded"], "minute {minute}");
    }
}

#[test]
fn an_edited_script_continues_if_it_has_the_steps_that_ran() {
    let home = failed();
    let added = "            - { action_type: set, action_id: added, config: { values: { early: 1 } } }\n            - action_type: command\n              action_id: deploy\n              config: { command: [sh, -c, 'echo run >> deploy.log'] }\n            - { action_type: set, action_id: later, config: { values: { late: '{{ extra }} {{ why }}' } } }\n            - { action_type: set, action_id: end,";
    let tail = RELEASE.find("            - action_type: command\n              action_id: deploy").unwrap();
    let end = RELEASE.find("            - { action_type: set, action_id: end,").unwrap();
    let edited = format!(
        "{}{added}{}",
        &RELEASE[..tail],
        &RELEASE[end + "            - { action_type: set, action_id: end,".len()..]
    );
    let edited = edited.replace("  declare:\n", "  declare:\n    - { var: extra, value: 新的 }\n").replace(
        "  phases:\n",
        "  phases:\n    - phase_id: new\n      topics:\n        - topic_id: new_topic\n          actions:\n            - { action_type: set, action_id: first, config: { values: { early: 2 } } }\n",
    );
    home.put("edited.yaml", &edited);
    let done = call(&home, "sessions retry one --script edited.yaml", "");
    assert_eq!(done.code, Some(0), "{done:?}");
    let new = other(&home, &["one"]);
    assert_eq!(variable(&home, &new, "late"), "新的 因为");
    assert_eq!(variable(&home, &new, "early"), Value::Null, "what was added before the step does not run");
    assert_eq!((runs(&home, "check"), runs(&home, "deploy")), (1, 2));

    let refused = |script: &str, reason: &str| {
        home.put("edited.yaml", script);
        let done = call(&home, "sessions retry one --script edited.yaml", "");
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains(reason), "{reason}: {}", done.err);
    };
    refused(&RELEASE.replace("action_id: check", "action_id: test"), "does not have the steps `check`");
    refused(&RELEASE.replace("session_id: release", "session_id: other"), "belongs to the script `release`");
    let moved = format!("{}            - {{ action_type: ai_think, action_id: think, config: {{ content: 总结 }} }}\n", RELEASE.replace(
        "            - { action_type: ai_think, action_id: think, config: { content: '总结 {{ why }}', output: [{ get: short, define: 总结 }] } }\n",
        "",
    ));
    refused(&moved, "has the steps `think`, which have already run, after `deploy`");
    refused(&RELEASE.replace("action_type: ai_think", "action_type: ai_thought"), "ai_thought");
    assert_eq!(ids(&home).len(), 2, "nothing was begun");
}

#[test]
fn what_cannot_be_repeated_is_refused() {
    let home = failed();
    let refused = |line: &str, reason: &str| {
        let done = call(&home, line, "");
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(done.err.contains(reason), "{line}: {}", done.err);
    };
    refused("sessions retry one --from nowhere", "has not started the step `nowhere`");
    refused("sessions retry one --from end", "has not started the step `end`");
    refused("sessions retry", "specify the session");
    // The help promises no default, as that of `resume` does.
    let help = |line: &str| call(&home, line, "").out.contains("[default: the unfinished session");
    assert!(!help("sessions retry --help") && help("sessions resume --help"));
    refused("sessions retry two", "there is no session `two`");
    home.put("ok", "");
    assert_eq!(call(&home, "sessions retry one", "").code, Some(0));
    let new = other(&home, &["one"]);
    refused(&format!("sessions retry {new}"), "no step of session");
    assert_eq!(call(&home, "run s.yaml --session waits", "").code, Some(3));
    refused("sessions retry waits --from check", "has not ended");
    // Without trust, a retry runs no commands.
    let mut untrusted = home.command(["sessions", "retry", "one"]);
    untrusted.env_remove("BCC_TRUST");
    assert_eq!(finished(untrusted, "").code, Some(2));
    assert_eq!(runs(&home, "deploy"), 2);
}

/// A step that is undone when a later one fails; so is the undoing, if the file `stuck` exists.
const TRIP: &str = "
session:
  session_id: trip
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: command
              action_id: reserve
              config: { command: [sh, -c, 'echo run >> reserve.log'] }
              compensate:
                - { action_type: command, action_id: release, config: { command: [sh, -c, 'echo run >> release.log; test ! -e stuck'] } }
            - { action_type: command, action_id: charge, config: { command: [sh, -c, 'echo run >> charge.log; test -e ok'] } }
            - { action_type: command, action_id: mail, config: { command: [sh, -c, 'echo run >> mail.log'] } }
";

#[test]
fn steps_that_were_undone_do_not_count_as_done_unless_one_says_so() {
    for stuck in [false, true] {
        let home = project(TRIP);
        if stuck {
            home.put("stuck", "");
        }
        let count = |logs: [&str; 4]| logs.map(|log| runs(&home, log));
        let logs = ["reserve", "release", "charge", "mail"];
        assert_eq!(call(&home, "run s.yaml --session one", "").code, Some(1));
        assert_eq!(count(logs), [1, 1, 1, 0]);
        let refused = call(&home, "sessions retry one", "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.err.contains("has undone `t/reserve` meanwhile, and from `t/charge` on they would count as done")
                && refused.err.contains("`--from t/reserve` runs them again; `--from t/charge` goes on without them"),
            "{}",
            refused.err
        );
        let preview = call(&home, "sessions retry one --from charge --preview --json", "");
        let plan: Value = serde_json::from_str(&preview.out).unwrap();
        assert_eq!(plan["undone"], json!(["t/reserve"]));
        // What was undone is not undone again when the retry fails, too.
        let again = call(&home, "sessions retry one --from charge", "");
        assert_eq!(again.code, Some(1), "{again:?}");
        assert!(again.err.contains("undone by the earlier session, and not run again: `t/reserve`"), "{}", again.err);
        assert_eq!(count(logs), [1, 1, 2, 0]);
        home.put("ok", "");
        let done = call(&home, "sessions retry one --from reserve", "");
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(count(logs), [2, 1, 3, 1]);
    }
}

#[test]
fn what_could_not_be_undone_completely_is_told_for_each_element() {
    let home = project(
        "
session:
  session_id: trip
  declare: [{ var: rooms, type: list, value: [one, two] }]
  phases:
    - phase_id: p
      topics:
        - topic_id: each
          for_each: { in: rooms, as: room }
          actions:
            - action_type: command
              action_id: reserve
              config: { command: ['true'] }
              compensate: [{ action_type: command, action_id: release, config: { command: [test, '{{ room }}', '=', one] } }]
        - topic_id: last
          actions: [{ action_type: command, action_id: charge, config: { command: ['false'] } }]
",
    );
    let run = call(&home, "run s.yaml --session one --json", "");
    assert_eq!(run.code, Some(1), "{run:?}");
    let undone: Vec<(Value, Value)> = run
        .events()
        .into_iter()
        .filter(|event| event["type"] == "undone")
        .map(|event| (event["location"]["path"].clone(), event["complete"].clone()))
        .collect();
    assert_eq!(undone, [(json!("each@two/reserve"), json!(false)), (json!("each@one/reserve"), json!(true))]);
    let report: Value = serde_json::from_str(&call(&home, "report one --format json", "").out).unwrap();
    let statuses: Vec<&Value> =
        report["steps"].as_array().unwrap().iter().map(|step| &step["status"]).take(2).collect();
    assert_eq!(statuses, ["undone", "done"]);
}

#[test]
fn a_retry_that_is_killed_is_resumed_and_repeats_no_effect_silently() {
    let home = project(&RELEASE.replace("test -e ok", "while test -e hold; do :; done; test -e ok"));
    assert_eq!(call(&home, "run s.yaml --session one", "因为\n").code, Some(1));
    home.put("hold", "");
    home.put("ok", "");
    let mut command = home.command(["sessions", "retry", "one", "--json"]);
    command.env("BCC_TRUST", "1");
    let mut running = crate::process::Running::start(command);
    running.event_of("effect_started");
    running.kill();
    std::fs::remove_file(home.path().join("hold")).unwrap();
    let new = other(&home, &["one"]);
    let asked = call(&home, &format!("sessions resume {new}"), "");
    assert_eq!(asked.code, Some(3), "the session asks what to do: {asked:?}");
    assert_eq!(call(&home, &format!("sessions resume {new}"), "again\n").code, Some(0));
    assert_eq!((runs(&home, "check"), variable(&home, &new, "result")), (1, json!("fine 因为")));
}

#[test]
fn a_completed_session_goes_on_from_its_last_visit_of_a_step() {
    let home = project(
        "
session:
  session_id: decided
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: set, action_id: prepare, config: { values: { round: '{{ approval.iteration }}' } } }
            - { action_type: approval, action_id: release, config: { prompt: '可以吗？{{ round }}', rewind_to: prepare } }
            - { action_type: set, action_id: end, config: { values: { result: '{{ approval.comment }}' } } }
",
    );
    assert_eq!(call(&home, "run s.yaml --session one", "").code, Some(3));
    assert_eq!(call(&home, "push-back one --comment 再想想 --run", "").code, Some(3));
    assert_eq!(call(&home, "approve one --comment 好 --run", "").code, Some(0));
    let again = call(&home, "sessions retry one --from release", "");
    assert_eq!((again.code, again.out.as_str()), (Some(3), "可以吗？1\n"), "{again:?}");
    let new = other(&home, &["one"]);
    assert_eq!(variable(&home, &new, "result"), Value::Null, "what was set after the step is gone");
    assert_eq!(call(&home, &format!("approve {new} --comment 可以 --run"), "").code, Some(0));
    assert_eq!((variable(&home, &new, "result"), variable(&home, "one", "result")), (json!("可以"), json!("好")));
}

#[test]
fn a_step_in_a_skill_is_repeated_alone_and_branches_together() {
    let step = |id: &str, test: &str| {
        format!(
            "{{ action_type: command, action_id: {id}, config: {{ command: [sh, -c, 'echo run >> {id}.log; {test}'] }} }}"
        )
    };
    let home = project(&format!(
        "
session:
  session_id: nested
  skills:
    - skill_id: publish
      actions:
        - {}
        - {}
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - {{ action_type: use_skill, action_id: call, on_exit: {{ error: fail }}, config: {{ skill: publish }} }}
            - action_type: parallel
              action_id: all
              config:
                branches:
                  - id: eu
                    actions: [{}]
                  - id: us
                    actions: [{}]
",
        step("one", "true"),
        step("two", "test -e ok"),
        step("eu_deploy", "true"),
        step("us_deploy", "test -e ok_us"),
    ));
    assert_eq!(call(&home, "run s.yaml --session a", "").code, Some(1));
    home.put("ok", "");
    let done = call(&home, "sessions retry a", "");
    assert_eq!(done.code, Some(1), "the branch `us` fails: {done:?}");
    assert!(done.err.contains("repeats a from t/call/publish/two"), "{}", done.err);
    assert_eq!(["one", "two", "eu_deploy", "us_deploy"].map(|log| runs(&home, log)), [1, 2, 1, 1]);
    let b = other(&home, &["a"]);
    home.put("ok_us", "");
    let done = call(&home, &format!("sessions retry {b} --from all"), "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(["one", "two", "eu_deploy", "us_deploy"].map(|log| runs(&home, log)), [1, 2, 2, 2]);
}
