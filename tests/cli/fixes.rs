//! Tests of `validate --fix` and `migrate`: the changes, the bytes that stay, the findings that remain, and files that cannot be written.

use crate::pages;
mod outputs;
mod rejected;
mod template_fixes;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use bcc_authoring::fix::fix::{FixReport, FixRequest, fix};
use bcc_authoring::fix::rules::Rules;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate;
use bcc_engine::environment::Environment;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, Fix};
use bcc_lang::source::edits::{apply, are_disjoint};
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use proptest::prelude::*;
use serde_json::Value;

use crate::process::{Finished, Home, Running, install};

/// Three legacy forms, one in each line of the config, and one mistake that has no safe fix.
const OLD: &str = "\
session:
  session_id: visit # a comment with a\ttab
  declare: [{ var: 名字, value: 林 }]
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - action_type: ai_say
              action_id: greet
              config:
                content_template: \"您好，{名字}\"
                say_goal: 放松
";

const NEW: &str = "\
session:
  session_id: visit # a comment with a\ttab
  declare: [{ var: 名字, value: 林 }]
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - action_type: ai_say
              action_id: greet
              config:
                content: \"您好，{{ 名字 }}\"
                goal: 放松
";

fn run(home: &Home, arguments: &[&str]) -> Finished {
    home.finish(arguments, "")
}

fn request(folder: &Path) -> ValidateRequest {
    let project = Some(if folder.is_dir() { folder } else { folder.parent().unwrap() }.to_path_buf());
    ValidateRequest { paths: vec![folder.to_path_buf()], project, ..ValidateRequest::default() }
}

fn fix_folder(folder: &Path, rules: Rules) -> FixReport {
    fix(&FixRequest { check: request(folder), rules, write: true }, &Environment::default()).unwrap()
}

fn found(folder: &Path) -> Vec<Diagnostic> {
    validate(&request(folder), &Environment::default()).unwrap().diagnostics
}

/// The files of a folder of the repository whose names have this suffix.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(end));
    files.sort();
    files
}

#[test]
fn every_case_is_fixed_exactly_as_its_expected_text() {
    let mut cases = 0;
    for (folder, rules) in [("fix", Rules::All), ("migrate", Rules::LegacyForms)] {
        for before in files(&format!("tests/fixes/{folder}"), ".before.yaml") {
            let after = fs::read_to_string(before.to_string_lossy().replace(".before.", ".after.")).unwrap();
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("case.yaml");
            fs::copy(&before, &file).unwrap();
            fix_folder(home.path(), rules);
            assert_eq!(fs::read_to_string(&file).unwrap(), after, "{}", before.display());
            assert!(fix_folder(home.path(), rules).fixed.is_empty(), "{}: a second time", before.display());
            // The same with a byte-order mark and CRLF line endings.
            let with_returns = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
            fs::write(&file, with_returns(&fs::read_to_string(&before).unwrap())).unwrap();
            fix_folder(home.path(), rules);
            assert_eq!(fs::read_to_string(&file).unwrap(), with_returns(&after), "{}: CRLF", before.display());
            cases += 1;
        }
    }
    assert!(cases >= 10, "only {cases} cases");
}

/// Every script of the tests and every complete script of the pages.
fn scripts() -> Vec<(String, String)> {
    static READ: LazyLock<Vec<(String, String)>> = LazyLock::new(read_scripts);
    READ.clone()
}

fn read_scripts() -> Vec<(String, String)> {
    let mut scripts = Vec::new();
    for folder in ["tests/scripts/err", "tests/scripts/ok", "tests/scripts/validate", "scripts", "scripts/tests"] {
        for file in files(folder, ".yaml") {
            scripts.push((file.display().to_string(), fs::read_to_string(&file).unwrap()));
        }
    }
    for page in pages::all() {
        for block in page.blocks_in(&["yaml"]).filter(|block| block.text.starts_with("session:")) {
            scripts.push((format!("{}:{}", page.path, block.line), block.text.clone()));
        }
    }
    scripts
}

