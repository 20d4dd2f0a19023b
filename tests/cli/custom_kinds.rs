//! Tests of custom kinds through the program: skills and commands with hooks, permissions, failures, and interrupted commands.

use crate::process;
mod in_loops;

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use process::{Finished, Home, POLL_INTERVAL, Running, TIMEOUT};

const ALLOWED: &str = "[project]\nallow = [\"command\"]\n";

/// A skill that greets, one that fails, and one that saves data for a hook.
const SKILLS: [(&str, &str); 3] = [
    (
        "greeting",
        "skill:\n  skill_id: greeting\n  inputs:\n    - { var: name, type: string }\n    - { var: loud, type: boolean, value: false }\n  outputs: [line]\n  actions:\n    - action_type: set\n      action_id: make\n      config: { values: { line: \"{% if loud %}HELLO{% else %}Hello{% endif %} {{ name }}\" } }\n",
    ),
    (
        "failing",
        "skill:\n  skill_id: failing\n  actions:\n    - action_type: set\n      action_id: wrong\n      config: { values: { x: \"{{ 1 / 0 }}\" } }\n",
    ),
    (
        "closing",
        "skill:\n  skill_id: closing\n  inputs:\n    - { var: success, type: boolean }\n    - { var: kind, type: string }\n  actions:\n    - action_type: ai_say\n      action_id: tell\n      config: { content: \"after {{ kind }}: {{ success }}\", max_rounds: 1 }\n",
    ),
];

/// A project with this configuration and a script with these actions.
fn project_with(configuration: &str, actions: &str) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", configuration);
    fs::create_dir(home.path().join("skills")).unwrap();
    for (name, text) in SKILLS {
        home.file(&format!("skills/{name}.yaml"), text);
    }
    script(&home, actions);
    home
}

fn script(home: &Home, actions: &str) {
    let actions: String = actions.trim_end().lines().map(|line| format!("            {line}\n")).collect();
    let text = format!(
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{actions}"
    );
    home.file("s.yaml", &text);
}

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--trust", "--session", "one"];

fn run(home: &Home) -> Finished {
    home.finish(RUN, "")
}

/// The values of the script's variables.
fn set_variables(finished: &Finished) -> Value {
    let of_type = |event: &Value| event["type"] == "variable_set" && event["scope"] == "session";
    let events = finished.events();
    let pairs = events.iter().filter(|event| of_type(event));
    pairs.map(|event| (event["name"].as_str().unwrap().to_owned(), event["value"].clone())).collect()
}

fn outcome(finished: &Finished, action: &str) -> Value {
    let is_outcome = |event: &Value| event["type"] == "outcome" && event["location"]["action_id"] == action;
    finished.events().into_iter().rfind(is_outcome).unwrap_or_else(|| panic!("no outcome: {finished:?}"))
}

fn failure(finished: &Finished, action: &str) -> (Value, Value) {
    let outcome = outcome(finished, action);
    let found = find(&outcome, "metadata").unwrap_or_else(|| panic!("{outcome}"));
    assert_eq!(found["success"], false, "{outcome}");
    assert_eq!(found["action_id"], action, "{outcome}");
    (found["exit_reason"].clone(), found["error"].clone())
}

/// The first value with this key at any depth.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let object = value.as_object()?;
    object.get(key).or_else(|| object.values().find_map(|inner| find(inner, key)))
}

fn text(home: &Home, file: &str) -> String {
    fs::read_to_string(home.path().join(file)).unwrap_or_default()
}

#[test]
fn a_kind_that_runs_a_skill_gives_it_the_fields_and_takes_its_outputs() {
    let home = project_with(
        "[kinds.greet]\nskill = \"greeting\"\n[kinds.\"问候\"]\nskill = \"greeting\"\n",
        "- action_type: greet\n  action_id: hi\n  config: { name: Ann, output: { hello: line } }\n\
         - action_type: 问候\n  action_id: ni_hao\n  config: { name: \"{{ hello }}\", loud: true, output: [line] }\n",
    );
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(set_variables(&finished), json!({ "hello": "Hello Ann", "line": "HELLO Hello Ann" }));
}

