//! `migrate` shows, checks and writes what `validate --fix` would change.

use std::fs;

use crate::fixes::{NEW, OLD, run};
use crate::process::Home;

#[test]
fn migrate_shows_checks_and_writes() {
    let home = Home::new();
    let file = home.put("scripts/a.yaml", OLD);
    home.put("scripts/b.yaml", NEW.replace("goal: 放松", "tnoe: 温和"));
    let shown = run(&home, &["migrate"]);
    insta::assert_snapshot!(shown.out);
    assert_eq!(
        (shown.code, shown.err.as_str()),
        (Some(0), "2 files checked: 1 would change; use `--write` to write the changes\n")
    );
    let checked = run(&home, &["migrate", "--check"]);
    assert_eq!((checked.code, checked.out.as_str()), (Some(1), ""));
    assert_eq!(checked.err, "scripts/a.yaml: 3 legacy forms\n2 files checked: 1 would change\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD, "nothing is written unasked");
    let written = run(&home, &["migrate", "--write", "scripts/a.yaml"]);
    assert_eq!((written.code, written.out.as_str()), (Some(0), ""));
    assert_eq!(written.err, "scripts/a.yaml: 3 findings fixed\n1 file checked: 1 changed\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), NEW);
    let again = run(&home, &["migrate", "--check"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), "2 files checked: no legacy forms found\n"));
}

#[test]
fn migrate_lists_the_remaining_findings_with_place_and_help() {
    let home = Home::new();
    let twice = home.put("scripts/a.yaml", NEW.replace("goal: 放松", "content_template: 再见"));
    home.put("scripts/broken.yaml", format!("{NEW}  ]: x\n"));
    home.put("scripts/gbk.yaml", b"session:\n  session_name: \xc4\xe3\xba\xc3\n");
    let finished = run(&home, &["migrate", "--write"]);
    assert_eq!(finished.code, Some(1));
    for part in [
        "conflicting-spellings",
        "scripts/a.yaml:13:17",
        "keep the one you want",
        "yaml-syntax",
        "not-text",
        "3 files checked: none changed; the items above",
    ] {
        assert!(finished.err.contains(part), "{part}: {}", finished.err);
    }
    assert_eq!(run(&home, &["migrate", "--check"]).code, Some(1));
    assert_eq!(run(&home, &["migrate"]).code, Some(0), "who only looks is told, and nothing failed");
    assert_eq!(fs::read_to_string(twice).unwrap(), NEW.replace("goal: 放松", "content_template: 再见"));
}

#[test]
fn migrate_without_files_is_a_usage_error() {
    let home = Home::new();
    let finished = run(&home, &["migrate"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.err.contains("there is nothing to check"), "{}", finished.err);
}
