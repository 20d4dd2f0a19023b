//! The walk: a script from its first phase to its last action, in the order in which it would run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::check::checker::Checker;
use crate::check::declarations::{Collected, check_list, collect};
use crate::check::known::Known;
use crate::program::kind::{Checking, Kind};
use crate::program::program::{Phase, Program, Topic};
use crate::prompt::expr::parse::Expr;
use crate::prompt::templates::Templates;
use crate::prompt::text::{Text, Texts};
use crate::script::fields::Words;
use crate::script::findings::Findings;
use crate::script::read::read;
use crate::script::script::{Script, WrittenPhase, WrittenTopic};
use crate::source::diagnostic::{Diagnostic, sort};
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::value::scopes::Scope;

/// What the check of a script needs besides its text.
pub struct Against<'a> {
    /// The kinds that there are.
    pub kinds: &'a [&'a dyn Kind],
    /// The templates of the session's scheme; scripts of one project share them.
    pub templates: Arc<Templates>,
    /// The schemas of replies, by kind.
    pub reply_schemas: &'a BTreeMap<String, Value>,
}

/// Reads and checks the script in `file`. Gives the program when there is no error, and everything that was found, in
/// the order of the file.
pub fn check(file: &Arc<SourceFile>, against: &Against<'_>) -> (Option<Program>, Vec<Diagnostic>) {
    let findings = Findings::new();
    let program = read(file, &findings).and_then(|script| program(&script, against, &findings));
    let program = program.filter(|_| !findings.has_errors());
    let mut diagnostics = findings.into_vec();
    sort(&mut diagnostics);
    (program, diagnostics)
}

fn program(script: &Script, against: &Against<'_>, findings: &Findings) -> Option<Program> {
    let Against { kinds, templates, reply_schemas } = against;
    let file = &script.file;
    let (mut globals, mut session) = (Collected::default(), Collected::default());
    for (list, place) in all_lists(script) {
        check_list(list, place, file, findings);
        collect(&mut globals, list, place, Scope::Global, file, findings);
        collect(&mut session, list, place, Scope::Session, file, findings);
    }
    let mut checker = Checker {
        file,
        findings,
        kinds,
        reply_schemas,
        texts: Texts::new(),
        templates,
        known: Known::default(),
        faults_of_templates: BTreeSet::new(),
        action_ids: BTreeMap::new(),
    };
    checker.known.enter(Scope::Global, globals.declarations);
    checker.known.enter(Scope::Session, session.declarations);
    let goal = optional_text(&mut checker, script.goal.as_ref());
    unique_ids(script.phases.iter().map(|phase| &phase.id), "phase_id", file, findings);
    unique_ids(script.phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.id), "topic_id", file, findings);
    let phases: Vec<Option<Phase>> = script.phases.iter().map(|written| phase(&mut checker, written)).collect();
    let declarations = checker.known.leave();
    let globals = checker.known.leave();
    let texts = checker.texts;
    Some(Program {
        id: script.id.value.clone(),
        name: script.name.clone(),
        who: script.who.clone().unwrap_or_else(|| "咨询师".into()),
        user: script.user.clone().unwrap_or_else(|| "来访者".into()),
        goal: goal.flatten(),
        model: script.model.as_ref().map(|model| model.value.clone()),
        history_messages: script.history.messages as usize,
        history_chars: script.history.chars as usize,
        globals,
        declarations,
        phases: phases.into_iter().collect::<Option<_>>()?,
        texts,
        templates: Arc::clone(templates),
    })
}

fn all_lists(script: &Script) -> Vec<(&[crate::script::declare::Declared], Scope)> {
    let mut lists = vec![(script.declare.as_slice(), Scope::Session)];
    for phase in &script.phases {
        lists.push((&phase.declare, Scope::Phase));
        lists.extend(phase.topics.iter().map(|topic| (topic.declare.as_slice(), Scope::Topic)));
    }
    lists
}

fn phase(checker: &mut Checker<'_>, written: &WrittenPhase) -> Option<Phase> {
    let condition = optional_expression(checker, written.condition.as_ref());
    let mut collected = Collected::default();
    collect(&mut collected, &written.declare, Scope::Phase, Scope::Phase, checker.file, checker.findings);
    for topic in &written.topics {
        collect(&mut collected, &topic.declare, Scope::Topic, Scope::Phase, checker.file, checker.findings);
    }
    checker.known.enter(Scope::Phase, collected.declarations);
    let goal = optional_text(checker, written.goal.as_ref());
    let topics: Vec<Option<Topic>> = written.topics.iter().map(|written| topic(checker, written)).collect();
    let declarations = checker.known.leave();
    Some(Phase {
        id: written.id.value.clone(),
        name: written.name.clone(),
        goal: goal?,
        declarations,
        condition: condition?,
        topics: topics.into_iter().collect::<Option<_>>()?,
    })
}

fn topic(checker: &mut Checker<'_>, written: &WrittenTopic) -> Option<Topic> {
    let condition = optional_expression(checker, written.condition.as_ref());
    let mut collected = Collected::default();
    collect(&mut collected, &written.declare, Scope::Topic, Scope::Topic, checker.file, checker.findings);
    checker.known.enter(Scope::Topic, collected.declarations);
    let goal = optional_text(checker, written.goal.as_ref());
    let steps = written.actions.iter().map(|raw| checker.step(raw)).collect::<Vec<_>>();
    let declarations = checker.known.leave();
    Some(Topic {
        id: written.id.value.clone(),
        name: written.name.clone(),
        goal: goal?,
        declarations,
        condition: condition?,
        steps: Arc::new(steps.into_iter().collect::<Option<_>>()?),
    })
}

/// `Some(None)` when nothing was written, `None` when what was written is wrong.
#[allow(clippy::option_option)] // the two levels say different things
fn optional_text(checker: &mut Checker<'_>, words: Option<&Words>) -> Option<Option<Text>> {
    words.map_or(Some(None), |words| checker.text(words).map(Some))
}

#[allow(clippy::option_option)] // as above
fn optional_expression(checker: &mut Checker<'_>, words: Option<&Words>) -> Option<Option<Expr>> {
    words.map_or(Some(None), |words| checker.expression(words).map(Some))
}

fn unique_ids<'a>(
    ids: impl Iterator<Item = &'a Spanned<String>>,
    name: &str,
    file: &Arc<SourceFile>,
    findings: &Findings,
) {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    // An empty id is one that is missing, which was reported.
    for id in ids.filter(|id| !id.value.is_empty()) {
        if let Some(first) = seen.get(id.value.as_str()) {
            let message = format!("the `{name}` `{}` is used twice", id.value);
            let diagnostic = Diagnostic::error("duplicate-id", message, file, id.span);
            findings.report(diagnostic.with_help("give each its own").with_related("first used here", file, *first));
            continue;
        }
        seen.insert(&id.value, id.span);
    }
}