#[test]
fn a_hook_after_the_command_leaves_the_digits_of_its_result_as_they_are() {
    let home = project_with(
        &format!(
            "{ALLOWED}[kinds.order]\ncommand = [\"/bin/sh\", \"order.sh\"]\nafter = {{ command = [\"/bin/sh\", \"after.sh\"] }}\n"
        ),
        "- action_type: order\n  action_id: get\n  config: { output: { id: id, price: price } }\n\
         - action_type: ai_say\n  action_id: tell\n  config: { content: \"{{ id }} {{ price }}\", delivery: verbatim }\n",
    );
    home.file("order.sh", "echo '{\"id\": 12345678901234567890123, \"price\": 1.10}'\n");
    home.file("after.sh", "cat > after.json\n");
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("\"12345678901234567890123 1.10\""), "{finished:?}");
    let given = text(&home, "after.json");
    assert!(given.contains("12345678901234567890123") && given.contains("1.10"), "{given}");
}

#[test]
fn a_kind_that_runs_a_command_gives_it_json_and_takes_json() {
    let home = project_with(
        &format!("{ALLOWED}[kinds.note]\ncommand = [\"/bin/sh\", \"note.sh\", \"--style\", \"$HOME `ls`\"]\n"),
        "- action_type: set\n  action_id: begin\n  config: { values: { whom: Ann, n: 3 } }\n\
         - action_type: note\n  action_id: keep\n  config:\n    text: \"{{ whom }}; $(touch evil)\"\n    number: \"{{ n }}\"\n    deep: [{ inner: \"{{ whom | upper }}\" }, 1, null]\n    output: { count: kept, args: args }\n",
    );
    home.file("note.sh", "cat > given.json\nprintf '{\"kept\": 3, \"args\": \"%s\"}' \"$*\"\n");
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let given: Value = serde_json::from_str(&text(&home, "given.json")).unwrap();
    assert_eq!(given, json!({ "text": "Ann; $(touch evil)", "number": 3, "deep": [{ "inner": "ANN" }, 1, null] }));
    let variables = set_variables(&finished);
    assert_eq!((&variables["count"], &variables["args"]), (&json!(3), &json!("--style $HOME `ls`")));
    assert!(!home.path().join("evil").exists());
}

#[test]
fn output_that_is_not_a_json_object_is_text_and_missing_outputs_are_reported() {
    let home = project_with(
        &format!("{ALLOWED}[kinds.words]\ncommand = [\"/bin/echo\", \"two words\"]\n"),
        "- action_type: words\n  action_id: w\n  config: { output: { said: stdout, other: missing } }\n",
    );
    let finished = run(&home);
    assert_eq!(set_variables(&finished), json!({ "said": "two words" }));
    let warning = finished.events().into_iter().find(|event| event["code"] == "output-missing").unwrap();
    assert!(warning["message"].as_str().unwrap().contains("did not return `missing`"), "{warning}");
}

#[test]
fn hooks_run_before_and_after_in_order_and_receive_the_result() {
    let log = |name: &str| {
        format!("[\"/bin/sh\", \"-c\", \"echo {name} >> log; cat > {name}.json; echo '{{\\\"a\\\": 1}}'\"]")
    };
    let home = project_with(
        &format!(
            "{ALLOWED}[kinds.work]\ncommand = {}\nbefore = {{ command = {} }}\nafter = {{ command = {} }}\n",
            log("itself"),
            log("before"),
            log("after")
        ),
        "- action_type: work\n  action_id: w\n  config: { x: 1, output: [a] }\n",
    );
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(text(&home, "log"), "before\nitself\nafter\n");
    let json = |file: &str| serde_json::from_str::<Value>(&text(&home, file)).unwrap();
    assert_eq!(json("before.json"), json!({ "hook": "before", "kind": "work", "inputs": { "x": 1 } }));
    assert_eq!(json("itself.json"), json!({ "x": 1 }));
    let after = json!({ "hook": "after", "kind": "work", "inputs": { "x": 1 }, "success": true, "result": { "a": 1 }, "error": null });
    assert_eq!(json("after.json"), after);
    let kinds: Vec<String> =
        finished.events().iter().filter_map(|event| Some(event["type"].as_str()?.to_owned())).collect();
    let effects: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with("effect_")).collect();
    assert_eq!(effects.len(), 6, "each command is announced and closed: {kinds:?}");
}

