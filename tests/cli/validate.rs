//! Tests of `validate` through the program: the selected files, reports of unreadable files, exit codes, and formats.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{Finished, Home, Running, install, wait};

const SOUND: &str = "\
session:
  session_id: visit
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - action_type: ai_say
              action_id: greet
              config: { content: 您好 }
";

/// A script with one mistake, `unknown-key`.
fn broken() -> String {
    SOUND.replace("session_id: visit", "session_id: visit\n  session_nmae: 访谈")
}

/// A script with one warning, `deprecated-field`.
fn old() -> String {
    SOUND.replace("content:", "content_template:")
}

fn run(home: &Home, arguments: &[&str]) -> Finished {
    home.finish(["validate"].iter().chain(arguments), "")
}

/// The JSON output, which must be complete for any findings.
fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.out).unwrap_or_else(|_| panic!("no JSON: {}\n{}", finished.out, finished.err))
}

/// File and rule of each finding.
fn found(document: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let diagnostics = document["diagnostics"].as_array().unwrap();
    diagnostics.iter().map(|diagnostic| (text(&diagnostic["file"]), text(&diagnostic["rule"]))).collect()
}

/// The findings of `validate --format json`.
fn findings(home: &Home, arguments: &[&str]) -> Vec<(String, String)> {
    found(&json(&run(home, &[arguments, &["--format", "json"]].concat())))
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(file, rule)| ((*file).to_owned(), (*rule).to_owned())).collect()
}

#[test]
fn a_valid_script_has_no_findings_and_the_summary_counts_it() {
    let home = Home::new();
    home.put("scripts/a.yaml", SOUND);
    let finished = run(&home, &[]);
    assert_eq!((finished.code, finished.out.as_str()), (Some(0), ""));
    assert_eq!(finished.err, "1 file, nothing to report\n");
}

#[test]
fn without_names_the_usual_folders_of_the_project_are_checked_from_wherever_it_is_called() {
    let home = Home::new();
    for name in ["scripts/a.yaml", "scripts/deep/b.yml", "skills/c.yaml", "tests/d.yaml", "elsewhere/e.yaml", "f.yaml"]
    {
        home.put(name, broken());
    }
    home.put("_system/config/default/ai_say_v1.md", "{{ content");
    let expected = [
        ("_system/config/default/ai_say_v1.md", "template-syntax"),
        ("scripts/a.yaml", "unknown-key"),
        ("scripts/deep/b.yml", "unknown-key"),
        ("skills/c.yaml", "unknown-key"),
        ("tests/d.yaml", "unknown-key"),
    ];
    let own = |found: Vec<(String, String)>| -> Vec<(String, String)> {
        found.into_iter().filter(|(_, rule)| rule != "unknown-template").collect()
    };
    assert_eq!(own(findings(&home, &[])), pairs(&expected));
    let mut command = home.command(["validate", "--format", "json"]);
    command.current_dir(home.path().join("elsewhere"));
    let root = fs::canonicalize(home.path()).unwrap();
    let expected = expected.map(|(name, rule)| (root.join(name).display().to_string(), rule.to_owned()));
    assert_eq!(own(found(&json(&Running::start(command).finish()))), expected);
}

#[test]
fn without_files_and_usual_folders_it_is_a_usage_error() {
    let home = Home::new();
    home.put("a.yaml", broken());
    let finished = run(&home, &[]);
    assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""));
    assert!(finished.err.contains("none of the folders scripts/, skills/, tests/, _system/"), "{}", finished.err);
    assert!(finished.err.contains("help: specify files or folders"), "{}", finished.err);
    assert_eq!(run(&home, &["--project", "nowhere", "a.yaml"]).code, Some(2));
    assert_eq!(run(&home, &["--format", "xml", "a.yaml"]).code, Some(2));
}

