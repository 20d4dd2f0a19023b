//! Fixes that `validate --fix` leaves out.

use std::fs;

use crate::fixes::{NEW, OLD, run};
use crate::process::Home;

#[test]
fn a_fix_that_would_cause_more_errors_is_named() {
    let home = Home::new();
    let text = NEW.replace("content:", "contnet:").replace("名字 }}", "谁 }}{{ 何时 }}");
    let file = home.put("scripts/a.yaml", &text);
    let finished = run(&home, &["validate", "--fix"]);
    let line =
        "scripts/a.yaml:12: the fix of `unknown-key` was left out, because the file would have more errors after it";
    assert!(finished.err.contains(line), "{}", finished.err);
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn disabled_rules_and_allowed_findings_are_not_fixed() {
    let home = Home::new();
    let allowed = OLD.replace("say_goal: 放松", "say_goal: 放松 # bcc: allow(deprecated-field)");
    let file = home.put("scripts/a.yaml", &allowed);
    home.put("bcc-script.toml", "[rules]\ndeprecated-placeholder = \"off\"\n");
    let finished = run(&home, &["validate", "--fix"]);
    assert_eq!(
        (finished.code, finished.err.as_str()),
        (Some(0), "scripts/a.yaml: 1 finding fixed\n1 file, nothing to report\n")
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), allowed.replace("content_template", "content"));
}