#[test]
fn fixing_twice_changes_nothing_more_and_adds_no_errors() {
    let home = tempfile::tempdir().unwrap();
    let scripts = scripts();
    assert!(scripts.len() > 180, "only {} scripts", scripts.len());
    for (number, (_, text)) in scripts.iter().enumerate() {
        fs::write(home.path().join(format!("{number:03}.yaml")), text).unwrap();
    }
    let errors = |found: &[Diagnostic], number: usize| {
        let name = format!("{number:03}.yaml");
        found.iter().filter(|found| found.is_error() && found.file.name().ends_with(&name)).count()
    };
    let before = found(home.path());
    let first = fix_folder(home.path(), Rules::All);
    assert!(first.fixed.len() > 20, "only {} of them were mended", first.fixed.len());
    assert!(!first.any_not_written());
    let after = found(home.path());
    for (number, (name, text)) in scripts.iter().enumerate() {
        // A file with syntax errors was not checked completely before the fix.
        let read = parse(&std::sync::Arc::new(bcc_lang::source::text::SourceFile::new("a", text.as_str())));
        let complete =
            read.diagnostics.is_empty() && ["session:", "skill:", "test:"].iter().any(|key| text.contains(key));
        assert!(!complete || errors(&after, number) <= errors(&before, number), "{name}");
    }
    let has_sure_fix = |found: &&Diagnostic| found.fixes.iter().any(|fix| fix.sure);
    let remaining: Vec<String> =
        after.iter().filter(has_sure_fix).map(|found| format!("{}: {}", found.file.name(), found.message)).collect();
    let second = fix_folder(home.path(), Rules::All);
    let names: Vec<&str> = second.fixed.iter().map(|file| file.after.name()).collect();
    assert!(names.is_empty(), "a second time mends {names:?}, with {remaining:?} left");
    let _ = fix_folder(home.path(), Rules::LegacyForms);
    let legacy_rules: Vec<&'static str> =
        found(home.path()).iter().map(|found| found.rule).filter(|rule| rule.starts_with("deprecated")).collect();
    assert!(legacy_rules.len() <= 2, "{legacy_rules:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_choice_of_fixes_of_any_script_touches_no_other_byte(
        script in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        instead in prop::sample::select(vec!["", " ", "：", "\t", "x", "\"", "\r\n", "{", "－ "]),
        choice in any::<u64>(),
    ) {
        let scripts = scripts();
        let mut text = script.get(&scripts).1.clone();
        // One of the scripts is empty.
        prop_assume!(!text.is_empty());
        let start = text.floor_char_boundary(place.index(text.len()));
        let end = text.ceil_char_boundary(start + 1);
        text.replace_range(start..end, instead);
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("a.yaml"), &text).unwrap();
        let found = found(&home.path().join("a.yaml"));
        let mut chosen: Vec<&Fix> = Vec::new();
        let fixes = found.iter().filter(|found| found.file.text() == text).flat_map(|found| &found.fixes);
        for (number, fix) in fixes.enumerate() {
            if choice >> (number % 64) & 1 == 1 && chosen.iter().all(|other| are_disjoint(&other.edits, &fix.edits)) {
                chosen.push(fix);
            }
        }
        let mut edits: Vec<_> = chosen.iter().flat_map(|fix| fix.edits.clone()).collect();
        let made = apply(&text, &edits).unwrap();
        edits.sort_by_key(|edit| edit.span);
        let (mut at, mut rest) = (0, made.as_str());
        for edit in &edits {
            rest = rest.strip_prefix(&text[at..edit.span.start]).expect("what stands before an edit stays");
            let plain = rest.strip_prefix(edit.text.as_str());
            let with_returns = || rest.strip_prefix(edit.text.replace('\n', "\r\n").as_str());
            rest = plain.or_else(with_returns).expect("an edit stands in its place");
            at = edit.span.end;
        }
        prop_assert_eq!(rest, &text[at..]);
    }
}

/// All values of a tree in order; the value of an alias is repeated at each use.
fn values(node: &YamlNode, into: &mut Vec<Value>) {
    match &node.kind {
        NodeKind::Scalar(scalar) => into.push(scalar.value()),
        NodeKind::Sequence(items) => items.iter().for_each(|item| values(item, into)),
        NodeKind::Mapping(entries) => entries.iter().for_each(|entry| values(&entry.value, into)),
    }
}

fn values_of(text: &str) -> Option<Vec<Value>> {
    let read = parse(&std::sync::Arc::new(bcc_lang::source::text::SourceFile::new("a", text)));
    let mut found = Vec::new();
    values(read.root.as_ref().filter(|_| read.diagnostics.is_empty())?, &mut found);
    Some(found)
}

/// The findings of each of these texts; all are checked by one call, each as a named file.
fn findings_of_each<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<Vec<Diagnostic>> {
    let home = tempfile::tempdir().unwrap();
    let place = |(number, text): (usize, &str)| {
        let path = home.path().join(format!("{number:04}.yaml"));
        fs::write(&path, text).unwrap();
        path
    };
    let paths: Vec<PathBuf> = texts.enumerate().map(place).collect();
    let project = Some(home.path().to_path_buf());
    let request = ValidateRequest { paths: paths.clone(), project, ..ValidateRequest::default() };
    let mut found: Vec<Vec<Diagnostic>> = vec![Vec::new(); paths.len()];
    for finding in validate(&request, &Environment::default()).unwrap().diagnostics {
        let name = Path::new(finding.file.name()).file_stem().unwrap().to_str().unwrap().to_owned();
        found[name.parse::<usize>().unwrap()].push(finding);
    }
    found
}