#[test]
fn files_of_other_programs_are_skipped_in_a_folder_and_reported_when_named() {
    let home = Home::new();
    home.put("files/a.yaml", SOUND);
    home.put("files/compose.yaml", "services:\n  web: { image: x }\n");
    home.put("files/torn.yml", "a: [\n");
    home.put("files/notes.md", "text");
    home.put("files/.hidden/b.yaml", broken());
    home.put("files/.c.yaml", broken());
    home.put("files/target/d.yaml", broken());
    home.put("files/node_modules/e.yaml", broken());
    let finished = run(&home, &["files"]);
    assert_eq!((finished.code, finished.out.as_str()), (Some(0), ""));
    assert!(finished.err.starts_with("1 file, nothing to report (2 YAML files"), "{}", finished.err);
    let finished = run(&home, &["files/compose.yaml", "files/torn.yml", "files/notes.md"]);
    assert_eq!(finished.code, Some(1));
    for part in ["files/compose.yaml:1:1", "files/torn.yml:", "files/notes.md:1:1"] {
        assert!(finished.out.contains(part), "{part}: {}", finished.out);
    }
}

#[test]
fn a_script_with_a_misspelled_first_key_is_still_a_script() {
    let home = Home::new();
    home.put("scripts/a.yaml", SOUND.replace("session:", "sesion:"));
    home.put("scripts/b.yaml", SOUND.replace("session:", "session："));
    assert_eq!(findings(&home, &[]), pairs(&[("scripts/a.yaml", "unknown-key"), ("scripts/b.yaml", "yaml-syntax")]));
}

#[test]
fn each_file_is_checked_once_however_often_it_is_reached() {
    let home = Home::new();
    home.put("scripts/a.yaml", broken());
    symlink("a.yaml", home.path().join("scripts/b.yaml")).unwrap();
    symlink("scripts", home.path().join("linked")).unwrap();
    symlink("..", home.path().join("scripts/loop")).unwrap();
    fs::hard_link(home.path().join("scripts/a.yaml"), home.path().join("scripts/hard.yaml")).unwrap();
    let document = json(&run(
        &home,
        &["--format", "json", "scripts/a.yaml", "./scripts/../scripts/a.yaml", "scripts", "linked", "scripts"],
    ));
    // A hard link is a separate file: neither of the two names is the right one.
    assert_eq!(document["files"], 2);
    assert_eq!(found(&document), pairs(&[("scripts/a.yaml", "unknown-key"), ("scripts/hard.yaml", "unknown-key")]));
}

#[test]
fn an_unreadable_file_is_a_finding_and_all_others_are_checked() {
    let home = Home::new();
    let path = |name: &str| home.path().join("scripts").join(name);
    home.put("scripts/good.yaml", broken());
    assert!(Command::new("mkfifo").arg(path("a-pipe.yaml")).status().unwrap().success());
    symlink("nowhere", path("b-dangling.yaml")).unwrap();
    symlink("c-loop.yaml", path("c-loop.yaml")).unwrap();
    symlink("/dev/zero", path("d-device.yaml")).unwrap();
    home.put("scripts/e-huge.yaml", "session:\n");
    fs::OpenOptions::new().write(true).open(path("e-huge.yaml")).unwrap().set_len(100 * 1024 * 1024).unwrap();
    home.put("scripts/f-gbk.yaml", b"session:\n  session_name: \xc4\xe3\xba\xc3\n");
    home.put("scripts/g-utf16.yaml", b"\xff\xfes\0e\0s\0s\0i\0o\0n\0:\0");
    fs::write(path("x").with_file_name(OsStr::from_bytes(b"h-\xff\xfe.yaml")), broken()).unwrap();
    let expected = pairs(&[
        ("scripts/a-pipe.yaml", "unreadable-file"),
        ("scripts/b-dangling.yaml", "unreadable-file"),
        ("scripts/c-loop.yaml", "unreadable-file"),
        ("scripts/d-device.yaml", "unreadable-file"),
        ("scripts/e-huge.yaml", "file-too-large"),
        ("scripts/f-gbk.yaml", "not-text"),
        ("scripts/g-utf16.yaml", "not-text"),
        ("scripts/good.yaml", "unknown-key"),
        ("scripts/h-\u{fffd}\u{fffd}.yaml", "unknown-key"),
    ]);
    assert_eq!(findings(&home, &[]), expected);
    let names: Vec<String> =
        expected.iter().map(|(name, _)| name.clone()).filter(|name| !name.contains("h-")).collect();
    let arguments: Vec<&str> = names.iter().map(String::as_str).chain(["scripts"]).collect();
    assert_eq!(findings(&home, &arguments), expected);
    let finished = run(&home, &arguments);
    assert_eq!(finished.code, Some(1));
    assert!(finished.out.contains("a-pipe.yaml cannot be read: it is not a regular file"), "{}", finished.out);
    assert!(finished.out.contains("save what comes from a pipe or a device to a file first"), "{}", finished.out);
}

