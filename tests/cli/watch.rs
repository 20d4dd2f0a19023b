//! Tests of `validate --watch`: a file is edited in the ways that editors use, and a new report is printed.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::{Home, Next, Running, TIMEOUT};

const SOUND: &str = "\
session:
  session_id: visit
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - { action_type: ai_say, action_id: greet, config: { content: 您好 } }
";

/// A template with all fields that a reply needs.
const TEMPLATE: &str = "{{ content }}\n\"safety_risk\" \"content\" \"EXIT\" \"BRIEF\" \"metrics\" \"user_engagement\" \
                        \"emotional_intensity\" \"understanding_level\" \"progress_suggestion\" \"metadata\"\n";

fn broken() -> String {
    SOUND.replace("content", "contnet")
}

/// A running watch of a project with one script.
struct Watch {
    home: Home,
    running: Running,
}

impl Watch {
    fn new(arguments: &[&str]) -> Self {
        let home = Home::new();
        fs::create_dir(home.path().join("scripts")).unwrap();
        fs::write(home.path().join("scripts/a.yaml"), SOUND).unwrap();
        Self::with_home(home, arguments)
    }

    /// A watch that first reports one file without findings.
    fn with_home(home: Home, arguments: &[&str]) -> Self {
        let running = home.start(["validate", "--watch", "--format", "json"].iter().chain(arguments));
        let watch = Self { home, running };
        watch.wait_for(1, &[]);
        watch
    }

    /// Reads reports, one per line, until one has this number of files and exactly these findings. A file may be read while it is being
    /// saved, so earlier reports may differ.
    fn wait_for(&self, files: u64, rules: &[&str]) -> Value {
        loop {
            let report = self.running.event().expect("the watch has ended");
            let diagnostics = report["diagnostics"].as_array().unwrap();
            let found: Vec<&str> = diagnostics.iter().map(|found| found["rule"].as_str().unwrap()).collect();
            if report["files"] == files && found == rules {
                return report;
            }
        }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.home.path().join(name), text).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.home.path().join(from), self.home.path().join(to)).unwrap();
    }
}

#[test]
fn every_kind_of_file_change_causes_a_report() {
    let watch = Watch::new(&[]);
    watch.write("scripts/a.yaml", &broken());
    let report = watch.wait_for(1, &["unknown-key"]);
    assert_eq!(report["diagnostics"][0]["file"], "scripts/a.yaml");
    // Many editors write another file and rename it.
    watch.write("scripts/.a.yaml.new", SOUND);
    watch.rename("scripts/.a.yaml.new", "scripts/a.yaml");
    watch.wait_for(1, &[]);
    // Others keep the old file under another name.
    watch.rename("scripts/a.yaml", "scripts/a.yaml~");
    watch.write("scripts/a.yaml", &broken());
    watch.wait_for(1, &["unknown-key"]);
    fs::remove_file(watch.home.path().join("scripts/a.yaml")).unwrap();
    watch.wait_for(0, &[]);
    watch.write("scripts/b.yaml", &broken());
    watch.wait_for(1, &["unknown-key"]);
}

#[test]
fn dependencies_of_scripts_are_watched_even_when_new() {
    let watch = Watch::new(&[]);
    watch.write("bcc-script.toml", "[project]\nscheme = \"mine\"\n");
    watch.wait_for(1, &["unknown-scheme"]);
    let folder = watch.home.path().join("_system/config/custom/mine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ai_say_v1.md"), format!("{TEMPLATE}{{{{ 口号 }}}}")).unwrap();
    watch.wait_for(2, &["unknown-template-name"]);
    watch.write("_system/config/custom/mine/ai_say_v1.md", TEMPLATE);
    watch.wait_for(2, &[]);
    fs::create_dir_all(watch.home.path().join("schemas/replies")).unwrap();
    watch.write("schemas/replies/own.json", "{");
    watch.wait_for(2, &["reply-schema"]);
    fs::remove_dir_all(watch.home.path().join("schemas")).unwrap();
    watch.wait_for(2, &[]);
    fs::create_dir_all(watch.home.path().join("scripts/deep/deeper")).unwrap();
    watch.write("scripts/deep/deeper/b.yaml", SOUND);
    watch.wait_for(3, &[]);
}

#[test]
fn a_named_file_is_watched_while_it_is_missing() {
    let watch = Watch::new(&["scripts/a.yaml"]);
    fs::remove_file(watch.home.path().join("scripts/a.yaml")).unwrap();
    watch.wait_for(1, &["unreadable-file"]);
    watch.write("scripts/a.yaml", SOUND);
    watch.wait_for(1, &[]);
}

