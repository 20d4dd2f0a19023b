//! Tests of `templates list | show | diff | new | check` through the program, in empty, valid and broken projects.

mod copies_and_uses;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::pages::Page;
use crate::process::{Finished, Home};

const SCRIPT: &str = "\
session:
  session_id: visit
  template_scheme: gentle
  declare: [{ var: mood }]
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - action_type: ai_ask
              action_id: ask
              config: { content: How are you?, version: 2 }
";

const ENGLISH_ASK: &str = include_str!("../../_system/config/custom/english/ai_ask_v1.md");
const DEFAULT_ASK: &str = include_str!("../../_system/config/default/ai_ask_v1.md");

fn run(home: &Home, arguments: &str) -> Finished {
    home.finish(std::iter::once("templates").chain(arguments.split_whitespace()), "")
}

fn listed(home: &Home, arguments: &str) -> Value {
    let finished = run(home, &format!("list --json {arguments}"));
    serde_json::from_str(&finished.out).unwrap_or_else(|_| panic!("no JSON: {}\n{}", finished.out, finished.err))
}

/// A template of a scheme in the output of `list --json`.
fn template<'v>(document: &'v Value, scheme: &str, file: &str) -> &'v Value {
    let find = |list: &'v Value, key: &str, name: &str| list.as_array().unwrap().iter().find(|one| one[key] == name);
    let scheme = find(&document["schemes"], "name", scheme).unwrap_or_else(|| panic!("no {scheme}: {document}"));
    find(&scheme["templates"], "file", file).unwrap_or_else(|| panic!("no {file}: {scheme}"))
}

fn reasons(document: &Value, kind: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    document[kind].as_array().unwrap().iter().map(|one| (text(&one["path"]), text(&one["why"]))).collect()
}

/// The names of the files below a folder.
fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_page_for_designers_shows_what_is_printed() {
    let home = Home::new();
    let program = Path::new(env!("CARGO_BIN_EXE_bcc-script")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for block in Page::of("docs/templates.md").blocks_in(&["shell-session"]) {
        for shown in block.text.split("$ ").filter(|shown| !shown.is_empty()) {
            let (command, expected) = shown.split_once('\n').unwrap();
            let mut shell = Command::new("sh");
            // As on a terminal, stdout and stderr go to the same place.
            shell.args(["-c", &format!("{{ {command}\n}} 2>&1")]).current_dir(home.path());
            let output = shell.env_clear().envs(home.variables()).env("PATH", &path).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "line {}: {command}", block.line);
            commands += 1;
        }
    }
    assert!(commands >= 12, "only {commands}");
}