#[test]
fn a_sure_fix_changes_no_value_but_the_one_that_it_is_about() {
    let mut scripts = scripts();
    for file in files("tests/fixes/fix", ".before.yaml") {
        scripts.push((file.display().to_string(), fs::read_to_string(&file).unwrap()));
    }
    let errors = |found: &[Diagnostic]| found.iter().filter(|found| found.is_error()).count();
    let (mut tried, mut fixed) = (0, Vec::new());
    for ((name, text), findings) in scripts.iter().zip(findings_of_each(scripts.iter().map(|(_, text)| text.as_str())))
    {
        let Some(before) = values_of(text) else { continue };
        for finding in findings.iter().filter(|finding| finding.file.text() == text && finding.rule != "oldest-nesting")
        {
            for fix in finding.fixes.iter().filter(|fix| fix.sure && fix.title != "remove it") {
                tried += 1;
                let made = apply(text, &fix.edits).unwrap();
                let after = values_of(&made).unwrap_or_else(|| panic!("{name}: {}\n{made}", fix.title));
                let other = before.iter().zip(&after).filter(|(before, after)| before != after).count();
                // These turn one value into several, or write it in another form.
                let moved = ["deprecated-field", "full-width-separator", "older-engine"].contains(&finding.rule)
                    || fix.title.to_string().starts_with("write `[")
                    || fix.title == "write an ASCII colon and a space";
                assert!(moved || (before.len() == after.len() && other <= 1), "{name}: {}\n{made}", fix.title);
                // Below an unknown root key, nothing was checked before the fix.
                if text.lines().any(|line| line.starts_with("session:") || line.starts_with("skill:")) {
                    fixed.push((format!("{name}: {}", fix.title), made, errors(&findings)));
                }
            }
        }
    }
    for ((title, made, before), found) in
        fixed.iter().zip(findings_of_each(fixed.iter().map(|(_, made, _)| made.as_str())))
    {
        assert!(errors(&found) <= *before, "{title}\n{made}");
    }
    assert!(tried > 50, "only {tried} fixes were tried");
}