#[test]
fn a_missing_named_file_is_a_finding_with_a_similar_name() {
    let home = Home::new();
    home.put("scripts/intake.yaml", broken());
    home.put("_system/config/default/note.md", "x");
    let finished = run(&home, &["scripts/intkae.yaml", "scripts/intake.yaml", "_system/config/default/nothing.md"]);
    assert_eq!(finished.code, Some(1));
    for part in [
        "there is no file scripts/intkae.yaml",
        "did you mean `intake.yaml`?",
        "error[unknown-key]",
        "there is no file _system/config/default/nothing.md",
    ] {
        assert!(finished.out.contains(part), "{part}: {}", finished.out);
    }
}

#[test]
fn a_file_without_read_permission_is_a_finding() {
    let home = Home::new();
    home.put("scripts/a.yaml", broken());
    home.put("scripts/secret.yaml", broken());
    home.put("scripts/closed/b.yaml", broken());
    fs::set_permissions(home.path().join("scripts/secret.yaml"), fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = home.command(["validate", "--format", "json"]);
    if fs::read(home.path().join("scripts/secret.yaml")).is_ok() {
        // Root can read every file, so the program runs as another user, from a directory without access.
        let program = home.path().join("bcc-script");
        install(Path::new(env!("CARGO_BIN_EXE_bcc-script")), &program);
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        command = Command::new(program);
        command.args(["validate", "--format", "json"]).env_clear().envs(home.variables()).current_dir(home.path());
        command.uid(65534).gid(65534);
    }
    let unreadable = home.path().join("scripts/closed");
    fs::set_permissions(&unreadable, fs::Permissions::from_mode(0o000)).unwrap();
    let finished = Running::start(command).finish();
    fs::set_permissions(&unreadable, fs::Permissions::from_mode(0o755)).unwrap();
    let expected = [
        ("scripts/a.yaml", "unknown-key"),
        ("scripts/closed", "unreadable-file"),
        ("scripts/secret.yaml", "unreadable-file"),
    ];
    assert_eq!(found(&json(&finished)), pairs(&expected), "{}", finished.err);
}

#[test]
fn endless_folders_are_walked_to_a_limit() {
    let home = Home::new();
    home.put("scripts/a.yaml", broken());
    home.put(&format!("scripts/{}b.yaml", "d/".repeat(70)), broken());
    let finished = run(&home, &[]);
    assert_eq!(finished.code, Some(1));
    assert_eq!(finished.out.matches("error[unknown-key]").count(), 1, "{}", finished.out);
    assert!(finished.out.contains("more than 64 folders deep"), "{}", finished.out);
}

#[test]
fn a_broken_configuration_is_a_finding_and_hides_no_other() {
    let home = Home::new();
    home.put("scripts/a.yaml", broken());
    let expected = pairs(&[("bcc-script.toml", "broken-configuration"), ("scripts/a.yaml", "unknown-key")]);
    for text in ["[project", "[project]\nschme = \"english\"\n", "[rules]\nx = 5\n"] {
        home.put("bcc-script.toml", text);
        assert_eq!(findings(&home, &[]), expected, "{text}");
    }
    home.put("bcc-script.toml", b"\xff");
    assert_eq!(findings(&home, &[]), pairs(&[("bcc-script.toml", "not-text"), ("scripts/a.yaml", "unknown-key")]));
    assert_eq!(findings(&home, &["bcc-script.toml"]), pairs(&[("bcc-script.toml", "not-text")]));
}

#[test]
fn a_scheme_that_does_not_exist_is_a_finding_at_its_place_and_hides_no_other() {
    let home = Home::new();
    home.put("scripts/a.yaml", broken());
    home.put("scripts/b.yaml", broken());
    let errors = [("scripts/a.yaml", "unknown-key"), ("scripts/b.yaml", "unknown-key")];
    // Selected on the command line: reported once for the project.
    let expected_errors = [&[("scripts/a.yaml", "unknown-scheme")], &errors[..]].concat();
    assert_eq!(findings(&home, &["--scheme", "englsh"]), pairs(&expected_errors));
    assert_eq!(findings(&home, &["--scheme", "english"]), pairs(&errors));
    // Selected in the project configuration.
    home.put("bcc-script.toml", "[project]\nscheme = \"englsh\"\n");
    let document = json(&run(&home, &["--format", "json"]));
    assert_eq!(found(&document), pairs(&[&[("bcc-script.toml", "unknown-scheme")], &errors[..]].concat()));
    assert_eq!((&document["diagnostics"][0]["line"], &document["diagnostics"][0]["column"]), (&2.into(), &10.into()));
    // Selected in a script.
    fs::remove_file(home.path().join("bcc-script.toml")).unwrap();
    home.put("scripts/b.yaml", broken().replace("  phases:", "  template_scheme: mien\n  phases:"));
    home.put("_system/config/custom/mine/part.md", "x");
    let document = json(&run(&home, &["--format", "json", "scripts"]));
    let expected =
        [("scripts/a.yaml", "unknown-key"), ("scripts/b.yaml", "unknown-key"), ("scripts/b.yaml", "unknown-scheme")];
    assert_eq!(found(&document), pairs(&expected));
    assert!(document["diagnostics"][2]["help"].as_str().unwrap().contains("`mine`"), "{document}");
}

#[test]
fn templates_and_schemas_that_cannot_be_read_are_findings_of_their_own() {
    let home = Home::new();
    home.put("scripts/a.yaml", broken());
    home.put("_system/config/default/large.md", "x".repeat(10 * 1024 * 1024));
    home.put("_system/config/default/gbk.md", b"\xc4\xe3");
    home.put("_system/config/default/folder.md/x", "");
    home.put("schemas/replies/own.json", "{\n  \"type\": ,\n}");
    home.put("schemas/replies/gbk.json", b"\xc4\xe3");
    let expected = [
        ("_system/config/default/folder.md", "unreadable-file"),
        ("_system/config/default/gbk.md", "not-text"),
        ("_system/config/default/large.md", "file-too-large"),
        ("schemas/replies/gbk.json", "not-text"),
        ("schemas/replies/own.json", "reply-schema"),
        ("scripts/a.yaml", "unknown-key"),
    ];
    assert_eq!(findings(&home, &[]), pairs(&expected));
    // Checking only the script reports it, too, because the script would not run.
    assert_eq!(findings(&home, &["scripts/a.yaml"]), pairs(&expected));
}

#[test]
fn a_mistake_in_a_template_is_reported_once_at_its_place_and_only_where_it_is_asked_for() {
    let home = Home::new();
    home.put("scripts/a.yaml", SOUND.replace("  phases:", "  template_scheme: mine\n  phases:"));
    home.put("scripts/b.yaml", SOUND);
    // The scripts do not use this kind, so nothing is reported for them.
    home.put("_system/config/default/ai_think_v1.md", "第一行\n{{ 名字 }\n");
    home.put("_system/config/custom/mine/ai_think_v1.md", "---\ndescription: x\n---\n{% if a %}\n");
    home.put("_system/README.md", "{{ no template");
    let document = json(&run(&home, &["--format", "json"]));
    let expected = [
        ("_system/config/custom/mine/ai_think_v1.md", "template-syntax"),
        ("_system/config/default/ai_think_v1.md", "template-syntax"),
    ];
    assert_eq!(found(&document), pairs(&expected));
    assert_eq!(document["diagnostics"][1]["line"], 2);
    assert_eq!(findings(&home, &["scripts"]), []);
    assert_eq!(findings(&home, &["_system/config/default/ai_think_v1.md"]), pairs(&expected[1..]));
}

/// [`findings`] without those about templates that are too short for real use.
fn content_findings(home: &Home, paths: &[&str]) -> Vec<(String, String)> {
    findings(home, paths).into_iter().filter(|(_, rule)| rule != "template-lacks-field").collect()
}

#[test]
fn a_template_error_is_reported_at_the_script_only_where_it_alone_is_checked() {
    let home = Home::new();
    home.put("scripts/a.yaml", SOUND);
    home.put("_system/config/default/ai_say_v1.md", "{% include 'prat.md' %}");
    home.put("_system/config/default/part.md", "x");
    let template = ("_system/config/default/ai_say_v1.md", "missing-include");
    let script = ("scripts/a.yaml", "unknown-template");
    assert_eq!(content_findings(&home, &[]), pairs(&[template]));
    assert_eq!(content_findings(&home, &["scripts"]), pairs(&[script]));
}

#[test]
fn a_template_may_use_what_any_script_of_the_project_sets_and_nothing_else() {
    let home = Home::new();
    let declares = "session_id: visit\n  declare: [{ var: 口号, value: 好 }]";
    home.put("scripts/a.yaml", SOUND.replace("session_id: visit", declares));
    home.put("_system/config/default/ai_say_v1.md", "{{ content }}{{ 口号 }}");
    home.put("_system/config/default/ai_ask_v1.md", "{{ content }}{{ 口号 }}{{ 标语 }}");
    assert_eq!(
        content_findings(&home, &[]),
        pairs(&[("_system/config/default/ai_ask_v1.md", "unknown-template-name")])
    );
    // Without the scripts, or with one that cannot be parsed completely, the name may be a variable.
    assert_eq!(content_findings(&home, &["_system"]), []);
    home.put("scripts/b.yaml", broken());
    let own = ["unknown-key", "unknown-template-name"].map(|rule| ("scripts/b.yaml", rule));
    assert_eq!(content_findings(&home, &[]), pairs(&own));
}

#[test]
fn each_file_is_checked_against_its_own_project() {
    let home = Home::new();
    for (project, scheme) in [("one", "first"), ("two", "second")] {
        home.put(&format!("{project}/bcc-script.toml"), format!("[project]\nscheme = \"{scheme}\"\n"));
        home.put(&format!("{project}/_system/config/custom/{scheme}/ai_say_v1.md"), "{{ content }}{{ 口号 }}");
    }
    home.put("one/scripts/a.yaml", SOUND);
    let declares = "session_id: visit\n  declare: [{ var: 口号, value: 好 }]";
    home.put("two/scripts/a.yaml", SOUND.replace("session_id: visit", declares));
    let expected = [
        ("one/_system/config/custom/first/ai_say_v1.md", "template-lacks-field"),
        ("one/scripts/a.yaml", "unknown-template-name"),
        ("two/_system/config/custom/second/ai_say_v1.md", "template-lacks-field"),
    ];
    assert_eq!(findings(&home, &["one", "two"]), pairs(&expected));
    // A project with neither scheme.
    home.put("three/_system/x", "");
    let unused = pairs(&[("two/scripts/a.yaml", "unused-variable")]);
    assert_eq!(findings(&home, &["--project", "three", "one/scripts", "two/scripts"]), unused);
}

#[test]
fn warnings_fail_only_where_they_are_denied() {
    let home = Home::new();
    home.put("scripts/a.yaml", old());
    let finished = run(&home, &[]);
    assert_eq!(finished.code, Some(0));
    assert!(finished.out.contains("warning[deprecated-field]"), "{}", finished.out);
    assert_eq!(finished.err, "1 file: 1 warning\n");
    assert_eq!(run(&home, &["--deny", "warnings"]).code, Some(1));
    home.put("scripts/a.yaml", broken());
    assert_eq!(run(&home, &[]).code, Some(1));
}

#[test]
fn rules_are_set_by_the_project_and_then_by_the_command_line_and_single_places_by_comments() {
    let home = Home::new();
    home.put("scripts/a.yaml", old());
    let severity = |arguments: &[&str]| {
        let finished = run(&home, &[arguments, &["--format", "json"]].concat());
        let document = json(&finished);
        (finished.code, document["diagnostics"][0]["severity"].as_str().map(str::to_owned))
    };
    let (warning, error) = (Some("warning".to_owned()), Some("error".to_owned()));
    assert_eq!(severity(&["--rule", "deprecated-field=off"]), (Some(0), None));
    assert_eq!(severity(&["--rule", "deprecated-field=error"]), (Some(1), error.clone()));
    home.put("bcc-script.toml", "[rules]\ndeprecated-field = \"error\"\n");
    assert_eq!(severity(&[]), (Some(1), error));
    assert_eq!(severity(&["--rule", "deprecated-field=warn"]), (Some(0), warning));
    home.put("scripts/a.yaml", format!("{}  # bcc: allow(deprecated-field)\n", old().trim_end()));
    assert_eq!(severity(&[]), (Some(0), None));
}

#[test]
fn an_invalid_level_is_reported_where_it_was_set() {
    let home = Home::new();
    home.put("scripts/a.yaml", old());
    for (rule, part) in
        [("deprecated-feild=off", "`deprecated-field`"), ("deprecated-field", "=off"), ("unknown-key=off", "cannot")]
    {
        let finished = run(&home, &["--rule", rule]);
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""));
        assert!(finished.err.contains(part), "{}", finished.err);
    }
    home.put("bcc-script.toml", "[rules]\ndeprecated-field = \"error\"\nunknown-key = \"off\"\n");
    let document = json(&run(&home, &["--format", "json"]));
    let expected = [("bcc-script.toml", "broken-configuration"), ("scripts/a.yaml", "deprecated-field")];
    assert_eq!(found(&document), pairs(&expected));
    assert_eq!(document["diagnostics"][0]["line"], 3);
    assert_eq!(document["diagnostics"][1]["severity"], "error");
}