#[test]
fn each_scheme_says_which_layer_serves_a_template_and_what_that_overrides() {
    let home = Home::new();
    home.put("_system/config/default/ai_ask_v1.md", DEFAULT_ASK);
    home.put("_system/config/custom/english/ai_ask_v1.md", ENGLISH_ASK);
    home.put("_system/config/custom/温和/ai_say_v1.md", "{{ task }}");
    let document = listed(&home, "");
    let names: Vec<&str> =
        document["schemes"].as_array().unwrap().iter().map(|scheme| scheme["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "chinese", "english", "温和"]);
    let table = [
        ("default", "ai_ask_v1.md", "default", 1),
        ("default", "ai_say_v1.md", "built_in_default", 0),
        ("chinese", "ai_ask_v1.md", "built_in_scheme", 2),
        ("english", "ai_ask_v1.md", "scheme", 3),
        ("english", "ai_say_v1.md", "built_in_scheme", 1),
        ("温和", "ai_ask_v1.md", "default", 1),
        ("温和", "ai_say_v1.md", "scheme", 1),
        ("温和", "persona_v1.md", "built_in_default", 0),
    ];
    for (scheme, file, layer, overridden) in table {
        let template = template(&document, scheme, file);
        assert_eq!(template["layer"], layer, "{scheme} {file}");
        assert_eq!(template["overrides"].as_array().unwrap().len(), overridden, "{scheme} {file}");
    }
    insta::assert_snapshot!(run(&home, "list").out);
    let one = run(&home, "list --scheme 温和");
    assert_eq!(one.code, Some(0));
    insta::assert_snapshot!(one.out);
}

#[test]
fn unused_templates_are_reported_only_where_it_is_certain() {
    let home = Home::new();
    home.put("scripts/a.yaml", SCRIPT);
    for file in ["ai_ask_v1.md", "ai_ask_v2.md", "ai_ask_v3.md", "ai_say_v2.md"] {
        home.put(&format!("_system/config/custom/gentle/{file}"), ENGLISH_ASK);
    }
    home.put("_system/config/custom/gentle/ai_think_v1.md", "{% include 'default:part.md' %}");
    home.put("_system/config/default/part.md", "{{ task }}");
    home.put("_system/config/default/alone.md", "{{ task }}");
    home.put("_system/config/default/ai-ask.md", "{{ task }}");
    home.put("_system/config/custom/other/ai_ask_v1.md", "{{ task }}");
    let unused = reasons(&listed(&home, ""), "unused");
    let expected = [
        ("custom/gentle/ai_ask_v3.md", "no script of this project uses version 3 of `ai_ask`"),
        ("custom/gentle/ai_say_v2.md", "no script of this project uses version 2 of `ai_say`"),
        ("default/ai-ask.md", "did you mean `ai_ask_v1.md`?"),
        ("default/alone.md", "no other template includes it"),
    ];
    assert_eq!(unused.len(), expected.len(), "{unused:?}");
    for ((path, text), (file, reason)) in unused.iter().zip(expected) {
        assert_eq!(path, &format!("_system/config/{file}"));
        assert!(text.contains(reason), "{path}: {text}");
    }
    let output = run(&home, "list").out;
    assert!(
        output.contains("scheme `other`: not used by any script") && !output.contains("scheme `gentle`:"),
        "{output}"
    );
    // A script that cannot be read may use any template.
    home.put("scripts/torn.yaml", [0xff, 0xfe, b'x']);
    let unused = reasons(&listed(&home, ""), "unused");
    assert!(!unused.iter().any(|(_, text)| text.contains("no script")), "{unused:?}");
    assert!(!run(&home, "list").out.contains("scheme `other`"));
    // A computed template name may be any name.
    home.put("_system/config/default/ai_say_v1.md", "{% include task %}");
    let unused = reasons(&listed(&home, ""), "unused");
    assert!(!unused.iter().any(|(path, _)| path.ends_with("alone.md")), "{unused:?}");
}

#[test]
fn every_error_is_reported_and_all_other_templates_are_listed() {
    let home = Home::new();
    let gentle = "_system/config/custom/gentle";
    home.put(&format!("{gentle}/ai_ask_v1.md"), vec![b'x'; 10 * 1024 * 1024]);
    home.put(&format!("{gentle}/ai_say_v1.md"), [0xff, 0xfe]);
    home.put(&format!("{gentle}/persona_v1.md"), "{% include 'persona_v1.md' %}");
    home.put(&format!("{gentle}/ai_ask_monitor_v1.md"), "{% extends 'ai_ask_monitor_v1.md' %}");
    home.put(&format!("{gentle}/ai_say_monitor_v1.md"), ENGLISH_ASK);
    fs::create_dir(home.path().join(format!("{gentle}/ai_think_v1.md"))).unwrap();
    let outside_directory = tempfile::tempdir().unwrap();
    fs::write(outside_directory.path().join("ai_ask_v2.md"), "{{ task }}").unwrap();
    symlink(outside_directory.path().join("ai_ask_v2.md"), home.path().join(format!("{gentle}/ai_ask_v2.md"))).unwrap();
    symlink("nowhere", home.path().join(format!("{gentle}/ai_say_v2.md"))).unwrap();
    for scheme in ["default", "a b", "empty"] {
        fs::create_dir(home.path().join(format!("_system/config/custom/{scheme}"))).unwrap();
    }
    let finished = run(&home, "list");
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.out.contains(&format!("{gentle}/ai_say_monitor_v1.md")) && finished.out.contains("topic_orchestrator")
    );
    let table = [
        (format!("{gentle}/ai_ask_v1.md"), "larger than 1048576 bytes"),
        (format!("{gentle}/ai_say_v1.md"), "not UTF-8"),
        (format!("{gentle}/ai_think_v1.md"), "it is a folder"),
        (format!("{gentle}/persona_v1.md"), "line 1: `persona_v1.md` is this template itself"),
        (format!("{gentle}/ai_ask_monitor_v1.md"), "line 1: `ai_ask_monitor_v1.md` extends itself"),
        (format!("{gentle}/ai_ask_v2.md"), "it is a link that leads out of the project"),
        (format!("{gentle}/ai_say_v2.md"), "a broken link"),
        ("_system/config/custom/default".to_owned(), "it is ignored"),
        ("_system/config/custom/a b".to_owned(), "this cannot be the name of a scheme"),
        ("_system/config/custom/empty".to_owned(), "contains no template"),
    ];
    let errors = reasons(&listed(&home, ""), "faults");
    for (path, reason) in &table {
        let problem_line = finished.err.lines().find(|line| line.starts_with(&format!("{path}: ")));
        assert!(problem_line.is_some_and(|line| line.contains(reason)), "{path}: {reason}\n{}", finished.err);
        assert!(errors.iter().any(|(one, message)| one == path && message.contains(reason)), "{path}: {errors:?}");
    }
    assert_eq!(errors.len(), table.len(), "{errors:?}");
    for (arguments, reason) in [
        ("show ai_ask --scheme gentle", "larger than"),
        ("show ai_say --scheme gentle", "not UTF-8"),
        ("diff ai_think --scheme gentle", "it is a folder"),
        ("new copy --from gentle", "cannot be read"),
    ] {
        let finished = run(&home, arguments);
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""), "{arguments}");
        assert!(finished.err.contains(reason), "{arguments}: {}", finished.err);
    }
    let all = run(&home, "diff --scheme gentle");
    assert_eq!(all.code, Some(2));
    assert!(all.out.contains("+++ _system/config/custom/gentle/ai_say_monitor_v1.md") && all.err.contains("not UTF-8"));
}

