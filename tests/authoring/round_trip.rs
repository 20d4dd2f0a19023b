//! Scripts that `migrate` changes keep their meaning: older scripts of all test folders run as before, and scripts in the legacy
//! nesting (`tests/legacy/`) become the snapshot next to them and run to their end.

use crate::mutate;
use crate::seeds;
mod other_scripts;
mod routes;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bcc_authoring::fix::fix::{FixRequest, fix};
use bcc_authoring::fix::rules::Rules;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate;
use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::legacy::nesting::convert_oldest_nesting;
use bcc_lang::script::legacy::technique::older_skill_form;
use bcc_lang::script::read::{ScriptDocument, document};
use bcc_lang::source::comments::comments;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::edits::apply;
use bcc_lang::source::render::human::human;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::memory::MemoryStore;
use serde_json::Value;
use tempfile::TempDir;

use crate::seeds::{Form, Seed};

/// The answers after which a script is stopped; the scripts of the tests need fewer.
const MAX_ANSWERS: usize = 60;

/// The answers, given in this order, repeatedly.
const ANSWERS: [&str; 4] = ["小林", "3", "是的", "因为我想换个地方 now"];

/// A temporary folder with one script and the skills next to it.
struct ScriptFolder {
    folder: TempDir,
    script: PathBuf,
}

impl ScriptFolder {
    fn copy_of(script: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join(script.file_name().unwrap());
        // Without its permissions: it may be read-only.
        fs::write(&copy, fs::read(script).unwrap()).unwrap();
        let skills = script.parent().unwrap().join("skills");
        for entry in fs::read_dir(skills).into_iter().flatten() {
            let from = entry.unwrap().path();
            fs::create_dir_all(folder.path().join("skills")).unwrap();
            fs::copy(&from, folder.path().join("skills").join(from.file_name().unwrap())).unwrap();
        }
        Self { folder, script: copy }
    }

    fn with_text(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script.yaml");
        fs::write(&script, text).unwrap();
        Self { folder, script }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.script).unwrap()
    }

    fn request(&self) -> ValidateRequest {
        let project = Some(self.folder.path().to_path_buf());
        ValidateRequest { paths: vec![self.script.clone()], project, ..ValidateRequest::default() }
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        validate(&self.request(), &Environment::default()).unwrap().diagnostics
    }

    /// Migrates the script. Returns how many findings were fixed, and the remaining ones.
    fn migrate(&self) -> (usize, Vec<Diagnostic>) {
        let request = FixRequest { check: self.request(), rules: Rules::LegacyForms, write: true };
        let report = fix(&request, &Environment::default()).unwrap();
        assert!(!report.any_not_written());
        (report.fixed.iter().map(|file| file.fixed_rules.len()).sum(), report.remaining)
    }

    /// Every event of a session on the offline responder, without hashes of the script.
    fn run(&self) -> Result<(SessionPause, Vec<Value>), String> {
        let environment = Environment::default();
        let project = Project::in_directory(self.folder.path().to_path_buf(), false, &environment).unwrap();
        let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
        let request = RunRequest {
            file: self.script.clone(),
            session: Some("s".to_owned()),
            model: Some("offline".to_owned()),
            clock: Some("2026-11-21T20:00:00Z".to_owned()),
            ..RunRequest::default()
        };
        let events = Arc::new(Events::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let pause = runtime.block_on(async {
            let opened = engine.run(&request, events.clone()).await;
            let mut session = opened.map_err(|error| shown(&error))?.session;
            let mut answered = 0;
            loop {
                let pause = session.advance().await.map_err(|error| error.to_string())?;
                if pause != SessionPause::Waiting || answered == MAX_ANSWERS {
                    return Ok(pause);
                }
                session.answer(ANSWERS[answered % ANSWERS.len()], None).await.map_err(|error| error.to_string())?;
                answered += 1;
            }
        });
        let mut events = events.0.lock().unwrap().clone();
        events.iter_mut().for_each(without_hashes);
        pause.map(|pause| (pause, events))
    }
}

