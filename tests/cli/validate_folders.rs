//! Tests of `validate` through the program: which files of a folder are checked, and missing files.

use std::fs;

use serde_json::Value;

use crate::process::Home;

const SCRIPT: &str = "\
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

/// File and rule of each finding.
fn findings(home: &Home, arguments: &[&str]) -> Vec<(String, String)> {
    let finished = home.finish(["validate", "--format", "json"].iter().chain(arguments), "");
    let document: Value = serde_json::from_str(&finished.out).unwrap_or_else(|_| panic!("{}", finished.err));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found = document["diagnostics"].as_array().unwrap();
    found.iter().map(|found| (text(&found["file"]), text(&found["rule"]))).collect()
}

fn files(home: &Home, arguments: &[&str]) -> Vec<String> {
    let mut files: Vec<String> = findings(home, arguments).into_iter().map(|(file, _)| file).collect();
    files.dedup();
    files
}

#[test]
fn in_the_folders_of_scripts_and_skills_no_file_is_skipped() {
    let home = Home::new();
    home.put("scripts/deep/empty.yaml", "");
    home.put("scripts/full.yaml", "session：\n  session_id：visit\n");
    home.put("scripts/other.yaml", "services: {}\n");
    home.put("scripts/mistyped.yaml", "sesion:\n  sesion_id: x\n  phase:\n    - phaseid: p\n");
    home.put("skills/empty.yml", "# nothing yet\n");
    // `deploy/scripts` is not the project's folder of scripts.
    home.put("deploy/scripts/other.yaml", "services: {}\n");
    home.put("tests/fixture.yaml", "services: {}\n");
    let expected = [
        "scripts/deep/empty.yaml",
        "scripts/full.yaml",
        "scripts/mistyped.yaml",
        "scripts/other.yaml",
        "skills/empty.yml",
    ];
    assert_eq!(files(&home, &[]), expected);
    assert_eq!(files(&home, &["."]), expected);
    assert_eq!(files(&home, &["scripts", "skills"]), expected);
}

#[test]
fn a_test_with_a_misspelled_dialogue_is_recognized_by_its_script() {
    let home = Home::new();
    home.put("tests/t.yaml", "test: greets\nscript: ../a.yaml\ndialog:\n  - user: hi\n");
    let rules: Vec<String> = findings(&home, &[]).into_iter().map(|(_, rule)| rule).collect();
    assert!(rules.contains(&"unknown-key".to_owned()), "{rules:?}");
}

#[test]
fn no_file_to_check_is_a_usage_error() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("empty/deep")).unwrap();
    home.put("others/compose.yaml", "services: {}\n");
    let call = |arguments: &[&str]| home.finish(["validate"].iter().chain(arguments), "");
    for (arguments, part) in [
        (&["empty"][..], "there is nothing to check: no file in empty is"),
        (&["empty", "others"], "no file in empty, others is"),
        (&["--format", "json", "others"], "1 YAML file"),
    ] {
        let finished = call(arguments);
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(finished.err.contains(part) && finished.err.contains("help: "), "{}", finished.err);
    }
    fs::create_dir(home.path().join("scripts")).unwrap();
    let finished = call(&[]);
    assert_eq!(finished.code, Some(2), "{}", finished.err);
    assert!(finished.err.contains("no file in scripts is"), "{}", finished.err);
}

#[test]
fn with_a_named_template_its_sibling_files_have_no_findings() {
    let home = Home::new();
    home.put("_system/config/default/ai_ask_v1.md", "{{ content");
    home.put("_system/config/default/ai-say_v1.md", "x");
    home.put("_system/elsewhere/ai_say_v1.md", "x");
    let misplaced = [
        ("_system/config/default/ai-say_v1.md", "unused-template"),
        ("_system/elsewhere/ai_say_v1.md", "unused-template"),
    ];
    let own = ("_system/config/default/ai_ask_v1.md", "template-syntax");
    let pairs = |found: &[(&str, &str)]| found.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect::<Vec<_>>();
    assert_eq!(findings(&home, &["_system/config/default/ai_ask_v1.md"]), pairs(&[own]));
    assert_eq!(findings(&home, &["_system/config"]), pairs(&[misplaced[0], own]));
    assert_eq!(findings(&home, &[]), pairs(&[misplaced[0], own, misplaced[1]]));
}