#[test]
fn an_unreadable_template_is_reported() {
    let home = Home::new();
    home.put("_system/config/default/ai_ask_v1.md", "{{ task }}");
    let path = home.path().join("_system/config/default/ai_ask_v1.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read the file, so the test does not apply.
    if fs::read(&path).is_err() {
        let finished = run(&home, "list");
        assert_eq!(finished.code, Some(1));
        assert!(finished.err.contains("_system/config/default/ai_ask_v1.md: "), "{}", finished.err);
    }
}

#[test]
fn a_project_without_a_folder_or_with_a_broken_configuration_is_listed_all_the_same() {
    let home = Home::new();
    assert_eq!(run(&home, "list").code, Some(0));
    home.put("bcc-script.toml", "[project]\nscheme = \"gentel\"\n");
    let finished = run(&home, "list");
    assert!(
        finished.out.contains("topic_orchestrator") && finished.err.contains("the scheme `gentel`"),
        "{}",
        finished.err
    );
    assert_eq!(run(&home, "show ai_ask").code, Some(2));
    home.put("bcc-script.toml", "[project\n");
    let finished = run(&home, "list");
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.out.contains("topic_orchestrator") && finished.err.contains("bcc-script.toml"),
        "{}",
        finished.err
    );
    home.put("_system", "");
    let finished = run(&home, "list");
    assert!(
        finished.out.contains("topic_orchestrator") && finished.err.contains("_system/config/default"),
        "{}",
        finished.err
    );
    let finished = run(&home, "new gentle");
    assert!(finished.err.contains("`_system` is a file"), "{}", finished.err);
    assert_eq!(run(&home, "list --project nowhere").code, Some(2));
}