#[test]
fn a_failing_before_hook_skips_the_action_and_after_hooks_still_run() {
    let home = project_with(
        &format!(
            "{ALLOWED}[kinds.work]\ncommand = [\"/bin/sh\", \"-c\", \"echo itself >> log\"]\nbefore = {{ command = [\"/bin/sh\", \"-c\", \"exit 7\"] }}\nafter = {{ skill = \"closing\" }}\n"
        ),
        "- action_type: work\n  action_id: w\n  on_exit: { failed: next }\n- action_type: ai_say\n  action_id: last\n  config: { content: still here, max_rounds: 1 }\n",
    );
    let finished = home.finish(RUN, "{\"user\": \"ok\"}\n{\"user\": \"ok\"}\n{\"user\": \"ok\"}\n");
    let (reason, error) = failure(&finished, "w");
    assert_eq!((reason, error), (json!("failed"), json!("the command before `work` ended with exit code 7")));
    assert_eq!(text(&home, "log"), "");
    assert!(finished.out.contains("after work: false") && finished.out.contains("still here"), "{}", finished.out);
}

#[test]
fn a_failure_of_any_part_fails_the_session_where_no_route_is_written_for_it() {
    let long_command = "/bin/sh\", \"-c\", \"echo begun >> log; sleep 1000";
    let table = [
        (
            "command = [\"/bin/sh\", \"-c\", \"echo secret words >&2; exit 3\"]",
            "the command of `work` ended with exit code 3",
        ),
        ("command = [\"/bin/sh\", \"-c\", \"kill -9 $$\"]", "the command of `work` was terminated by signal 9"),
        (
            &format!("command = [\"{long_command}\"]\ntimeout = \"200ms\""),
            "the command of `work` took longer than 200ms and was stopped",
        ),
        (
            "command = [\"no-such-program\"]",
            "the command of `work` could not be started: the program `no-such-program` was not found",
        ),
        ("skill = \"failing\"", "the skill `failing` ended with an error: "),
        ("command = [\"true\"]\nafter = { command = [\"false\"] }", "the command after `work` ended with exit code 1"),
    ];
    for (definition, message) in table {
        let home =
            project_with(&format!("{ALLOWED}[kinds.work]\n{definition}\n"), "- action_type: work\n  action_id: w\n");
        let finished = run(&home);
        assert_eq!(finished.code, Some(1), "{definition}: {finished:?}");
        let (reason, error) = failure(&finished, "w");
        assert!(reason == "failed" && error.as_str().unwrap().starts_with(message), "{definition}: {error}");
        assert!(!finished.out.contains("secret words") && !finished.err.contains("secret words"), "{finished:?}");
    }
}

#[test]
fn too_much_output_is_cut_and_forked_processes_are_not_awaited() {
    let home = project_with(
        &format!(
            "{ALLOWED}[kinds.flood]\ncommand = [\"/bin/sh\", \"-c\", \"head -c 5000000 /dev/zero | tr '\\\\\\\\0' x\"]\n\
             [kinds.fork]\ncommand = [\"/bin/sh\", \"-c\", \"sleep 1000 & echo '{{\\\"done\\\": true}}'\"]\n"
        ),
        "- action_type: flood\n  action_id: f\n  config: { output: { much: stdout, cut: truncated } }\n\
         - action_type: fork\n  action_id: k\n  config: { output: [done] }\n",
    );
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let variables = set_variables(&finished);
    assert_eq!((&variables["cut"], &variables["done"]), (&json!(true), &json!(true)));
    assert_eq!(variables["much"].as_str().unwrap().len(), 256 * 1024);
}

