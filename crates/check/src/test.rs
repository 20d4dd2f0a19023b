//! Checks conversation tests against their script (docs/tests.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::program::turn::ENGINE_NAMES;
use bcc_runtime::run::changes::CHANGED;
use bcc_runtime::run::decisions::PUSHED_BACK;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::callables::paths;
use crate::checker::Checker;
use crate::collected::Collected;
use crate::context::CheckContext;
use crate::document_paths::DocumentPathError;
use crate::listing::and;
use crate::reasons::REASONS;
use crate::rules::unknown_exit_reason::unknown;
use crate::walk;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document};
use bcc_lang::script::test::cases::cases;
use bcc_lang::script::test::replies::Asker;
use bcc_lang::script::test::test::{Expected, MAX_CHECKED_CASES, WrittenTest, read_case};
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::scopes::Scope;

/// The items of a script that a test may name.
#[derive(Clone, Debug, Default)]
pub struct ScriptOutline {
    /// Its actions, including those of the skills that it reaches.
    pub actions: BTreeSet<String>,
    pub places: BTreeSet<String>,
    /// The variables that it declares or sets, also in skills.
    pub variables: BTreeSet<String>,
    /// The names that it uses.
    pub used: BTreeSet<String>,
    pub triggers: BTreeSet<String>,
    /// Whether the lists are complete: the script and all skills that it reaches could be read.
    pub complete: bool,
}

/// The target of the path of a test's script.
#[derive(Clone, Debug)]
pub enum TestedScript {
    Script(Arc<ScriptOutline>),
    /// A file with another kind of document, such as a skill.
    Other,
    /// A broken file, whose problems are reported in the file itself.
    Unreadable,
    /// No file; with the name of a file in the same folder that was probably meant.
    Absent(Option<String>),
    /// A path that cannot be used.
    Unusable(DocumentPathError),
}

/// The outline of the script in a parsed file; `None` if it contains no script. Does not report problems of the script.
pub fn outline(file: &Arc<SourceFile>, root: &YamlNode, context: &CheckContext<'_>) -> Option<ScriptOutline> {
    let findings = Findings::new();
    let Some(ScriptDocument::Session(script)) = document(file, root, &findings) else { return None };
    let skills = script.inline_skills();
    let mut checker = Checker::new(file, context, &findings);
    walk::script(&mut checker, &script, &skills);
    let collected = checker.collected;
    let topics = script.phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.id);
    let places = script.phases.iter().map(|phase| &phase.id).chain(topics);
    let mut outline = ScriptOutline {
        places: places.map(|id| id.value.clone()).collect(),
        triggers: script.triggers.iter().map(|trigger| trigger.id.value.clone()).collect(),
        ..ScriptOutline::default()
    };
    let own: Vec<&str> = skills.iter().map(|skill| skill.id.value.as_str()).collect();
    let needed = outline.add(collected, &own);
    // The paths of the skills that a script names are not known here.
    let reached = needed.is_empty() || paths(&script).next().is_none() && outline.add_skills(needed, context);
    outline.complete &= reached && findings.author_errors() == 0;
    Some(outline)
}

impl ScriptOutline {
    /// Adds what was collected from a document that contains the skills `own`. Returns the skills that it needs from other files.
    fn add(&mut self, collected: Collected, own: &[&str]) -> Vec<String> {
        let actions: BTreeSet<String> = collected.actions.iter().map(|action| action.id.value.clone()).collect();
        let routes = collected.routes.iter().flat_map(|table| &table.on_exit.routes);
        let triggers = collected.triggers.iter().filter_map(|trigger| trigger.insert.as_ref());
        let inserts = routes.filter_map(|route| route.insert.as_ref()).chain(triggers);
        let inserts = inserts.filter(|id| !actions.contains(&id.value));
        let needed = collected.calls.iter().map(|call| &call.skill).chain(inserts);
        let needed = needed.filter(|id| !own.contains(&id.value.as_str())).map(|id| id.value.clone()).collect();
        self.complete = collected.complete;
        self.variables.extend(collected.definitions.into_iter().map(|definition| definition.name));
        self.used.extend(collected.uses.into_iter().map(|used| used.name));
        self.actions.extend(actions);
        needed
    }

