//! From a parsed file to a [`Program`], or to all that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::check::checker::Checker;
use crate::check::facts::Facts;
use crate::check::library::Library;
use crate::check::rules::RULES;
use crate::check::secrets::secrets;
use crate::check::unknown_names::unknown_names;
use crate::check::walk;
use crate::program::kind::Kind;
use crate::program::limits::Budget;
use crate::program::program::Program;
use crate::program::routes::RouteTable;
use crate::prompt::templates::Templates;
use crate::script::findings::Findings;
use crate::script::read::{Document, document, read};
use crate::script::script::Script;
use crate::script::skill::WrittenSkill;
use crate::source::diagnostic::{Diagnostic, sort};
use crate::source::text::SourceFile;
use crate::source::yaml::Parsed;

/// What the check of a document needs besides its text.
pub struct Against<'a> {
    /// The kinds that there are.
    pub kinds: &'a [&'a dyn Kind],
    /// The templates of the session's scheme.
    pub templates: Arc<Templates>,
    /// The schemas of replies, by kind.
    pub reply_schemas: &'a BTreeMap<String, Value>,
    /// The skills of the project.
    pub library: &'a Library,
    /// The models of the project's configuration, when that could be read.
    pub models: Option<&'a [String]>,
}

/// Checks the script in a parsed file, as `run` does: what could not be run is an error. Gives the program when there is no
/// error, and everything that was found, in the order of the file.
pub fn check(file: &Arc<SourceFile>, parsed: Parsed, against: &Against<'_>) -> (Option<Program>, Vec<Diagnostic>) {
    let findings = Findings::new();
    findings.extend(parsed.diagnostics);
    let script = parsed.root.and_then(|root| read(file, &root, &findings));
    let program = script.and_then(|script| session(&script, against, &findings, Asked::Essential).0);
    let program = program.filter(|_| !findings.has_errors());
    (program, in_order(findings))
}

/// What came of the examination of a document.
#[derive(Debug)]
pub struct Examined {
    /// Everything that was found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The names that the document gives values to, for templates that use them; none when not all of it could be read.
    pub names: Option<BTreeSet<String>>,
}

/// Checks whatever document a parsed file holds with every rule, as `validate` does.
pub fn examine(file: &Arc<SourceFile>, parsed: Parsed, against: &Against<'_>) -> Examined {
    let findings = Findings::new();
    let broken = parsed.root.is_none();
    findings.extend(parsed.diagnostics);
    let mut names = (!broken).then(BTreeSet::new);
    findings.extend(secrets(file));
    match parsed.root.and_then(|root| document(file, &root, &findings)) {
        Some(Document::Session(script)) => {
            names = session(&script, against, &findings, Asked::All).1;
        }
        Some(Document::Skill(skill)) => names = lone_skill(file, &skill, against, &findings),
        Some(Document::Workflow(span)) => {
            let message = "this file is a workflow state file, which this release cannot check or run yet";
            let help = "docs/language.md tells what this release runs";
            findings.report(Diagnostic::error("not-supported-yet", message, file, span).with_help(help));
        }
        // What it says about its script is checked where the script is known.
        Some(Document::Test(_)) => {}
        None => names = None,
    }
    Examined { diagnostics: in_order(findings), names }
}

/// The findings in the order of the file, each once: an alias repeats what stands at its anchor, and all that is wrong there.
fn in_order(findings: Findings) -> Vec<Diagnostic> {
    let mut diagnostics = findings.into_vec();
    sort(&mut diagnostics);
    diagnostics
        .dedup_by(|a, b| (a.rule, a.span, &a.message) == (b.rule, b.span, &b.message) && Arc::ptr_eq(&a.file, &b.file));
    diagnostics
}

/// The names of what was seen; none when something is missing from it.
fn names_of(facts: &Facts<'_>) -> Option<BTreeSet<String>> {
    facts.whole().then(|| facts.seen.definitions.iter().map(|definition| definition.name.clone()).collect())
}

/// Which rules are asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Those without which nothing could run.
    Essential,
    /// All of them.
    All,
}

fn session(
    script: &Script,
    against: &Against<'_>,
    findings: &Findings,
    asked: Asked,
) -> (Option<Program>, Option<BTreeSet<String>>) {
    let skills = script.inline_skills();
    let mut checker = Checker::new(&script.file, against, findings);
    // What was not read because it is wrong may be just what a rule would miss.
    checker.seen.whole = findings.mistakes() == 0;
    let tree = walk::script(&mut checker, script, &skills);
    let Checker { texts, seen, .. } = checker;
    let facts = Facts::new(&script.file, Some(script), &skills, against, seen);
    unknown_names(&facts, findings);
    ask(&facts, findings, asked);
    let names = if asked == Asked::All { names_of(&facts) } else { None };
    let program = tree.map(|(globals, declarations, goal, phases)| Program {
        id: script.id.value.clone(),
        name: script.name.clone(),
        who: script.who.clone().unwrap_or_else(|| "咨询师".into()),
        user: script.user.clone().unwrap_or_else(|| "来访者".into()),
        goal,
        model: script.model.as_ref().map(|model| model.value.clone()),
        history_messages: script.history.messages as usize,
        history_chars: script.history.chars as usize,
        globals,
        declarations,
        phases,
        routes: RouteTable::default(),
        triggers: vec![],
        budget: Budget::default(),
        skills: BTreeMap::new(),
        inserts: BTreeMap::new(),
        texts,
        templates: Arc::clone(&against.templates),
    });
    (program, names)
}

fn lone_skill(
    file: &Arc<SourceFile>,
    skill: &WrittenSkill,
    against: &Against<'_>,
    findings: &Findings,
) -> Option<BTreeSet<String>> {
    let mut checker = Checker::new(file, against, findings);
    checker.seen.whole = findings.mistakes() == 0;
    walk::skill(&mut checker, 0, skill);
    let skills = [skill];
    let facts = Facts::new(file, None, &skills, against, checker.seen);
    unknown_names(&facts, findings);
    ask(&facts, findings, Asked::All);
    names_of(&facts)
}

/// Asks the rules. What they find inside of something that is already reported as an error is not said: the first mistake
/// explains it.
fn ask(facts: &Facts<'_>, findings: &Findings, asked: Asked) {
    let broken = findings.broken();
    let found = Findings::new();
    for rule in RULES.iter().filter(|rule| asked == Asked::All || rule.essential()) {
        rule.check(facts, &found);
    }
    let follows = |diagnostic: &Diagnostic| Arc::ptr_eq(&diagnostic.file, facts.file) && broken.holds(diagnostic.span);
    findings.extend(found.into_vec().into_iter().filter(|diagnostic| !follows(diagnostic)));
}
