//! Tests of `new script`, `new skill`, `new test`, `new scheme`.

use super::*;

/// Asserts that the project has no findings and every test passes; returns the number of tests.
fn check_project(home: &Home, project: &Path) -> usize {
    let found = findings(&output_in(home, project, &["validate", "--format", "json", "--deny", "warnings"]));
    assert_eq!(found, Value::Array(vec![]));
    let tested: Value = serde_json::from_str(&output_in(home, project, &["test", "--format", "json"])).unwrap();
    assert_eq!((&tested["failed"], &tested["skipped"]), (&Value::from(0), &Value::from(0)));
    usize::try_from(tested["passed"].as_u64().unwrap()).unwrap()
}

#[test]
fn new_files_validate_and_pass_with_any_name() {
    let names = ["intake", "初次访谈", "a.b-c_2", "123", "1.5", "true", "No", "null", "2026-01-01", "1e3", "_", "été"];
    for language in ["en", "zh"] {
        let home = Home::new();
        let project = project(&home, language);
        for name in names {
            for item in ["script", "skill", "test"] {
                let out = output_in(&home, &project, &["new", item, name]);
                let path = format!("{item}s/{name}.yaml");
                assert_eq!(out.lines().next(), Some(path.as_str()));
                assert!(out.contains("Now try: bcc-script "), "{out}");
                assert!(out.trim_end().ends_with(&path), "{out}");
            }
        }
        assert_eq!(check_project(&home, &project), names.len() + 2, "{language}");
    }
}

#[test]
fn new_files_have_the_language_of_the_project_unless_another_is_requested() {
    let has_han =
        |path: &Path| fs::read_to_string(path).unwrap().chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    for (own, other) in [("en", "zh"), ("zh", "en")] {
        let home = Home::new();
        let project = project(&home, own);
        for item in ["script", "skill", "test"] {
            let file = |name: &str| project.join(format!("{item}s/{name}.yaml"));
            output_in(&home, &project, &["new", item, "own"]);
            assert_eq!(has_han(&file("own")), own == "zh", "{item}");
            output_in(&home, &project, &["new", item, "other", "--lang", other]);
            assert_eq!(has_han(&file("other")), other == "zh", "{item}");
        }
        // A script in the other language uses templates of that language.
        check_project(&home, &project);
    }
}

#[test]
fn a_new_test_expects_the_current_messages_of_its_script() {
    let contents = [
        ("plain", "Hello there."),
        ("signs", "\"It's: a - 'test' # of {signs}, [brackets] & *stars*!\""),
        ("lines", "|\n                  First line\n                    indented: yes\n\n                  last line"),
        ("colon", "\"你好：欢迎！ 是吗？\""),
        ("number", "\"42\""),
        ("spaces", "\"  space around  \""),
        ("filled", "\"It is {{ time }}, {{ name }}\""),
        ("braces", "\"{{ '{{ x }}' }} and {% raw %}{% if %}{% endraw %}\""),
    ];
    let home = Home::new();
    let project = project(&home, "en");
    for (name, content) in contents {
        let action = |id: &str| {
            format!(
                "            - action_type: ai_say\n              action_id: {id}\n              config:\n                delivery: verbatim\n                content: {content}\n"
            )
        };
        let script = format!(
            "session:\n  session_id: x\n  declare: [{{ var: name, type: string, value: Ann }}]\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{}{}",
            action("one"),
            action("two").replace("action_type: ai_say", "action_type: ai_ask")
        );
        fs::write(project.join(format!("scripts/{name}.yaml")), script).unwrap();
        output_in(&home, &project, &["new", "test", name]);
        let tested = run_in(&home, &project, &["test", &format!("tests/{name}.yaml")], "");
        assert_eq!(tested.code, Some(0), "{name}:\n{}{}", tested.out, tested.err);
        let text = fs::read_to_string(project.join(format!("tests/{name}.yaml"))).unwrap();
        assert_eq!(text.matches("- ai:").count(), 2, "{text}");
        // The test checks these exact messages: with others it fails.
        let file = project.join(format!("scripts/{name}.yaml"));
        let changed = fs::read_to_string(&file).unwrap().replacen("content: ", "content: changed #", 1);
        fs::write(&file, changed.replace("changed #|", "|\n                  changed")).unwrap();
        assert_eq!(run_in(&home, &project, &["test", &format!("tests/{name}.yaml")], "").code, Some(1), "{name}");
    }
}