    /// Adds these skills of the project, and those that they need. False if one of them cannot be found or read.
    fn add_skills(&mut self, mut pending: Vec<String>, context: &CheckContext<'_>) -> bool {
        let mut seen = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            let [skill] = context.library.all(&id) else { return false };
            let findings = Findings::new();
            let root = parse(&skill.file).root;
            let read = root.and_then(|root| document(&skill.file, &root, &findings));
            let Some(ScriptDocument::Skill(written)) = read else { return false };
            let mut checker = Checker::new(&skill.file, context, &findings);
            walk::skill(&mut checker, 0, &written);
            pending.extend(self.add(checker.collected, &[&id]));
            if !self.complete || findings.author_errors() > 0 {
                return false;
            }
        }
        true
    }
}

/// Checks the references of the test in a parsed file to its script. Does not report other problems of the test, and ignores
/// a file that contains no test.
pub fn examine_test(file: &Arc<SourceFile>, root: &YamlNode, tested: &TestedScript) -> Vec<Diagnostic> {
    let ignored = Findings::new();
    let Some(ScriptDocument::Test(test)) = document(file, root, &ignored) else { return vec![] };
    let findings = Findings::new();
    if let Some(path) = &test.script {
        findings.extend(check_script_path(path, tested, file));
    }
    let mut reported = BTreeSet::new();
    match cases(root, file, &ignored) {
        None => check_case(&test, tested, file, &mut reported, &findings),
        // Names that contain values of a case are checked for each case.
        Some(cases) => {
            for case in cases.iter().take(MAX_CHECKED_CASES) {
                let Some(test) = read_case(root, Some(case), file, &ignored) else { continue };
                check_case(&test, tested, file, &mut reported, &findings);
            }
        }
    }
    findings.into_vec()
}