#[test]
fn a_recreated_folder_is_watched_again() {
    let watch = Watch::new(&[]);
    fs::create_dir(watch.home.path().join("skills")).unwrap();
    watch.rename("scripts", "away");
    watch.wait_for(0, &[]);
    watch.rename("away", "scripts");
    watch.wait_for(1, &[]);
    watch.write("scripts/a.yaml", &broken());
    watch.wait_for(1, &["unknown-key"]);
}

#[test]
fn a_link_is_watched_at_both_ends() {
    let watch = Watch::new(&[]);
    fs::create_dir(watch.home.path().join("shared")).unwrap();
    watch.write("shared/b.yaml", &broken());
    std::os::unix::fs::symlink("../shared/b.yaml", watch.home.path().join("scripts/b.yaml")).unwrap();
    watch.wait_for(2, &["unknown-key"]);
    watch.write("shared/b.yaml", SOUND);
    watch.wait_for(2, &[]);
}

#[test]
fn the_script_of_a_test_is_watched_when_the_tests_alone_are_checked() {
    let home = Home::new();
    ["scripts", "tests"].iter().for_each(|name| fs::create_dir(home.path().join(name)).unwrap());
    fs::write(home.path().join("scripts/b.yaml"), SOUND).unwrap();
    let test = "test: greets\nscript: ../scripts/b.yaml\ndialogue:\n  - expect: { location: greet }\n";
    fs::write(home.path().join("tests/a.yaml"), test).unwrap();
    let watch = Watch::with_home(home, &["tests"]);
    watch.write("scripts/b.yaml", &SOUND.replace("greet,", "welcome,"));
    watch.wait_for(1, &["unknown-test-target"]);
    // Two folders up, and not created yet.
    watch.write("tests/a.yaml", &test.replace("scripts/b", "flows/new/c"));
    watch.wait_for(1, &["missing-script"]);
    fs::create_dir_all(watch.home.path().join("flows/new")).unwrap();
    watch.write("flows/new/c.yaml", SOUND);
    watch.wait_for(1, &[]);
}

#[test]
fn the_skills_of_a_script_are_watched_in_any_folder() {
    let watch = Watch::new(&["scripts"]);
    watch.write("scripts/a.yaml", &SOUND.replace("  phases:", "  skills: [../lib/comfort.skill]\n  phases:"));
    watch.wait_for(1, &["unknown-skill-file"]);
    fs::create_dir(watch.home.path().join("lib")).unwrap();
    let actions = "actions: [{ action_type: ai_say, action_id: say, config: { content: 好 } }]";
    watch.write("lib/real.yaml", &format!("skill: {{ skill_id: comfort, {actions} }}"));
    std::os::unix::fs::symlink("real.yaml", watch.home.path().join("lib/comfort.skill")).unwrap();
    watch.wait_for(1, &[]);
    watch.write("lib/real.yaml", "services: {}");
    watch.wait_for(1, &["unknown-skill-file"]);
}

#[test]
fn an_interrupt_ends_the_watch() {
    let watch = Watch::new(&[]);
    kill_process(Pid::from_raw(watch.running.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    assert_eq!(watch.running.finish().code, Some(130));
}

#[test]
fn the_human_format_shows_the_time_of_each_check() {
    let home = Home::new();
    let file = home.file("a.yaml", SOUND);
    let running = home.start(["validate", "--watch", "a.yaml"]);
    // A valid script has no report, so wait for the next one.
    let line = loop {
        fs::rename(home.file("a.new", &broken()), &file).unwrap();
        match running.line_until(std::time::Instant::now() + TIMEOUT / 60) {
            Next::Line(line) if line.starts_with("── ") => break line,
            Next::Line(_) | Next::TimedOut => {}
            Next::End => panic!("the watch has ended"),
        }
    };
    let time = line.strip_prefix("── checked again at ").and_then(|rest| rest.strip_suffix(" ──")).unwrap();
    assert_eq!(time.split(':').map(str::len).collect::<Vec<_>>(), [2, 2, 2], "{line}");
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    // The remaining output, and no escape sequence that would clear a screen.
    let finished = running.finish();
    assert_eq!(finished.code, Some(130));
    assert!(finished.out.contains("error[unknown-key]") && !finished.out.contains('\u{1b}'), "{}", finished.out);
}

#[test]
fn a_watch_that_cannot_start_prints_the_reason() {
    let home = Home::new();
    let finished = home.finish(["validate", "--watch"], "");
    assert_eq!(finished.code, Some(2));
    assert!(finished.err.contains("there is nothing to check"), "{}", finished.err);
}