#[test]
fn a_test_of_a_script_that_asks_nothing_expects_its_end() {
    let home = Home::new();
    let project = project(&home, "en");
    let script = "session: { session_id: x, phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [\n  { action_type: ai_say, action_id: a, config: { content: That is all. } }] }] }] }\n";
    fs::write(project.join("scripts/short.yaml"), script).unwrap();
    output_in(&home, &project, &["new", "test", "of_short", "--script", "scripts/short.yaml"]);
    let text = fs::read_to_string(project.join("tests/of_short.yaml")).unwrap();
    assert!(text.contains("status: completed") && !text.contains("user:"), "{text}");
    check_project(&home, &project);
}

#[test]
fn a_script_is_found_from_wherever_the_command_is_given() {
    let home = Home::new();
    let project = project(&home, "en");
    output_in(&home, &project.join("scripts"), &["new", "test", "a", "--script", "first_talk.yaml"]);
    output_in(&home, home.path(), &["new", "test", "b", "--script", "p/scripts/first_talk.yaml", "--project", "p"]);
    fs::create_dir_all(project.join("scripts/deep")).unwrap();
    fs::copy(project.join("scripts/first_talk.yaml"), project.join("scripts/deep/x.yaml")).unwrap();
    output_in(&home, &project, &["new", "test", "c", "--script", "./scripts/../scripts/deep/x.yaml"]);
    let script = |name: &str| {
        let text = fs::read_to_string(project.join(format!("tests/{name}.yaml"))).unwrap();
        text.lines().find_map(|line| line.strip_prefix("script: ").map(str::to_owned)).unwrap()
    };
    assert_eq!([script("a"), script("b")], ["../scripts/first_talk.yaml", "../scripts/first_talk.yaml"]);
    assert_eq!(script("c"), "../scripts/deep/x.yaml");
    let tested = output_in(&home, &project, &["test"]);
    assert!(tested.contains("5 passed, 0 failed"), "{tested}");
}

#[test]
fn a_script_that_cannot_be_tested_is_rejected_with_the_reason() {
    let home = Home::new();
    let project = project(&home, "en");
    home.file("outside.yaml", &fs::read_to_string(project.join("scripts/first_talk.yaml")).unwrap());
    fs::write(project.join("scripts/broken.yaml"), "session:\n  session_id: [\n").unwrap();
    let fails = "session: { session_id: x, phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [\n  { action_type: set, action_id: a, config: { values: { n: \"{{ 1 / 0 }}\" } }, on_exit: { error: fail } }] }] }] }\n";
    fs::write(project.join("scripts/fails.yaml"), fails).unwrap();
    let before = tree(&project);
    let table: [(&[&str], &[&str]); 7] = [
        (&["t"], &["the script that `t` tests is not specified", "--script"]),
        (&["t", "--script", "scripts/nowhere.yaml"], &["there is no file scripts/nowhere.yaml"]),
        (&["t", "--script", "scripts"], &["scripts is a folder, but"]),
        (&["t", "--script", "../outside.yaml"], &["is outside the project"]),
        (&["t", "--script", "scripts/broken.yaml"], &["error", "scripts/broken.yaml:"]),
        (&["t", "--script", "skills/small_step.yaml"], &["it is called by scripts"]),
        (&["first_talk", "--script", "scripts/first_talk.yaml"], &["tests/first_talk.yaml already exists"]),
    ];
    for (arguments, expected) in table {
        let command: Vec<&str> = ["new", "test"].iter().chain(arguments).copied().collect();
        fails_in(&home, &project, &command, 2, expected);
        assert_eq!(tree(&project), before, "{arguments:?}");
    }
    let finished = run_in(&home, &project, &["new", "test", "fails"], "");
    assert!(matches!(finished.code, Some(1 | 2)), "{}", finished.err);
    assert_eq!(tree(&project), before);
}