#[test]
fn show_prints_every_byte_and_the_source_separately() {
    let home = Home::new();
    let odd = "\u{feff}---\r\ndescription: 奇\r\n---\r\n{{ task }}\r\nno end";
    home.put("_system/config/custom/gentle/ai_ask_v1.md", odd);
    home.put("_system/config/custom/gentle/safety.md", "be safe");
    let shown = |name: &str| {
        let arguments = ["templates", "show"].into_iter().chain(name.split_whitespace());
        let output = home.command(arguments).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (text, note) = shown("ai_ask --scheme gentle");
    assert_eq!(text, odd);
    assert_eq!(
        note,
        "_system/config/custom/gentle/ai_ask_v1.md, as used by the scheme `gentle`; it overrides \
         builtin:_system/config/default/ai_ask_v1.md\n"
    );
    for (name, text) in [
        ("ai_ask --scheme english", ENGLISH_ASK),
        ("ai_ask_v1", DEFAULT_ASK),
        ("ai_ask_v1.md --scheme chinese", DEFAULT_ASK),
        ("ai_ask --version 1", DEFAULT_ASK),
        ("default:ai_ask --scheme gentle", DEFAULT_ASK),
        ("safety --scheme gentle", "be safe"),
        ("safety.md --scheme gentle", "be safe"),
    ] {
        assert_eq!(shown(name).0, text, "{name}");
    }
    for (name, help) in [
        ("ai_aks", "did you mean `ai_ask`?"),
        ("safty.md --scheme gentle", "did you mean `safety`"),
        ("ai_ask --version 7", "available versions: 1"),
        ("ai_ask_v7", "available versions: 1"),
        ("ai_ask_v1 --version 7", "remove one of the two"),
        ("weather", "`bcc-script templates list --scheme default`"),
        ("ai_ask --scheme gentel", "did you mean `gentle`?"),
        ("ai_ask --scheme ..", "without a folder"),
    ] {
        let finished = run(&home, &format!("show {name}"));
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""), "{name}");
        assert!(finished.err.contains(help), "{name}: {}", finished.err);
    }
    home.put("bcc-script.toml", "[project]\nscheme = \"english\"\n");
    assert_eq!(run(&home, "show ai_ask").out, ENGLISH_ASK);
    assert_eq!(run(&home, "show ai_ask --scheme default").out, DEFAULT_ASK);
}

#[test]
fn diff_ends_as_diff_does_and_its_output_is_a_patch() {
    let home = Home::new();
    assert_eq!(run(&home, "new gentle --from english").code, Some(0));
    let same = run(&home, "diff --scheme gentle --against english");
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""));
    assert_eq!(run(&home, "compare --scheme gentle --against english").code, Some(0), "another word for it");
    let file = "_system/config/custom/gentle/ai_ask_v1.md";
    let changed = ENGLISH_ASK.replacen("# Role\n", "# Your role\n", 1);
    home.put(file, &changed);
    let finished = run(&home, "diff ai_ask --scheme gentle --against english");
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.out);
    assert_eq!(run(&home, "diff --scheme gentle --against english").out, finished.out, "nothing else differs");
    assert_eq!(run(&home, "diff ai_say --scheme gentle --against english").code, Some(0));
    assert_eq!(run(&home, "diff ai_say --scheme gentle").code, Some(1), "the default one is Chinese");
    // For a built-in scheme, the diff shows the changes of the project.
    home.put("_system/config/custom/english/ai_ask_v1.md", &changed);
    let own = run(&home, "diff --scheme english --against-built-in");
    assert_eq!((own.code, own.out.matches("# Your role").count()), (Some(1), 1));
    home.put("_system/config/default/ai_ask_v1.md", DEFAULT_ASK.replacen('#', "##", 1));
    assert_eq!(run(&home, "diff").out.matches("+++ _system/config/default/ai_ask_v1.md").count(), 1);
    // A file that only one of the two schemes has.
    home.put("_system/config/custom/gentle/ai_ask_v2.md", "two\n");
    let added = run(&home, "diff ai_ask_v2 --scheme gentle");
    assert_eq!(added.out, "--- /dev/null\n+++ _system/config/custom/gentle/ai_ask_v2.md\n@@ -0,0 +1 @@\n+two\n");
    assert_eq!(run(&home, "diff ai_ask_v2 --scheme english --against gentle").code, Some(1));
    for wrong in ["diff ai_aks --scheme gentle", "diff --scheme nowhere", "diff --scheme gentle --against nowhere"] {
        assert_eq!(run(&home, wrong).code, Some(2), "{wrong}");
    }
}