#[test]
fn every_format_is_valid_without_findings_too() {
    let home = Home::new();
    home.put("scripts/a.yaml", SOUND);
    home.put("wrong/b.yaml", broken());
    for (folder, number) in [("scripts", 0), ("wrong", 1)] {
        let code = Some(number);
        let finished = run(&home, &["--format", "json", folder]);
        let document = json(&finished);
        assert_eq!((finished.code, &document["version"], &document["errors"]), (code, &1.into(), &number.into()));
        assert_eq!(finished.err, "");
        let finished = run(&home, &["--format", "sarif", folder]);
        let results = json(&finished)["runs"][0]["results"].as_array().unwrap().len();
        assert_eq!((finished.code, results), (code, number as usize));
        let finished = run(&home, &["--format", "github", folder]);
        assert_eq!((finished.code, finished.out.matches("::error ").count()), (code, number as usize));
    }
}

#[test]
fn a_closed_output_is_no_failure_of_the_check() {
    let home = Home::new();
    for number in 0..50 {
        home.put(&format!("scripts/{number}.yaml"), broken());
    }
    for format in ["human", "json"] {
        let mut command = home.command(["validate", "--all", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let errors = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert_eq!(wait(&mut child).code(), Some(1));
        assert!(!errors.contains("panicked") && !errors.contains("cannot be written"), "{errors}");
    }
}

#[test]
fn many_findings_are_only_counted_unless_all_are_requested() {
    let home = Home::new();
    let action = "            - { action_type: nope, action_id: a, config: {} }\n";
    let actions: String = (0..2_000).map(|n| action.replace("id: a", &format!("id: a{n}"))).collect();
    home.put("scripts/a.yaml", SOUND.to_owned() + &actions);
    let shown = |arguments: &[&str]| run(&home, arguments).out.matches("error[unknown-kind]").count();
    assert!(shown(&[]) < 200);
    assert_eq!(shown(&["--all"]), 2_000);
    assert_eq!(findings(&home, &[]).len(), 2_000);
}

#[test]
fn the_folders_of_this_project_have_no_findings() {
    let mut command = Home::new().command(["validate", "--deny", "warnings", "scripts", "_system"]);
    command.current_dir(Path::new(crate::ROOT));
    let finished = Running::start(command).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.out);
}