#[test]
fn validate_fix_applies_safe_fixes_and_reports_the_remaining_findings() {
    let home = Home::new();
    let fixed_file = home.put("scripts/a.yaml", OLD);
    let unfixed = home.put("scripts/b.yaml", OLD.replace("ai_say", "ai_sya"));
    home.put("scripts/c.yaml", NEW);
    let finished = run(&home, &["validate", "--fix", "--format", "json"]);
    assert_eq!(finished.code, Some(1), "{}", finished.err);
    assert_eq!(finished.err, "scripts/a.yaml: 3 findings fixed\n");
    let report: Value = serde_json::from_str(&finished.out).unwrap();
    let rules: Vec<&str> =
        report["diagnostics"].as_array().unwrap().iter().map(|found| found["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["unknown-kind"]);
    assert_eq!(report["diagnostics"][0]["fixes"][0]["sure"], false);
    assert_eq!(fs::read_to_string(&fixed_file).unwrap(), NEW);
    assert_eq!(fs::read_to_string(&unfixed).unwrap(), OLD.replace("ai_say", "ai_sya"), "a kind may be any other");
    fs::remove_file(unfixed).unwrap();
    let second = run(&home, &["validate", "--fix"]);
    assert_eq!((second.code, second.err.as_str()), (Some(0), "2 files, nothing to report\n"));
    assert_eq!(run(&home, &["validate", "--fix", "--watch"]).code, Some(2));
}

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

#[test]
fn links_permissions_byte_order_marks_and_line_endings_stay() {
    let home = Home::new();
    let old = format!("\u{feff}{}", OLD.replace('\n', "\r\n"));
    let file = home.put("kept/a.yaml", &old);
    fs::set_permissions(&file, Permissions::from_mode(0o751)).unwrap();
    fs::create_dir(home.path().join("scripts")).unwrap();
    symlink("../kept/a.yaml", home.path().join("scripts/link.yaml")).unwrap();
    symlink("link.yaml", home.path().join("scripts/other.yaml")).unwrap();
    let finished = run(&home, &["migrate", "--write"]);
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("\u{feff}{}", NEW.replace('\n', "\r\n")));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o751);
    assert!(home.path().join("scripts/link.yaml").is_symlink() && home.path().join("scripts/other.yaml").is_symlink());
    assert_eq!(fs::read_dir(home.path().join("kept")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn files_that_would_lose_something_are_not_changed_and_reported() {
    let home = Home::new();
    let linked = home.put("scripts/linked.yaml", OLD);
    fs::hard_link(&linked, home.path().join("other name")).unwrap();
    let readonly = home.put("scripts/readonly.yaml", OLD);
    fs::set_permissions(&readonly, Permissions::from_mode(0o444)).unwrap();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(OLD.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let utf16_file = home.put("scripts/utf16.yaml", &utf16);
    let finished = run(&home, &["validate", "--fix"]);
    assert_eq!(finished.code, Some(1));
    for part in
        ["scripts/linked.yaml: not fixed: it has 2 hard links", "scripts/readonly.yaml: not fixed: it is read-only"]
    {
        assert!(finished.err.contains(part), "{part}: {}", finished.err);
    }
    assert!(finished.out.contains("the file is UTF-16"), "{}", finished.out);
    assert_eq!(fs::read_to_string(&linked).unwrap(), OLD);
    assert_eq!(fs::read_to_string(&readonly).unwrap(), OLD);
    assert_eq!(fs::read(&utf16_file).unwrap(), utf16);
}

#[test]
fn a_read_only_folder_is_not_changed() {
    let home = Home::new();
    let file = home.put("scripts/a.yaml", OLD);
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let folder = home.path().join("scripts");
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    let mut command = home.command(["migrate", "--write"]);
    if fs::write(folder.join("probe"), "").is_ok() {
        // Root can write everywhere, so the test does not apply.
        fs::remove_file(folder.join("probe")).unwrap();
        let program = home.path().join("bcc-script");
        install(Path::new(env!("CARGO_BIN_EXE_bcc-script")), &program);
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        command = Command::new(program);
        command.args(["migrate", "--write"]).env_clear().envs(home.variables()).current_dir(home.path());
        command.uid(65534).gid(65534);
    }
    let finished = Running::start(command).finish();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.err);
    assert!(finished.err.contains("scripts/a.yaml: not fixed: Permission denied"), "{}", finished.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let home = Home::new();
    let file = home.put("scripts/a.yaml", OLD);
    // No file may grow, as on a full disk; the signal that comes with the limit is ignored.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" migrate --write", env!("CARGO_BIN_EXE_bcc-script")]);
    command.env_clear().envs(home.variables()).current_dir(home.path());
    let finished = Running::start(command).finish();
    assert_eq!(finished.code, Some(1), "{}", finished.err);
    assert!(finished.err.contains("scripts/a.yaml: not fixed: File too large"), "{}", finished.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD);
    assert_eq!(fs::read_dir(home.path().join("scripts")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_rewritten_document_is_reported_with_its_errors() {
    let legacy = "sessions:\n- session: a\n  phases:\n  - phase: b\n    steps:\n    - topic: c\n      actions:\n      - { type: ai_say, contnt: d }\n";
    let skill =
        "technique_id: a\ntopic:\n  actions:\n  - action_type: ai_say\n    action_id: b\n    config: { contnt: d }\n";
    for (text, today) in [(legacy, "session:\n"), (skill, "skill:\n")] {
        let home = Home::new();
        let file = home.put("scripts/a.yaml", text);
        let written = run(&home, &["migrate", "--write"]);
        assert_eq!(written.code, Some(1), "{}", written.err);
        assert!(written.err.contains("error[unknown-key]") && written.err.contains("`contnt`"), "{}", written.err);
        let summary = "1 file checked: 1 changed; the items above must be changed by hand\n";
        assert!(written.err.ends_with(summary), "{}", written.err);
        assert!(fs::read_to_string(&file).unwrap().starts_with(today));
    }
}

#[test]
fn an_unrecognized_file_is_not_in_the_current_form() {
    let home = Home::new();
    let text = "sessions:\n  session_id: a\n  phases:\n  - phase_id: b\n    topics: []\n";
    let file = home.put("scripts/a.yaml", text);
    let migrated = run(&home, &["migrate", "--write"]);
    assert_eq!(migrated.code, Some(1), "{}", migrated.err);
    // `sessions` is a misspelling of `session`: everything below it is in the current form.
    for part in ["a script starts with `session:`, not with `sessions:`", "rename to `session`"] {
        assert!(migrated.err.contains(part), "{part}: {}", migrated.err);
    }
    assert!(!migrated.err.contains("oldest"), "{}", migrated.err);
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}