#[test]
fn a_suspected_name_in_a_template_is_reported_once_when_a_script_confirms_it() {
    let home = Home::new();
    home.put("_system/config/default/ai_say_v1.md", "{{ contnet }} {{ outputs }}");
    for name in ["a", "b"] {
        home.put(&format!("scripts/{name}.yaml"), SCRIPT);
    }
    let at_template = [("_system/config/default/ai_say_v1.md".to_owned(), "unknown-template-name".to_owned())];
    let own = |found: Vec<(String, String)>| -> Vec<(String, String)> {
        found.into_iter().filter(|(_, rule)| rule == "unknown-template-name").collect()
    };
    // With a few named files, the variables of other scripts are unknown; with the template alone, the name is only suspected.
    assert_eq!(own(findings(&home, &["_system", "scripts/a.yaml", "scripts/b.yaml"])), at_template);
    let finished = home.finish(["validate", "_system", "scripts/a.yaml", "scripts/b.yaml"], "");
    assert!(finished.out.contains("error[unknown-template-name]"), "{}", finished.out);
    assert!(finished.out.contains("scripts/a.yaml"), "{}", finished.out);
    let finished = home.finish(["validate", "_system"], "");
    assert!(finished.out.contains("warning[unknown-template-name]"), "{}", finished.out);
    assert_eq!(own(findings(&home, &["scripts/a.yaml"])).len(), 1);
}

#[test]
fn every_mistake_of_a_configuration_is_told_at_once_and_no_key_in_it_is_shown() {
    let home = Home::new();
    home.put("scripts/a.yaml", SCRIPT);
    let configuration = "\
[project]
schem = \"english\"

[models.default]
provider = \"openai\"
api_key = \"geheim\"
temperature = \"warm\"
base_url = \"https://llm.example/v1?token=sk-Vb3kQ9xT2mL7wR4nZ8pYc6Jd\"
";
    home.put("bcc-script.toml", configuration);
    let finished = home.finish(["validate"], "");
    assert!(!finished.out.contains("geheim") && !finished.out.contains("Vb3kQ9"), "{}", finished.out);
    insta::assert_snapshot!(finished.out);
    let run = home.finish(["run", "scripts/a.yaml"], "");
    assert!(run.code == Some(2) && !run.err.contains("geheim"), "{}", run.err);
    home.put("bcc-script.toml", configuration.replace("schem ", "scheme ").replace("\"warm\"", "0.4"));
    let run = home.finish(["run", "scripts/a.yaml"], "");
    assert!(run.code == Some(2) && !run.err.contains("geheim"), "{}", run.err);
    assert!(run.err.contains("help: keys must not be stored in this file"), "{}", run.err);
}

#[test]
fn the_default_templates_are_a_scheme_that_can_be_named() {
    let home = Home::new();
    home.put("scripts/a.yaml", SCRIPT.replace("  phases:", "  template_scheme: default\n  phases:"));
    for arguments in [&["validate"][..], &["validate", "--scheme", "default"]] {
        let finished = home.finish(arguments, "");
        assert_eq!((finished.code, finished.out.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_test_of_a_missing_script_gets_a_similar_name() {
    let home = Home::new();
    home.put("scripts/intake.yaml", SCRIPT);
    home.put("tests/t.yaml", "test: greets\nscript: ../scripts/intak.yaml\nmodel: {}\ndialogue:\n  - user: hi\n");
    let finished = home.finish(["validate"], "");
    assert!(finished.out.contains("help: did you mean `../scripts/intake.yaml`?"), "{}", finished.out);
}