#[test]
fn diff_reports_fields_and_names_that_only_the_other_scheme_uses() {
    let home = Home::new();
    let file = "_system/config/custom/gentle/ai_ask_v1.md";
    home.put(file, ENGLISH_ASK.replace("BRIEF", "SHORT").replace("topic_goal", "phase_goal"));
    let stderr = run(&home, "diff ai_ask --scheme gentle --against english").err;
    assert!(stderr.contains("these fields of the reply, but `gentle` does not: `BRIEF`"), "{stderr}");
    assert!(stderr.contains("uses these names, but `gentle` does not: `topic_goal`"), "{stderr}");
    home.put(file, ENGLISH_ASK.replace('\n', "\r\n"));
    let finished = run(&home, "diff ai_ask --scheme gentle --against english");
    assert_eq!((finished.code, finished.out.as_str()), (Some(1), ""));
    assert!(finished.err.contains("CR LF"), "{}", finished.err);
    home.put(file, "{% if task %}");
    let stderr = run(&home, "diff ai_ask --scheme gentle --against english").err;
    assert!(stderr.contains("has an error") && !stderr.contains("these fields"), "{stderr}");
}

#[test]
fn new_copies_the_requested_templates_overwrites_nothing_and_prints_the_next_steps() {
    let home = Home::new();
    let finished = run(&home, "new gentle ai_ask persona_v1.md --from english");
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.out, "_system/config/custom/gentle/ai_ask_v1.md\n_system/config/custom/gentle/persona_v1.md\n");
    assert!(finished.err.contains("`template_scheme: gentle`") && finished.err.contains("--against english"));
    assert!(finished.err.contains("come from the default scheme, not from `english`"), "{}", finished.err);
    home.put("_system/config/custom/gentle/ai_ask_v1.md", "mine");
    let finished = run(&home, "new gentle --from english");
    assert_eq!(finished.out.lines().count(), 14);
    assert!(finished.err.contains("not changed: ai_ask_v1.md, persona_v1.md"), "{}", finished.err);
    let content = fs::read_to_string(home.path().join("_system/config/custom/gentle/ai_ask_v1.md")).unwrap();
    assert_eq!(content, "mine");
    assert!(run(&home, "new gentle").err.contains("nothing was written"));
    for name in ["..", "../x", "/abs", "a/b", "default", "NUL", "Gentle", "a.b"] {
        let finished = run(&home, &format!("new {name}"));
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""), "{name}");
        assert!(finished.err.contains("error: ") && finished.err.contains("help: "), "{name}: {}", finished.err);
    }
    assert_eq!(home.finish(["templates", "new", ""], "").code, Some(2));
    assert_eq!(entries(&home.path().join("_system/config/custom")), ["gentle"]);
    // A project that uses the scheme already gets no hint how to select it.
    home.put("bcc-script.toml", "[project]\nscheme = \"calm\"\n");
    assert!(!run(&home, "new calm").err.contains("template_scheme"));
}

