//! Tests of the action type `parallel` through the program: branches at the same time, their variables, failures, requests, and kills.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use bcc_engine::clock::now;
use serde_json::{Value, json};

use crate::process::{Finished, Home, POLL_INTERVAL, TIMEOUT};
use crate::session_output::journal;

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--trust", "--session", "one"];

/// A project with a script with these actions. JSON is YAML.
fn project(actions: &Value) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    let script = json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } });
    home.file("s.yaml", &script.to_string());
    home
}

/// An action that runs a shell command.
fn shell(id: &str, command: &str, more: Value) -> Value {
    let mut config = json!({ "shell": true, "command": command });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "action_type": "command", "action_id": id, "config": config })
}

fn set(id: &str, values: Value) -> Value {
    json!({ "action_type": "set", "action_id": id, "config": { "values": values } })
}

fn approval(id: &str) -> Value {
    json!({ "action_type": "approval", "action_id": id, "config": { "prompt": format!("{id}?") } })
}

fn branch(id: &str, actions: Value) -> Value {
    json!({ "id": id, "actions": actions })
}

/// The action of the branches, with these keys next to `config`.
fn parallel(config: Value, more: Value) -> Value {
    let mut action = json!({ "action_type": "parallel", "action_id": "all", "config": config });
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

/// How the branches ended.
fn ends(finished: &Finished) -> Value {
    let is_outcome = |event: &Value| event["type"] == "outcome" && event["action_type"] == "parallel";
    finished.events().into_iter().rfind(is_outcome).unwrap_or_else(|| panic!("{finished:?}"))["metadata"]["branches"]
        .clone()
}

/// The session's value of a variable.
fn value(home: &Home, name: &str) -> Value {
    home.export("one")["variables"]["session"][name]["value"].clone()
}

fn lines(home: &Home, file: &str) -> Vec<String> {
    fs::read_to_string(home.path().join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Ends only when the other branch runs at the same time.
fn meets(own: &str, other: &str) -> String {
    format!(
        "touch {own}; n=0; while [ ! -e {other} ]; do n=$((n+1)); [ $n -lt 3000 ] || exit 9; sleep 0.01; done; echo {own}"
    )
}

#[test]
fn branches_run_at_the_same_time_and_their_variables_are_merged() {
    let branches = json!([
        branch(
            "a",
            json!([
                shell("a1", &meets("x", "y"), json!({ "output": { "seen_a": "stdout" } })),
                set("a2", json!({ "sum_a": "{{ seen_a }}{{ start }}" }))
            ])
        ),
        branch("b", json!([shell("b1", &meets("y", "x"), json!({ "output": { "seen_b": "stdout" } }))])),
    ]);
    let actions = json!([
        set("first", json!({ "start": 1 })),
        parallel(json!({ "branches": branches }), json!({})),
        set("last", json!({ "result": "{{ sum_a }} {{ seen_b }}" })),
    ]);
    let home = project(&actions);
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(ends(&finished), json!({ "a": "completed", "b": "completed" }));
    assert_eq!(value(&home, "result"), "x1 y");
}

#[test]
fn max_parallel_and_depends_on_order_branches() {
    let log = |name: &str| shell(name, &format!("echo {name} >> log; sleep 0.05; echo {name} >> log"), json!({}));
    let one_by_one = json!({ "max_parallel": 1, "branches": [branch("a", json!([log("a1")])), branch("b", json!([log("b1")])), branch("c", json!([log("c1")]))] });
    let home = project(&json!([parallel(one_by_one, json!({}))]));
    assert_eq!(home.finish(RUN, "").code, Some(0));
    assert_eq!(lines(&home, "log"), ["a1", "a1", "b1", "b1", "c1", "c1"]);

    let mut first = branch("first", json!([set("f", json!({ "sum": "{{ sum + 1 }}" }))]));
    first["depends_on"] = json!(["second"]);
    let second = branch("second", json!([set("s", json!({ "sum": 10 }))]));
    let home = project(&json!([
        parallel(json!({ "branches": [first, second] }), json!({})),
        set("last", json!({ "result": "{{ sum }}" }))
    ]));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(value(&home, "result"), 11);
}

#[test]
fn a_failing_branch_ends_the_others_only_if_the_author_wants_it() {
    let bad = branch(
        "bad",
        json!([
            shell("bad1", "while [ ! -e started ]; do sleep 0.01; done; exit 3", json!({})),
            set("bad2", json!({ "never": 1 }))
        ]),
    );
    let branches = |slow: &str| {
        let mut after = branch("after", json!([set("after1", json!({ "after": 1 }))]));
        after["depends_on"] = json!(["bad"]);
        let slow = branch(
            "slow",
            json!([
                set("slow0", json!({ "kept": 1 })),
                shell("slow1", slow, json!({})),
                set("slow2", json!({ "slow": 1 }))
            ]),
        );
        json!([bad, slow, after, branch("asks", json!([approval("ask")]))])
    };
    let next = json!({ "on_exit": { "branch_failed": "next" } });

    let endless = "touch started; echo $$ > pid; while true; do sleep 0.01; done";
    let home = project(&json!([parallel(json!({ "fail": "fast", "branches": branches(endless) }), next.clone())]));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        ends(&finished),
        json!({ "bad": "failed", "slow": "cancelled", "after": "skipped", "asks": "cancelled" })
    );
    assert_eq!((value(&home, "kept"), value(&home, "slow")), (json!(1), json!(null)));
    let withdrawn = |event: &Value| event["type"] == "request_answered" && event["decision"] == "withdrawn";
    assert_eq!(finished.events().iter().filter(|event| withdrawn(event)).count(), 1);
    let abandoned = |event: &Value| {
        event["type"] == "effect_finished" && event["summary"].as_str().unwrap().starts_with("abandoned")
    };
    assert_eq!(finished.events().iter().filter(|event| abandoned(event)).count(), 1);
    let listed: Value = serde_json::from_str(&home.finish(["requests", "list", "--json"], "").out).unwrap();
    assert_eq!(listed["requests"], json!([]));

    let home = project(&json!([parallel(json!({ "branches": branches("touch started") }), json!({}))]));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let failed = home.finish(["approve", "one", "ask", "--run", "--trust", "--json"], "");
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(ends(&failed), json!({ "bad": "failed", "slow": "completed", "after": "skipped", "asks": "completed" }));
    assert!(failed.out.contains("the branch `bad` failed: the command of `bad1` ended with exit code 3"), "{failed:?}");
}

#[test]
fn several_decisions_are_open_and_each_is_made_by_its_name() {
    let both = json!([
        branch("a", json!([approval("ask_a"), set("a", json!({ "by_a": "{{ approval.by }}" }))])),
        branch("b", json!([approval("ask_b"), set("b", json!({ "by_b": "{{ approval.by }}" }))]))
    ]);
    let home = project(&json!([parallel(json!({ "branches": both }), json!({}))]));
    let rested = home.finish(RUN, "");
    assert_eq!(rested.code, Some(3), "{rested:?}");
    let opened: Vec<String> = rested
        .events()
        .iter()
        .filter(|event| event["type"] == "waiting")
        .map(|event| event["request_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(opened.len(), 2);
    for id in &opened {
        assert!(rested.err.contains(&format!("bcc-script approve one/{id}")), "{rested:?}");
    }
    let ambiguous = home.finish(["approve", "one", "--trust"], "");
    assert_eq!(ambiguous.code, Some(2));
    assert!(ambiguous.err.contains("2 decisions are open") && ambiguous.err.contains(&opened[1]), "{ambiguous:?}");
    let nowhere = home.finish(["approve", "one", "ask_c", "--trust"], "");
    assert!(
        nowhere.err.contains("is not at `ask_c`, but at `ask_a`") && nowhere.err.contains("`ask_b`"),
        "{nowhere:?}"
    );
    // The second first; the process that goes on rests again.
    let second = home.finish(["approve", "one", "ask_b", "--by", "李", "--run", "--trust"], "");
    assert_eq!(second.code, Some(3), "{second:?}");
    let late = home.finish(["reject", &format!("one/{}", opened[1]), "--trust"], "");
    assert!(late.err.contains("was answered by 李"), "{late:?}");
    // What is open is written again.
    let resumed = home.finish(
        ["sessions", "resume", "one", "--json", "--trust"],
        format!("{}\n", json!({ "user": "approve", "answer_id": opened[0] })),
    );
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let again = waiting_in(&resumed);
    assert_eq!(again.iter().map(|event| event["request_id"].clone()).collect::<Vec<_>>(), [json!(opened[0])]);
    assert_eq!((value(&home, "by_a"), value(&home, "by_b")), (json!(null), json!("李")));
}

#[test]
fn a_push_back_in_a_branch_runs_its_steps_again_and_no_others() {
    let mut ask = approval("ask");
    ask["config"]["rewind_to"] = json!("prepare");
    let pushed = branch("a", json!([shell("prepare", "echo a >> log", json!({})), ask]));
    let other = branch("b", json!([shell("other", "echo b >> log", json!({})), approval("wait_for_it")]));
    let home = project(&json!([parallel(json!({ "branches": [pushed, other] }), json!({}))]));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    assert_eq!(home.finish(["push-back", "one", "ask", "--run", "--trust"], "").code, Some(3));
    assert_eq!(home.finish(["approve", "one", "wait_for_it", "--run", "--trust"], "").code, Some(3));
    let done = home.finish(["approve", "one", "ask", "--run", "--trust"], "");
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut log = lines(&home, "log");
    log.sort();
    assert_eq!(log, ["a", "a", "b"]);
}

/// Waits until a file has this many lines.
fn wait_for(home: &Home, file: &str, count: usize) {
    let deadline = Instant::now() + TIMEOUT;
    while lines(home, file).len() < count {
        assert!(Instant::now() < deadline, "{file}: {:?}", lines(home, file));
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// What a run or resume said that the session waits for.
fn waiting_in(finished: &Finished) -> Vec<Value> {
    finished.events().into_iter().filter(|event| event["type"] == "waiting").collect()
}

#[test]
fn a_killed_session_asks_about_the_program_of_each_branch() {
    let done = branch(
        "done",
        json!([shell("done1", "echo done >> log; echo 5", json!({ "output": { "five": "stdout" } })), approval("ask")]),
    );
    let home = project(&json!([parallel(
        json!({ "branches": [branch("a", json!([until_go("a1")])), done, branch("b", json!([until_go("b1")]))] }),
        json!({})
    )]));
    let mut running = home.start(RUN);
    wait_for(&home, "log", 3);
    // The branch that is done waits for a decision.
    running.event_of("request_opened");
    running.kill();
    home.file("go", "");
    let asked = home.finish(["sessions", "resume", "one", "--json", "--trust"], "");
    assert_eq!(asked.code, Some(3), "{asked:?}");
    // Whoever resumes it is told again about the decision, and once about one of the programs.
    let waiting = waiting_in(&asked);
    let kinds: Vec<&Value> = waiting.iter().map(|event| &event["for"]).collect();
    assert_eq!(kinds, ["approval", "interrupted_effect"], "{waiting:?}");
    assert_eq!(lines(&home, "log").len(), 3);
    // A decision is possible beside the question, and the question stays.
    let approved = home.finish(["approve", "one", "ask", "--trust"], "");
    assert_eq!(approved.code, Some(0), "{approved:?}");
    // One answer for each program.
    let answered = home.finish(["sessions", "resume", "one", "--json", "--trust"], "again\nskip\n");
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(waiting_in(&answered).first(), waiting.last(), "the open question is asked again");
    let mut log = lines(&home, "log");
    log.sort();
    let repeated = log.iter().filter(|line| *line == "a1").count();
    assert_eq!((log.len(), repeated), (4, 2), "{log:?}");
    assert_eq!((value(&home, "five"), value(&home, "a1"), value(&home, "b1")), (json!("5"), json!("a1"), json!(null)));
}

/// A program of a branch that adds its name to `log` and runs until there is the file `go`.
fn until_go(name: &str) -> Value {
    let program = format!("echo {name} >> log; while [ ! -e go ] && [ -e log ]; do sleep 0.01; done; echo {name}");
    shell(name, &program, json!({ "output": { name: "stdout" } }))
}

#[test]
fn a_question_about_a_program_is_answered_after_another_branch_was_decided() {
    let asks = branch("b", json!([approval("ask"), approval("ask_again")]));
    let home =
        project(&json!([parallel(json!({ "branches": [branch("a", json!([until_go("a1")])), asks] }), json!({}))]));
    let mut running = home.start(RUN);
    wait_for(&home, "log", 1);
    running.event_of("request_opened");
    running.kill();
    home.file("go", "");
    let asked = home.finish(["sessions", "resume", "one", "--json", "--trust"], "");
    assert_eq!(asked.code, Some(3), "{asked:?}");
    let is_question = |event: &Value| event["for"] == "interrupted_effect";
    let question = waiting_in(&asked).into_iter().find(is_question).unwrap_or_else(|| panic!("{asked:?}"));
    assert_eq!(home.finish(["approve", "one", "ask", "--trust"], "").code, Some(0));
    // The branch of the decision could go on now, and no process runs it.
    let target = format!("one/{}", question["answer_id"].as_str().unwrap());
    let answered = home.finish(["requests", "answer", &target, "skip", "--trust"], "");
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let repeated = home.finish(["requests", "answer", &target, "again", "--trust"], "");
    assert_eq!(repeated.code, Some(2), "{repeated:?}");
    let rested = home.finish(["sessions", "resume", "one", "--json", "--trust"], "");
    assert_eq!(rested.code, Some(3), "{rested:?}");
    assert_eq!(waiting_in(&rested).last().unwrap()["for"], "approval", "{rested:?}");
    let done = home.finish(["approve", "one", "ask_again", "--run", "--trust"], "");
    assert_eq!((done.code, lines(&home, "log").len(), value(&home, "a1")), (Some(0), 1, json!(null)), "{done:?}");
}

#[test]
fn a_time_comes_due_beside_a_question_about_a_program() {
    let pause = json!({ "action_type": "wait", "action_id": "pause", "config": { "for": "2s" } });
    let waits = branch("b", json!([pause, shell("b1", "echo b1 >> log", json!({}))]));
    let branches = json!([branch("a", json!([until_go("a1")])), waits]);
    let home = project(&json!([parallel(json!({ "branches": branches }), json!({}))]));
    let mut running = home.start(RUN);
    wait_for(&home, "log", 1);
    running.event_of("request_opened");
    running.kill();
    // It asks, and rests.
    assert_eq!(home.finish(["sessions", "resume", "one", "--json", "--trust"], "").code, Some(3));
    let started = Instant::now();
    while !lines(&home, "log").contains(&"b1".to_owned()) {
        assert!(started.elapsed() < TIMEOUT, "{:?}", journal(&home, "one"));
        let ticked = home.finish(["tick", "--trust"], "");
        assert_eq!(ticked.code, Some(0), "{ticked:?}");
    }
}

#[test]
fn an_interrupted_program_that_is_run_again_does_not_wait_for_the_question_of_another_branch() {
    let mut again = until_go("b1");
    again["on_interrupted"] = json!("retry");
    let branches = json!([branch("a", json!([until_go("a1")])), branch("b", json!([again]))]);
    let home = project(&json!([parallel(json!({ "branches": branches }), json!({}))]));
    let mut running = home.start(RUN);
    wait_for(&home, "log", 2);
    running.event_of("effect_started");
    running.kill();
    // The question is open when the process is killed once more.
    let mut running = home.start(["sessions", "resume", "one", "--json", "--trust"]);
    running.event_of("waiting");
    wait_for(&home, "log", 3);
    running.kill();
    home.file("go", "");
    let asked = home.finish(["sessions", "resume", "one", "--json", "--trust"], "");
    assert_eq!(asked.code, Some(3), "{asked:?}");
    assert_eq!(lines(&home, "log").iter().filter(|line| *line == "b1").count(), 3, "{asked:?}");
    let done = home.finish(["sessions", "resume", "one", "--trust"], "skip\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((value(&home, "a1"), value(&home, "b1")), (json!(null), json!("b1")));
}

#[test]
fn branches_nest_and_skills_run_in_them() {
    let skill = json!({ "skill": { "skill_id": "twice", "inputs": [{ "var": "n", "type": "number" }], "outputs": ["double"], "actions": [set("multiply", json!({ "double": "{{ n * 2 }}" }))] } });
    let inner = json!({ "action_type": "parallel", "action_id": "inner", "config": { "branches": [
        branch("c", json!([set("c1", json!({ "c": 3 }))])),
        branch("d", json!([json!({ "action_type": "use_skill", "action_id": "use", "config": { "skill": "twice", "input": { "n": 21 }, "output": { "d": "double" } } })])),
    ] } });
    let outer = json!([
        branch("a", json!([inner, set("a1", json!({ "a": "{{ c + d }}" }))])),
        branch("b", json!([approval("ask")]))
    ]);
    let home = project(&json!([parallel(json!({ "branches": outer }), json!({}))]));
    fs::create_dir(home.path().join("skills")).unwrap();
    home.file("skills/twice.yaml", &skill.to_string());
    let rested = home.finish(RUN, "");
    assert_eq!(rested.code, Some(3), "{rested:?}");
    let done = home.finish(["approve", "one", "--run", "--trust"], "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((value(&home, "a"), value(&home, "c"), value(&home, "d")), (json!(45), json!(3), json!(42)));
}

#[test]
fn a_wait_in_a_branch_ends_by_itself_while_another_branch_waits_for_a_person() {
    let waits = json!({ "action_type": "wait", "action_id": "pause", "config": { "for": "1s" } });
    let home = project(&json!([parallel(
        json!({ "branches": [branch("a", json!([waits, set("a", json!({ "waited": true }))])), branch("b", json!([approval("ask")]))] }),
        json!({})
    )]));
    let mut running = home.start(RUN);
    running.event_of("variable_set");
    running.send("approve");
    running.end_input();
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(value(&home, "waited"), true);
}

#[test]
fn a_budget_lets_turns_end_and_the_session_goes_on_with_more() {
    let steps = |name: &str| {
        json!([
            set(&format!("{name}1"), json!({ format!("{name}1"): 1 })),
            set(&format!("{name}2"), json!({ format!("{name}2"): 2 })),
            set(&format!("{name}3"), json!({ format!("{name}3"): 3 }))
        ])
    };
    let actions =
        json!([parallel(json!({ "branches": [branch("a", steps("a")), branch("b", steps("b"))] }), json!({}))]);
    let home = project(&actions);
    let script = fs::read_to_string(home.path().join("s.yaml")).unwrap();
    home.file("s.yaml", &script.replace("\"session_id\":\"s\"", "\"session_id\":\"s\",\"budget\":{\"turns\":4}"));
    let stopped = home.finish(RUN, "");
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    assert_eq!(stopped.events().last().unwrap()["type"], "session_stopped");
    let done = home.finish(["sessions", "resume", "one", "--budget", "turns=50", "--trust"], "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((value(&home, "a3"), value(&home, "b3")), (json!(3), json!(3)));
}

/// Waits until the time of every open request that has one is over.
fn wait_until_due(home: &Home) {
    let listed = home.finish(["requests", "list", "--json"], "");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let times = listed["requests"].as_array().unwrap().iter().filter_map(|request| request["due_at"].as_str());
    let due: jiff::Timestamp = times.max().unwrap().parse().unwrap();
    while now() <= due {
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn a_decision_is_late_only_if_its_own_time_is_over() {
    let waits = json!({ "action_type": "wait", "action_id": "pause", "config": { "for": "500ms" } });
    let mut timed = approval("timed");
    timed["config"]["timeout"] = json!("500ms");
    timed["config"]["on_timeout"] = json!("approve");
    for (other, given, is_late) in [(&waits, "ask", false), (&timed, "ask", false), (&timed, "timed", true)] {
        let branches = json!([branch("a", json!([other])), branch("b", json!([approval("ask")]))]);
        let home = project(&json!([
            parallel(json!({ "branches": branches }), json!({})),
            set("end", json!({ "said": "{{ approval.comment }}" }))
        ]));
        assert_eq!(home.finish(RUN, "").code, Some(3), "{given} beside {other}");
        wait_until_due(&home);
        let decided = home.finish(["approve", "one", given, "--comment", "yes", "--trust"], "");
        assert_eq!(decided.code, Some(if is_late { 2 } else { 0 }), "{given} beside {other}: {decided:?}");
        if is_late {
            assert!(decided.err.contains("the time for this decision is over"), "{decided:?}");
            assert_eq!(home.finish(["approve", "one", "ask", "--comment", "yes", "--trust"], "").code, Some(0));
        }
        let done = home.finish(["sessions", "resume", "one", "--trust"], "");
        assert_eq!(done.code, Some(0), "{given} beside {other}: {done:?}");
        assert_eq!(value(&home, "said"), "yes", "{given} beside {other}");
    }
}

#[test]
fn a_decision_is_never_late_for_an_approval_that_goes_on_waiting() {
    let mut waits = approval("ask");
    waits["config"]["timeout"] = json!("1s");
    waits["config"]["on_timeout"] = json!("wait");
    let alone = json!([waits, set("end", json!({ "said": "{{ approval.comment }}" }))]);
    let branches = json!([branch("a", json!([waits])), branch("b", json!([approval("other")]))]);
    let beside = json!([
        parallel(json!({ "branches": branches }), json!({})),
        set("end", json!({ "said": "{{ approval.comment }}" }))
    ]);
    for actions in [alone, beside] {
        let home = project(&actions);
        assert_eq!(home.finish(RUN, "").code, Some(3), "{actions}");
        wait_until_due(&home);
        let decided = home.finish(["approve", "one", "ask", "--comment", "yes", "--trust"], "");
        assert_eq!(decided.code, Some(0), "{actions}: {decided:?}");
        let answered = journal(&home, "one").into_iter().filter(|event| event["type"] == "request_answered");
        let answered: Vec<Value> = answered.map(|event| event["decision"].clone()).collect();
        assert_eq!(answered, [json!("approve")], "{actions}");
    }
}

#[test]
fn every_model_call_in_branches_has_an_id_of_its_own() {
    let think = |id: &str| json!({ "action_type": "ai_think", "action_id": id, "config": { "content": id, "output": [{ "get": format!("of_{id}") }] } });
    let inner = json!({ "action_type": "parallel", "action_id": "inner", "config": { "branches": [
        branch("a", json!([think("c1")])), branch("b", json!([think("d1")]))
    ] } });
    let branches = json!([
        branch("a", json!([think("a1"), think("a2")])),
        branch("b", json!([think("b1")])),
        branch("c", json!([inner]))
    ]);
    let home = project(&json!([parallel(json!({ "branches": branches }), json!({})), think("last")]));
    let finished = home.finish(RUN.into_iter().chain(["--model", "offline"]), "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let calls = finished.events().into_iter().filter(|event| event["type"] == "model_call");
    let ids: Vec<String> = calls.map(|event| event["call_id"].as_str().unwrap().to_owned()).collect();
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (6, 6), "{ids:?}");
}