/// The findings reported so far: a rule, a place and a name.
type Reported = BTreeSet<(&'static str, Span, String)>;

fn check_case(
    test: &WrittenTest,
    tested: &TestedScript,
    file: &Arc<SourceFile>,
    reported: &mut Reported,
    findings: &Findings,
) {
    for expected in test.expected() {
        if let Expected::ExitReason(reason) = expected
            && let Some(found) = unknown(reason, file)
            && reported.insert((found.rule, found.span, reason.value.clone()))
        {
            findings.report(found);
        }
    }
    if let TestedScript::Script(script) = tested
        && script.complete
    {
        check_names(test, script, file, reported, findings);
    }
}

fn check_script_path(path: &Spanned<String>, tested: &TestedScript, file: &Arc<SourceFile>) -> Option<Diagnostic> {
    let shown = shortened(&path.value);
    let (message, help) = match tested {
        TestedScript::Script(_) | TestedScript::Unreadable => return None,
        TestedScript::Absent(Some(near)) => {
            let folder = path.value.rfind('/').and_then(|end| path.value.get(..=end)).unwrap_or_default();
            let meant = format!("{folder}{near}");
            let message = msg!("there is no script `{shown}`");
            let diagnostic = Diagnostic::error("missing-script", message, file, path.span);
            let diagnostic = diagnostic.with_help(msg!("did you mean `{meant}`?"));
            // Another name might need quotes.
            let plain = meant.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-'));
            return Some(diagnostic.with_replacement(Some(meant.as_str()).filter(|_| plain)));
        }
        TestedScript::Absent(None) => (
            msg!("there is no script `{shown}`"),
            msg!("the path is relative to the folder of this test, as in `../scripts/intake.yaml`"),
        ),
        TestedScript::Unusable(error) => error.message_and_help(&shown, "script", "test", "../scripts/intake.yaml"),
        TestedScript::Other => (
            msg!("the file `{shown}` is not a script"),
            msg!("a script starts with `session:`; write the path of a script"),
        ),
    };
    Some(Diagnostic::error("missing-script", message, file, path.span).with_help(help))
}

/// Reports names in the test that the script does not have.
fn check_names(
    test: &WrittenTest,
    script: &ScriptOutline,
    file: &Arc<SourceFile>,
    reported: &mut Reported,
    findings: &Findings,
) {
    const RULE: &str = "unknown-test-target";
    let mut report = |name: &Spanned<String>, id: &str, message: Message, known: Vec<&str>, what: &'static str| {
        if !reported.insert((RULE, name.span, id.to_owned())) {
            return;
        }
        let known: Vec<&str> = known.into_iter().filter(|name| !name.is_empty()).collect();
        let diagnostic = Diagnostic::error(RULE, message, file, name.span);
        let near = findings.may_suggest().then(|| near_miss(id, known.iter().copied())).flatten();
        findings.report(match near {
            Some(near) => {
                let diagnostic = diagnostic.with_help(msg!("did you mean `{near}`?"));
                // The id may have a prefix, as in `monitor:ask_name`, or come from a value of a case.
                let fix = vec![Edit::replace(name.span, near)];
                let is_exact = file.slice(name.span).contains(id) && name.value == id;
                if is_exact { diagnostic.with_fix(msg!("write `{near}`"), fix) } else { diagnostic }
            }
            None if known.is_empty() => {
                diagnostic.with_help(msg!("the script has no {what}", what = Message::word(what)))
            }
            None => diagnostic.with_help(msg!(
                "the script has the {what} {}",
                and(known.into_iter()),
                what = Message::word(what)
            )),
        });
    };
    let actions = || script.actions.iter().map(String::as_str).collect::<Vec<_>>();
    let mut seen = BTreeSet::new();
    for replies in test.replies() {
        let Asker::One { action, .. } = &replies.asker else { continue };
        if action == "*" || script.actions.contains(calling_action(action)) || !seen.insert(action.clone()) {
            continue;
        }
        let message = msg!("the script has no action `{}`, so these replies are never used", shortened(action));
        let name = Spanned { value: replies.asker.written(), span: replies.span };
        report(&name, action, message, actions(), "actions");
    }
    for results in test.commands.iter().filter(|results| !script.actions.contains(&results.action.value)) {
        let id = &results.action.value;
        let message = msg!("the script has no action `{}`, so these results are never used", shortened(id));
        report(&results.action, id, message, actions(), "actions");
    }
    for (name, _) in &test.vars {
        let id = without_scope(&name.value);
        if !script.variables.contains(id) && !script.used.contains(id) && !ENGINE_NAMES.contains(&id) {
            let message = msg!("the script does not use `{}`, so this value has no effect", shortened(id));
            report(name, id, message, script.variables.iter().map(String::as_str).collect(), "variables");
        }
    }
    for expected in test.expected() {
        match expected {
            Expected::Route(name) => {
                let known = || [CHANGED, PUSHED_BACK].into_iter().chain(REASONS);
                if !script.triggers.contains(&name.value) && !known().any(|reason| reason == name.value) {
                    let text = shortened(&name.value);
                    let (message, known) = if script.variables.contains(&name.value) {
                        let message = msg!("`{text}` is a variable: a route of `on_change` has the reason `{CHANGED}`");
                        (message, vec![CHANGED])
                    } else {
                        let message = msg!("`{text}` is neither an exit reason nor a trigger of the script");
                        (message, script.triggers.iter().map(String::as_str).chain(known()).collect())
                    };
                    report(name, &name.value, message, known, "reasons of routes");
                }
            }
            Expected::Variable(name) => {
                let id = without_scope(&name.value);
                if !script.variables.contains(id) && !ENGINE_NAMES.contains(&id) {
                    let message = msg!("the script neither declares nor sets `{}`", shortened(id));
                    report(name, id, message, script.variables.iter().map(String::as_str).collect(), "variables");
                }
            }
            Expected::Location(id) if !script.actions.contains(&id.value) && !script.places.contains(&id.value) => {
                let message = msg!("the script has no action, topic or phase `{}`", shortened(&id.value));
                let known = script.actions.iter().chain(&script.places).map(String::as_str).collect();
                report(id, &id.value, message, known, "places");
            }
            Expected::Action(name) => {
                let id = name.value.split_once(':').map_or(name.value.as_str(), |(_, id)| id);
                if id != "*" && !script.actions.contains(calling_action(id)) {
                    let message = msg!("the script has no action `{}`", shortened(id));
                    report(name, id, message, actions(), "actions");
                }
            }
            _ => {}
        }
    }
}

/// The action that asks. What it asks for a task of a plan has the name of the task after its own, as `plan_it/Data`.
fn calling_action(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// The name of a variable without an optional scope prefix.
pub(crate) fn without_scope(name: &str) -> &str {
    match name.split_once('.') {
        Some((scope, rest)) if Scope::parse(scope).is_some() => rest,
        _ => name,
    }
}