fn shown(error: &EngineError) -> String {
    match error {
        EngineError::Invalid(diagnostics) => human(diagnostics, false),
        error => error.to_string(),
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<Value>>);

impl Observer for Events {
    fn committed(&self, committed: &bcc_runtime::program::event::Committed<'_>) {
        self.0.lock().unwrap().push(serde_json::from_str(committed.line).unwrap());
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

/// Removes hashes: that of a script differs after a migration.
fn without_hashes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.contains("sha256"));
            fields.values_mut().for_each(without_hashes);
        }
        Value::Array(items) => items.iter_mut().for_each(without_hashes),
        _ => {}
    }
}

fn scripts(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

fn is_older(found: &&Diagnostic) -> bool {
    Rules::LegacyForms.concerns(found)
}

/// Migrates the script of `after` and checks that it means the same as `before`. Returns whether there was anything to migrate.
fn round_trip(name: &str, found: &[Diagnostic], before: &ScriptFolder, after: &ScriptFolder) -> bool {
    let older = found.iter().filter(is_older).count();
    let errors = |found: &[Diagnostic]| found.iter().filter(|found| found.is_error()).count();
    let (fixed, left) = after.migrate();
    assert!(left.is_empty(), "{name}: left\n{}\n{}", human(&left, false), after.text());
    assert_eq!(fixed > 0, older > 0, "{name}");
    if fixed == 0 {
        assert_eq!(before.text(), after.text(), "{name}");
        return false;
    }
    let remaining = after.diagnostics();
    assert_eq!(remaining.iter().filter(is_older).count(), 0, "{name}\n{}", human(&remaining, false));
    assert_eq!(after.migrate().0, 0, "{name}: a second time changes nothing");
    assert_eq!(errors(found), errors(&remaining), "{name}");
    if errors(found) == 0 && is_session(&before.text()) {
        assert_eq!(before.run(), after.run(), "{name}\n{}", after.text());
    }
    true
}

fn is_session(text: &str) -> bool {
    let file = Arc::new(SourceFile::new("a.yaml", text));
    let root = parse(&file).root.unwrap();
    matches!(document(&file, &root, &Findings::new()), Some(ScriptDocument::Session(_)))
}

#[test]
fn every_sound_script_of_the_tests_means_the_same_after_migration() {
    crate::at_root();
    let folders = ["tests/scripts/ok", "tests/scripts/validate", "scripts", "scripts/tests", "examples"];
    let (mut checked, mut compare) = (0, 0);
    for file in folders.into_iter().flat_map(scripts) {
        let before = ScriptFolder::copy_of(&file);
        let found = before.diagnostics();
        if found.iter().any(|found| found.is_error() && !is_older(&found)) {
            continue;
        }
        checked += 1;
        compare += usize::from(round_trip(&file.display().to_string(), &found, &before, &ScriptFolder::copy_of(&file)));
    }
    assert!(checked > 50 && compare >= 3, "{checked} seen, {compare} changed");
}

#[test]
fn every_script_of_the_conversations_and_pages_means_the_same_after_migration() {
    crate::at_root();
    let mut texts: Vec<(String, String)> = Vec::new();
    for file in scripts("tests/conversations") {
        let case: Value = serde_yaml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let written = case["script"].as_str().map(str::to_owned);
        let session = case["session"].as_object().cloned();
        let generated = case["actions"].as_array().map(|actions| {
            let mut session = session.clone().unwrap_or_default();
            session.entry("session_id").or_insert_with(|| "case".into());
            let topic = serde_json::json!({ "topic_id": "topic", "actions": actions });
            session.insert("phases".into(), serde_json::json!([{ "phase_id": "phase", "topics": [topic] }]));
            serde_json::to_string_pretty(&serde_json::json!({ "session": session })).unwrap()
        });
        let files = case["files"].as_object().into_iter().flatten();
        let files = files.filter(|(name, _)| name.ends_with(".yaml")).filter_map(|(_, text)| text.as_str());
        let all = written.or(generated).into_iter().chain(files.map(str::to_owned));
        texts.extend(all.map(|text| (file.display().to_string(), text)));
    }
    let mut pages = Vec::new();
    for folder in ["docs", "docs/actions", "docs/diagnostics"] {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for fence in text.split("\n```yaml\n").skip(1) {
            let body = fence.split("\n```").next().unwrap_or_default();
            texts.push((page.display().to_string(), format!("{body}\n")));
        }
    }
    let compare = texts.iter().filter(|(name, text)| {
        let before = ScriptFolder::with_text(text);
        let found = before.diagnostics();
        // A page shows scripts with other errors as wrong examples; they are not compared.
        let older = found.iter().filter(is_older).count();
        let sound = found.iter().all(|found| !found.is_error() || found.rule == "oldest-nesting");
        older > 0 && sound && round_trip_of_any(name, &found, &before, &ScriptFolder::with_text(text))
    });
    assert!(compare.count() >= 4);
}

/// [`round_trip`], also for the legacy nesting, which cannot run before the migration.
fn round_trip_of_any(name: &str, found: &[Diagnostic], before: &ScriptFolder, after: &ScriptFolder) -> bool {
    if found.iter().any(|found| found.rule == "oldest-nesting") {
        assert_eq!(after.migrate().1.len(), 0, "{name}");
        return after.run().is_ok();
    }
    round_trip(name, found, before, after)
}

#[test]
fn scripts_in_the_legacy_nesting_are_migrated_and_run_to_their_end() {
    crate::at_root();
    let files = scripts("tests/legacy");
    assert!(files.len() >= 6);
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = ScriptFolder::copy_of(&file);
        assert!(folder.run().unwrap_err().contains("bcc-script migrate --write"), "{name}: the remedy is told");
        let (fixed, left) = folder.migrate();
        assert!(fixed > 0 && left.is_empty(), "{name}\n{}", human(&left, false));
        assert_eq!(folder.migrate().0, 0, "{name}: a second time changes nothing");
        let (pause, events) = folder.run().unwrap_or_else(|report| panic!("{name}\n{report}\n{}", folder.text()));
        assert_eq!(pause, SessionPause::Completed, "{name}");
        assert!(events.iter().any(|event| event["type"] == "message"), "{name}");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../legacy");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        // Makes carriage returns and the byte order mark visible.
        let text = folder.text().replace('\r', "␍").replace('\u{feff}', "<mark>");
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}

/// What cannot be fixed safely stays unchanged, and the reason is reported.
#[test]
fn what_cannot_be_fixed_safely_is_left_and_reported() {
    let table = [
        ("sessions:\n  - session: a\n    phases: []\n  - session: b\n    phases: []\n", "in its own file"),
        ("sessions:\n  session: a\n  phases: []\n", "write one `session:`"),
        (
            "sessions: &a\n  - &b\n    session: x\n    phases: &c\n      - phase: y\n        steps: []\nx-more: *c\n",
            "write one",
        ),
        (
            "sessions:\n- session: a\n  phases:\n  - phase: b\n    steps:\n    - topic: c\n      actions:\n      - &x { type: ai_say, content: d }\n      - *x\n",
            "an alias repeats",
        ),
        ("sessions:\n- session: a\n  session: b\n  phases: []\n", "appears more than once"),
    ];
    for (text, message) in table {
        let folder = ScriptFolder::with_text(text);
        let (_, left) = folder.migrate();
        let shown = human(&left, false);
        assert_eq!(folder.text(), text, "{shown}");
        assert!(shown.contains(message), "{text}\n{shown}");
    }
}

/// Other mistakes of a script do not prevent its migration; they are reported for the current form.
#[test]
fn mistakes_of_a_migrated_script_are_reported_for_the_current_form() {
    let script = |action: &str, topic: &str| {
        format!(
            "sessions:\n- session: 谈话\n  phases:\n  - phase: 开始\n    steps:\n    - topic: 问候{topic}\n      actions:\n      - {action}\n"
        )
    };
    let table = [
        (script("{ type: ai_sya, content: 您好 }", ""), vec!["unknown-kind"]),
        (script("{ type: ai_say, contnt: 您好 }", ""), vec!["unknown-key"]),
        (script("{ type: ai_say, content: 您好 }", "\n      colour: red"), vec!["unknown-key"]),
        (script("{ content: 您好 }", ""), vec!["missing-key", "missing-key", "unknown-key"]),
        ("sessions:\n- session: a\n  phases:\n  - steps: []\n".to_owned(), vec!["empty-list", "missing-key"]),
    ];
    for (text, rules) in table {
        let folder = ScriptFolder::with_text(&text);
        folder.migrate();
        let found = folder.diagnostics();
        let mut errors: Vec<&str> = found.iter().filter(|found| found.is_error()).map(|found| found.rule).collect();
        errors.sort_unstable();
        assert_eq!(errors, rules, "{text}\n{}\n{}", folder.text(), human(&found, false));
        assert!(folder.text().starts_with("session:\n"));
    }
}

/// The texts of all scalars except those of routes, whose targets may have got another id.
fn scalars(node: &YamlNode, found: &mut Vec<String>) {
    match &node.kind {
        NodeKind::Scalar(scalar) => found.push(scalar.text.clone()),
        NodeKind::Sequence(items) => items.iter().for_each(|item| scalars(item, found)),
        NodeKind::Mapping(entries) => {
            let compared = entries.iter().filter(|entry| !matches!(entry.key.value.as_str(), "goto" | "insert"));
            compared.for_each(|entry| scalars(&entry.value, found));
        }
    }
}

/// Checks what must hold for the fix of an older form in any file. Returns whether there is such a fix.
fn sound(text: &str) -> Result<bool, String> {
    let file = Arc::new(SourceFile::new("mutant.yaml", text));
    let parsed = parse(&file);
    let Some(root) = parsed.root else { return Ok(false) };
    let found = convert_oldest_nesting(&file, &root).or_else(|| older_skill_form(&file, &root));
    let Some(fix) = found.as_ref().and_then(|found| found.fixes.first()) else { return Ok(false) };
    let fixed_text = apply(text, &fix.edits).map_err(|error| error.to_string())?;
    let fixed_file = Arc::new(SourceFile::new("mutant.yaml", fixed_text.as_str()));
    let fixed_parse = parse(&fixed_file);
    let fixed_root = fixed_parse.root.ok_or("it is no YAML any more")?;
    if let Some(problem) = fixed_parse.diagnostics.first() {
        return Err(problem.message.to_string());
    }
    let all_comments = |file: &SourceFile| {
        let mut texts: Vec<String> = comments(file).comments.iter().map(|span| file.slice(*span).to_owned()).collect();
        texts.sort();
        texts
    };
    if all_comments(&file) != all_comments(&fixed_file) {
        return Err("a comment is lost".to_owned());
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    scalars(&root, &mut before);
    scalars(&fixed_root, &mut after);
    for scalar in before {
        let at = after.iter().position(|other| *other == scalar);
        match at {
            Some(at) => drop(after.swap_remove(at)),
            // An id or a route that was not a valid id.
            None if scalar.chars().any(|c| !c.is_alphanumeric()) && scalar.chars().count() < 200 => {}
            None => return Err(format!("the text {scalar:?} is lost")),
        }
    }
    if convert_oldest_nesting(&fixed_file, &fixed_root).is_some()
        || older_skill_form(&fixed_file, &fixed_root).is_some()
    {
        return Err("it is as old as before".to_owned());
    }
    Ok(true)
}

#[test]
fn the_fix_of_an_older_file_loses_nothing() {
    crate::at_root();
    let skill = "# 一\ntechnique_id: a # 二\nmetadata: { x: 1 }\noutputs: [m]\ntopic: # 三\n  # 四\n  topic_id: t\n  declare:\n  - var: x\n  actions:\n  - action_type: ai_say\n    action_id: b\n    config:\n      content: |\n        五\n\n        六\ndescription: >\n  七\n";
    let mut seeds: Vec<Seed> = scripts("tests/legacy")
        .iter()
        .map(|file| Seed { form: Form::Script, bytes: fs::read(file).unwrap() })
        .collect();
    seeds.push(Seed { form: Form::Script, bytes: skill.as_bytes().to_vec() });
    let mut all = seeds::all();
    all.retain(|seed| seed.form == Form::Script);
    let base = std::env::var("BCC_MUTATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7_u64);
    let cases = std::env::var("BCC_MUTATE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_200_u64);
    let mut fixed = 0;
    for case in 0..cases {
        let mut rng = fastrand::Rng::with_seed(base.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(case));
        let seed = &seeds[rng.usize(..seeds.len())];
        let bytes = mutate::mutant(&mut rng, seed, &all);
        let Ok(text) = String::from_utf8(bytes) else { continue };
        match sound(&text) {
            Ok(offered) => fixed += u64::from(offered),
            Err(problem) => panic!("case {case} of {base}: {problem}\n{text}"),
        }
    }
    assert!(fixed > cases / 8, "only {fixed} of {cases} were fixed");
}