#[test]
fn an_invalid_or_existing_name_changes_nothing() {
    let home = Home::new();
    let project = project(&home, "en");
    fs::write(project.join("scripts/other.yml"), "").unwrap();
    fs::write(project.join("skills/file.yaml"), "skill: { skill_id: taken, actions: [] }").unwrap();
    symlink("nowhere", project.join("scripts/link.yaml")).unwrap();
    let before = tree(&project);
    let table: [(&str, &str, &str); 11] = [
        ("script", "first_talk", "scripts/first_talk.yaml already exists"),
        ("script", "other", "scripts/other.yml already exists"),
        ("script", "link", "scripts/link.yaml already exists"),
        ("skill", "small_step", "the skill `small_step` already exists"),
        ("skill", "file", "skills/file.yaml already exists"),
        ("script", "../out", "is a path"),
        ("script", "my talk", "`my_talk` would be valid"),
        ("skill", "", "empty"),
        ("script", ".hidden", "starts with `.`"),
        ("scheme", "own", "_system/config/custom/own already exists"),
        ("scheme", "../x", "is a path"),
    ];
    for (item, name, expected) in table {
        fails_in(&home, &project, &["new", item, name], 2, &[expected, "help: "]);
        assert_eq!(tree(&project), before, "{item} {name}");
    }
    fs::remove_dir_all(project.join("skills")).unwrap();
    fs::write(project.join("skills"), "a file").unwrap();
    fails_in(&home, &project, &["new", "skill", "x"], 2, &["skills is a file, but a folder is required"]);
}

#[test]
fn an_entry_in_place_of_a_folder_is_reported_with_its_type() {
    let home = Home::new();
    let project = project(&home, "en");
    fs::create_dir(home.path().join("elsewhere")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    for (target, expected) in [
        ("../elsewhere", "skills is a link to a location outside the project"),
        ("../nowhere", "skills is a broken link"),
        ("../file", "skills is a link to a file"),
    ] {
        let _ = fs::remove_dir_all(project.join("skills"));
        let _ = fs::remove_file(project.join("skills"));
        symlink(target, project.join("skills")).unwrap();
        let before = tree(home.path());
        fails_in(&home, &project, &["new", "skill", "x"], 2, &[expected, "help: nothing was changed"]);
        assert_eq!(tree(home.path()), before, "{target}");
    }
}

#[test]
fn a_name_that_is_not_portable_is_rejected() {
    let home = Home::new();
    let project = project(&home, "en");
    fs::write(project.join("scripts/Other.yml"), "").unwrap();
    let before = tree(&project);
    for item in ["script", "skill", "test", "scheme"] {
        fails_in(&home, &project, &["new", item, "com1"], 2, &["Windows reserves it for a device"]);
    }
    for (item, name) in [("script", "First_Talk"), ("script", "other"), ("skill", "Small_step"), ("scheme", "OWN")] {
        fails_in(&home, &project, &["new", item, name], 2, &["only in case", "help: some systems"]);
    }
    assert_eq!(tree(&project), before);
}

#[test]
fn a_new_scheme_can_be_used_at_once() {
    let home = Home::new();
    let project = project(&home, "zh");
    let out = output_in(&home, &project, &["new", "scheme", "柔和"]);
    assert_eq!(out.lines().filter(|line| line.starts_with("_system/config/custom/柔和/")).count(), 16, "{out}");
    output_in(&home, &project, &["new", "scheme", "soft", "--lang", "en"]);
    let run = run_in(&home, &project, &["run", "scripts/first_talk.yaml", "--scheme", "柔和"], "小林\n9\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    check_project(&home, &project);
}

#[test]
fn outside_of_a_project_nothing_is_written() {
    let home = Home::new();
    let directory = tempfile::tempdir().unwrap();
    fails_in(&home, directory.path(), &["new", "script", "x"], 2, &["does not belong to a project", "bcc-script init"]);
    assert_eq!(tree(directory.path()), BTreeMap::new());
    // In a project without schemas, the new file refers to none.
    output_in(&home, directory.path(), &["new", "script", "x", "--project", "."]);
    let text = fs::read_to_string(directory.path().join("scripts/x.yaml")).unwrap();
    assert!(!text.contains("$schema"), "{text}");
    let found = findings(&output_in(&home, directory.path(), &["validate", "scripts", "--format", "json"]));
    assert_eq!(found, Value::Array(vec![]));
}