#[test]
fn check_finds_what_validate_finds_in_templates_and_nothing_else() {
    let home = Home::new();
    let empty = run(&home, "check");
    assert_eq!(empty.code, Some(2));
    assert!(empty.err.contains("no templates of its own"), "{}", empty.err);
    home.put("scripts/a.yaml", SCRIPT.replace("session_id: visit", "session_id: visit\n  oops: 1"));
    let known = ENGLISH_ASK.replace("{{ user }}", "{{ user }} {{ mood }}");
    home.put("_system/config/custom/gentle/ai_ask_v2.md", known);
    let clean = run(&home, "check");
    assert_eq!((clean.code, clean.out.as_str(), clean.err.as_str()), (Some(0), "", "1 file, nothing to report\n"));
    home.put("_system/config/custom/gentle/ai_say_v1.md", "{% if %}");
    home.put("_system/config/custom/other/ai_say_v1.md", "{{ tsk }} {{ output_list }}");
    let files = |arguments: &str| {
        let finished = run(&home, &format!("check --format json {arguments}"));
        let document: Value = serde_json::from_str(&finished.out).unwrap();
        let found = document["diagnostics"].as_array().unwrap().clone();
        let mut files: Vec<String> = found.iter().map(|found| found["file"].as_str().unwrap().to_owned()).collect();
        files.dedup();
        (finished.code, files)
    };
    let (gentle, other) = ("_system/config/custom/gentle/ai_say_v1.md", "_system/config/custom/other/ai_say_v1.md");
    assert_eq!(files(""), (Some(1), vec![gentle.to_owned(), other.to_owned()]));
    assert_eq!(files("--scheme gentle"), (Some(1), vec![gentle.to_owned()]));
    assert_eq!(files("--scheme other").1, vec![other.to_owned()]);
    assert_eq!(files("--scheme english"), (Some(0), vec![]));
    assert_eq!(run(&home, "check --scheme nowhere").code, Some(2));
    assert!(run(&home, "check --format sarif").out.contains("\"2.1.0\""));
    assert!(run(&home, "check --format github").out.starts_with("::error file=_system/config/custom/gentle"));
    // The same findings as `validate`.
    let template_findings = |finished: Finished| -> Vec<Value> {
        let document: Value = serde_json::from_str(&finished.out).unwrap();
        let found = document["diagnostics"].as_array().unwrap().clone();
        found.into_iter().filter(|found| found["file"].as_str().unwrap().starts_with("_system/")).collect()
    };
    let all = template_findings(home.finish(["validate", "--format", "json"], ""));
    assert_eq!(template_findings(run(&home, "check --format json")), all);
}

#[test]
fn the_default_scheme_and_the_chinese_one_can_be_named_wherever_a_scheme_is() {
    let home = Home::new();
    let script = |scheme: &str| SCRIPT.replace("gentle", scheme).replace(", version: 2", "");
    home.put("bcc-script.toml", "[project]\nscheme = \"english\"\n");
    for (scheme, language) in [("default", "角色"), ("chinese", "角色"), ("english", "# Role")] {
        home.put("scripts/a.yaml", script(scheme));
        let finished = home.finish(["validate", "scripts/a.yaml", "--rule", "template-language=off"], "");
        assert!(!finished.out.contains("unknown-scheme"), "{scheme}: {}", finished.out);
        let id = format!("of-{scheme}");
        home.finish(["run", "scripts/a.yaml", "--session", &id, "--model", "offline"], "");
        let exported = home.export(&id).to_string();
        assert!(exported.contains(language), "{scheme}");
    }
    for scheme in ["default", "chinese"] {
        home.put("bcc-script.toml", format!("[project]\nscheme = \"{scheme}\"\n"));
        home.put("scripts/a.yaml", script("x").replace("  template_scheme: x\n", ""));
        let finished = home.finish(["validate"], "");
        assert!(!finished.out.contains("unknown-scheme"), "{scheme}: {}", finished.out);
    }
}