/// A project with a kind that adds a line to `count` and then waits for the file `go`, and a script that uses it and then says something.
fn counting_project(more: &str) -> Home {
    let home = project_with(
        &format!("{ALLOWED}[kinds.count]\ncommand = [\"/bin/sh\", \"count.sh\"]\n"),
        &format!(
            "- action_type: count\n  action_id: c\n{more}  config: {{ output: [n] }}\n- action_type: ai_say\n  action_id: last\n  config: {{ content: \"n is {{{{ n }}}}\", max_rounds: 1 }}\n"
        ),
    );
    home.file("count.sh", "echo line >> count\nwhile [ ! -e go ]; do sleep 0.01; done\necho '{\"n\": 5}'\n");
    home
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    while fs::read_to_string(path).unwrap_or_default().is_empty() {
        assert!(Instant::now() < deadline, "{} does not come", path.display());
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Kills the program while its command runs.
fn kill_during_command(home: &Home) {
    let mut running = home.start(RUN);
    running.event_of("effect_started");
    wait_for(&home.path().join("count"));
    running.kill();
    home.file("go", "");
}

fn resumed(home: &Home) -> Running {
    home.start(["sessions", "resume", "one", "--json", "--trust"])
}

#[test]
fn a_command_has_its_whole_input_even_if_the_program_is_killed_before_it_reads() {
    let home = counting_project("");
    // More than a pipe takes.
    let long = "长".repeat(10_000);
    let fields: String = (0..10).map(|number| format!("text_{number}: {long}, ")).collect();
    script(&home, &format!("- action_type: count\n  action_id: c\n  config: {{ {fields} output: [n] }}\n"));
    let command = "echo line > count\nwhile [ ! -e go ]; do sleep 0.01; done\ncat > given\necho end > done\n";
    home.file("count.sh", command);
    kill_during_command(&home);
    wait_for(&home.path().join("done"));
    let given: Value = serde_json::from_str(&text(&home, "given")).unwrap();
    assert_eq!(find(&given, "text_9"), Some(&json!(long)));
}

#[test]
fn an_interrupted_command_is_never_repeated_without_confirmation() {
    let table = [("again", 2, "n is 5", 0), ("跳过", 1, "n is ", 0), ("fail", 1, "was interrupted", 1)];
    for (choice, lines, expected, code) in table {
        let home = counting_project("");
        kill_during_command(&home);
        let mut running = resumed(&home);
        assert_eq!(running.event_of("waiting")["for"], "interrupted_effect");
        assert!(running.send("{\"user\": \"perhaps\"}"));
        assert_eq!(running.event_of("waiting")["for"], "interrupted_effect", "what is no such word decides nothing");
        assert!(running.send(&json!({ "user": choice }).to_string()));
        if code == 0 {
            running.event_of("message");
            running.send("{\"user\": \"ok\"}");
        }
        let finished = running.finish();
        let export = home.export("one").to_string();
        assert!(export.contains(expected), "{choice}: {export}");
        assert_eq!(text(&home, "count").lines().count(), lines, "{choice}");
        assert_eq!(finished.code.map(|code| code.min(1)), Some(code), "{choice}: {finished:?}");
    }
}

#[test]
fn on_interrupted_decides_about_an_interrupted_command() {
    for (choice, lines) in [("retry", 2), ("skip", 1), ("fail", 1)] {
        let home = counting_project(&format!("  on_interrupted: {choice}\n"));
        kill_during_command(&home);
        let mut running = resumed(&home);
        running.end_input();
        let _ = running.finish();
        assert_eq!(text(&home, "count").lines().count(), lines, "{choice}");
        let export = home.export("one").to_string();
        assert_eq!(export.contains("was interrupted"), choice == "fail", "{choice}: {export}");
    }
}

#[test]
fn commands_need_permission_and_trust_before_the_session_starts() {
    let definition = "[kinds.work]\ncommand = [\"/bin/sh\", \"-c\", \"echo ran >> log\"]\n";
    let actions = "- action_type: ai_say\n  action_id: hello\n  config: { content: hello }\n- action_type: work\n  action_id: w\n";
    for (configuration, arguments, help) in [
        (definition.to_owned(), &RUN[..], "allow = [\"command\"]"),
        (format!("{ALLOWED}{definition}"), &["run", "s.yaml", "--session", "one"][..], "bcc-script trust"),
    ] {
        let home = project_with(&configuration, actions);
        let finished = home.finish(arguments, "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.err.contains(help) || finished.out.contains(&help.replace('"', "\\\"")), "{finished:?}");
        assert!(!home.store().exists() && text(&home, "log").is_empty(), "nothing was begun");
    }
    // A kind that runs a skill needs neither permission nor trust.
    let home = project_with(
        "[kinds.greet]\nskill = \"greeting\"\n",
        "- action_type: greet\n  action_id: hi\n  config: { name: Ann }\n",
    );
    assert_eq!(home.finish(["run", "s.yaml"], "").code, Some(0));
}

#[test]
fn a_command_gets_only_the_usual_variables_and_those_that_its_kind_names() {
    let echo = "command = [\"/bin/sh\", \"-c\", \"echo $LC_ALL ${SHOP_KEY:-none} ${DATABASE_URL:-none} ${AWS_PROFILE:-none}\"]";
    let home = project_with(
        &format!(
            "{ALLOWED}[models.default]\nprovider = \"openai\"\nmodel = \"x\"\napi_key_env = \"SHOP_KEY\"\n\
             [kinds.look]\n{echo}\n[kinds.look_more]\n{echo}\nenv = [\"AWS_PROFILE\"]\n"
        ),
        "- action_type: look\n  action_id: l\n  config: { output: { saw: stdout } }\n\
         - action_type: look_more\n  action_id: m\n  config: { output: { more: stdout } }\n",
    );
    let mut command = home.command(RUN);
    command.args(["--model", "offline"]);
    let given = [("SHOP_KEY", "sk-shop"), ("DATABASE_URL", "x"), ("AWS_PROFILE", "work"), ("LC_ALL", "C")];
    command.envs(given);
    let finished = Running::start(command).finish();
    let expected = json!({ "saw": "C none none none", "more": "C none none work" });
    assert_eq!(set_variables(&finished), expected, "{finished:?}");
}

#[test]
fn a_session_continues_with_the_kinds_that_it_started_with() {
    let home = project_with(
        &format!("{ALLOWED}[kinds.look]\ncommand = [\"/bin/echo\", \"as it was\"]\n"),
        "- action_type: ai_ask\n  action_id: ask\n  config: { content: well?, max_rounds: 1 }\n- action_type: look\n  action_id: l\n  config: { output: { saw: stdout } }\n",
    );
    let mut running = home.start(RUN);
    running.event_of("waiting");
    running.kill();
    home.file("bcc-script.toml", &format!("{ALLOWED}[kinds.look]\ncommand = [\"/bin/echo\", \"as it is now\"]\n"));
    let finished =
        home.finish(["sessions", "resume", "one", "--json", "--trust"], "{\"user\": \"fine\"}\n{\"user\": \"fine\"}\n");
    assert_eq!(set_variables(&finished)["saw"], "as it was", "{finished:?}");
    // Trust is requested again after the file was changed, and a kind without permission does not run.
    let home = project_with(
        &format!("{ALLOWED}[kinds.look]\ncommand = [\"/bin/echo\"]\n"),
        "- action_type: ai_ask\n  action_id: ask\n  config: { content: well?, max_rounds: 1 }\n- action_type: look\n  action_id: l\n",
    );
    let mut running = home.start(RUN);
    running.event_of("waiting");
    running.kill();
    let finished = home.finish(["sessions", "resume", "one"], "fine\n");
    assert_eq!(finished.code, Some(2), "{finished:?}");
}

fn validated(home: &Home) -> String {
    let finished = home.finish(["validate", "."], "");
    finished.out + &finished.err
}

#[test]
fn the_check_knows_the_kinds_of_the_project() {
    let kinds = "[kinds.greet]\nskill = \"greeting\"\n[kinds.lost]\nskill = \"greetin\"\n[kinds.around]\nskill = \"greeting\"\nbefore = { skill = \"nowhere\" }\n";
    let table = [
        ("- action_type: gret\n  action_id: a\n", "did you mean `greet`?"),
        ("- action_type: elsewhere\n  action_id: a\n", "`around`, `greet`, `lost`"),
        ("- action_type: greet\n  action_id: a\n", "requires the input `name`, which is missing here"),
        ("- action_type: greet\n  action_id: a\n", "add `name: …` under `config:`"),
        ("- action_type: greet\n  action_id: a\n  config: { nam: Ann }\n", "has no input `nam`"),
        ("- action_type: greet\n  action_id: a\n  config: { name: Ann, loud: very }\n", "declared as boolean"),
        ("- action_type: greet\n  action_id: a\n  config: { name: Ann, output: [lin] }\n", "has no output `lin`"),
        ("- action_type: greet\n  action_id: a\n  config: { name: \"{{ nobody }}\" }\n", "`nobody`"),
        (
            "- action_type: lost\n  action_id: a\n",
            "the action type `lost` runs the skill `greetin`, which does not exist",
        ),
        ("- action_type: lost\n  action_id: a\n", "did you mean `greeting`? The name is set in bcc-script.toml"),
        (
            "- action_type: around\n  action_id: a\n  config: { name: Ann }\n",
            "the action type `around` runs the skill `nowhere`",
        ),
        ("- action_type: greet\n  action_id: a\n  config: { name: Ann }\n  on_exit: { rejected: end }\n", "rejected"),
    ];
    for (actions, expected) in table {
        let home = project_with(kinds, actions);
        let report = validated(&home);
        assert!(report.contains(expected), "{actions}\n{report}");
    }
    let valid_actions = "- action_type: greet\n  action_id: a\n  config: { name: Ann, x-mine: 1, output: { b: line } }\n  on_exit: { failed: next }\n- action_type: ai_say\n  action_id: say\n  config: { content: \"{{ b }}\" }\n";
    let report = validated(&project_with("[kinds.greet]\nskill = \"greeting\"\n", valid_actions));
    assert!(!report.contains("s.yaml:"), "{report}");
}

#[test]
fn an_invalid_table_is_reported_with_its_place() {
    let home = project_with(
        "[kinds.ai_ask]\nskill = \"greeting\"\n[kinds.a]\n",
        "- action_type: ai_say\n  action_id: a\n  config: { content: hi }\n",
    );
    let report = validated(&home);
    assert!(report.contains("action type `ai_ask`: the name is already used by a built-in action type"), "{report}");
    assert!(
        report.contains("action type `a`: neither a skill nor a command is specified")
            && report.contains("bcc-script.toml:3:"),
        "{report}"
    );
    let finished = home.finish(["run", "s.yaml"], "");
    assert!(finished.code == Some(2) && finished.err.contains("line 3"), "{finished:?}");
}

#[test]
fn graph_doctor_and_the_schema_know_them() {
    let home = project_with(
        "[kinds.greet]\nskill = \"greeting\"\ndescription = \"Says hello.\"\n[kinds.\"记录\"]\ncommand = [\"true\"]\n",
        "- action_type: greet\n  action_id: hi\n  config: { name: Ann }\n",
    );
    assert!(home.finish(["graph", "s.yaml"], "").out.contains("greet"));
    let doctor = home.finish(["doctor"], "").out;
    assert!(
        doctor.contains("run skills: `greet`") && doctor.contains("run commands: `记录`; the project does not allow"),
        "{doctor}"
    );
    let schema = home.finish(["schema", "script", "--project", "."], "").out;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let choices = schema.to_string();
    assert!(choices.contains("Says hello.") && choices.contains("记录"), "{choices}");
    let plain = home.finish(["schema", "script"], "").out;
    assert!(!plain.contains("Says hello."), "without `--project` it is that of the language");
    assert!(home.finish(["schema", "greet", "--project", "."], "").out.contains("Says hello."));
}

#[test]
fn a_conversation_test_runs_them_as_the_script_does() {
    let home = project_with(
        &format!("{ALLOWED}[kinds.look]\ncommand = [\"/bin/echo\", \"seen\"]\n"),
        "- action_type: look\n  action_id: l\n  config: { output: { saw: stdout } }\n",
    );
    home.file(
        "s.test.yaml",
        "test: it looks\nscript: s.yaml\ndialogue:\n  - expect: { variables: { saw: seen }, status: completed }\n",
    );
    let rejected = home.finish(["test", "s.test.yaml"], "");
    assert!(rejected.code != Some(0) && (rejected.out + &rejected.err).contains("bcc-script trust"));
    let finished = home.finish(["test", "s.test.yaml", "--trust"], "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn the_example_of_the_page_runs() {
    let page = fs::read_to_string(Path::new(crate::ROOT).join("docs/custom-kinds.md")).unwrap();
    let block = |prefix: &str, nth: usize| page.split(prefix).nth(nth).unwrap().split("```").next().unwrap().to_owned();
    let home = Home::new();
    fs::create_dir(home.path().join("skills")).unwrap();
    home.file("bcc-script.toml", &block("```toml\n", 1));
    home.file("skills/tidying.yaml", &block("```yaml\n", 1));
    home.file("count.sh", &block("```text\n", 2));
    home.file("s.yaml", &block("```text\n", 1));
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(set_variables(&finished), json!({ "tidy_name": "Ann Lee", "letters": 6 }));
}
