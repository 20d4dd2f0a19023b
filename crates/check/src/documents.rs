//! One document, walked and asked about by the rules: a script, or a skill in its own file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::callables::can_insert;
use crate::checker::Checker;
use crate::collected::CalleeBody;
use crate::context::CheckContext;
use crate::rules::RULES;
use crate::semantic_model::SemanticModel;
use crate::unknown_names::unknown_names;
use crate::walk::{self, Tree};
use bcc_lang::script::findings::Findings;
use bcc_lang::script::script::Script;
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::text::AuthorTexts;
use bcc_runtime::program::program::{Needing, ProgramStep, Skill};

/// Which rules are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSelection {
    /// Those without which nothing could run.
    Essential,
    All,
}

/// A skill that a document needs and does not hold itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredInputs {
    /// Its id, as written.
    pub id: Spanned<String>,
    /// Whether a route or a trigger inserts it; else an action calls it.
    pub inserted: bool,
}

/// What a document came to.
pub struct CheckedDocument<T> {
    /// What was made of it; none when not all of it could be read.
    pub tree: Option<T>,
    /// The names that it gives values to, where all rules were asked; none when something is missing from them.
    pub names: Option<BTreeSet<String>>,
    pub needs: Vec<RequiredInputs>,
    /// For a script, its own actions that it inserts.
    pub inserts: BTreeMap<String, ProgramStep>,
    /// What the project must allow, each with the first action that needs it.
    pub permits: BTreeMap<&'static str, Needing>,
}

/// Walks a script; what is wrong is reported.
pub fn session(
    script: &Script,
    against: &CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &Findings,
    asked: RuleSelection,
) -> CheckedDocument<Tree> {
    let skills = script.inline_skills();
    let mut checker = begin(&script.file, against, texts, findings);
    let tree = walk::script(&mut checker, script, &skills);
    let Checker { texts: read, seen, made, .. } = checker;
    *texts = read;
    let facts = SemanticModel::new(&script.file, Some(script), &skills, against, seen);
    unknown_names(&facts, findings);
    ask(&facts, findings, asked);
    let mut inserted = inserted(&facts, &made);
    let inserts = inserted.remove(&None).unwrap_or_default();
    let tree = tree.map(|mut tree| {
        for (number, skill) in tree.skills.iter_mut().enumerate() {
            skill.inserts = inserted.remove(&Some(number)).unwrap_or_default();
        }
        tree
    });
    CheckedDocument { tree, names: names_of(&facts, asked), needs: needs(&facts), inserts, permits: permits(&facts) }
}

/// Walks the skill of a file; what is wrong is reported.
pub fn skill(
    file: &Arc<SourceFile>,
    written: &WrittenSkill,
    against: &CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &Findings,
    asked: RuleSelection,
) -> CheckedDocument<Skill> {
    let mut checker = begin(file, against, texts, findings);
    let tree = walk::skill(&mut checker, 0, written);
    let Checker { texts: read, seen, made, .. } = checker;
    *texts = read;
    let skills = [written];
    let facts = SemanticModel::new(file, None, &skills, against, seen);
    unknown_names(&facts, findings);
    ask(&facts, findings, asked);
    let inserts = inserted(&facts, &made).remove(&Some(0)).unwrap_or_default();
    let tree = tree.map(|skill| Skill { inserts, file: Some(Arc::clone(file)), ..skill });
    let (names, needs, permits) = (names_of(&facts, asked), needs(&facts), permits(&facts));
    CheckedDocument { tree, names, needs, inserts: BTreeMap::new(), permits }
}

/// A walk whose texts join those of the program.
fn begin<'a>(
    file: &'a Arc<SourceFile>,
    against: &'a CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &'a Findings,
) -> Checker<'a> {
    let mut checker = Checker::new(file, against, findings);
    checker.texts = std::mem::take(texts);
    // What was not read because it is wrong may be just what a rule would miss.
    checker.seen.whole = findings.mistakes() == 0;
    checker
}

/// The names of what was seen; none when something is missing from it.
fn names_of(facts: &SemanticModel<'_>, asked: RuleSelection) -> Option<BTreeSet<String>> {
    let names = || facts.seen.definitions.iter().map(|definition| definition.name.clone()).collect();
    (asked == RuleSelection::All && facts.whole()).then(names)
}

/// The skills that are called or inserted, but for those that stand in the document; what can only be an action is none.
fn needs(facts: &SemanticModel<'_>) -> Vec<RequiredInputs> {
    let own = |id: &str| facts.skills.iter().any(|skill| skill.id.value == id);
    let calls = facts.seen.calls.iter().map(|call| RequiredInputs { id: call.skill.clone(), inserted: false });
    let callables = facts.callables();
    let action = |id: &str| callables.skill(id).is_none() && callables.action(id).is_some();
    let inserts = facts.inserts().into_iter().filter(|(id, _)| !action(&id.value));
    let inserts = inserts.map(|(id, _)| RequiredInputs { id: id.clone(), inserted: true });
    calls.chain(inserts).filter(|needed| !own(&needed.id.value)).collect()
}

/// What the actions need to be allowed, as their kinds tell.
fn permits(facts: &SemanticModel<'_>) -> BTreeMap<&'static str, Needing> {
    let mut permits = BTreeMap::new();
    for action in &facts.seen.actions {
        for what in action.described.iter().flat_map(|described| &described.needs) {
            permits.entry(*what).or_insert_with(|| Needing {
                action: action.id.value.clone(),
                file: Arc::clone(facts.file),
                span: action.span,
            });
        }
    }
    permits
}

/// The actions that are inserted, by the number of the skill in which they and their routes stand; none for the script.
fn inserted(
    facts: &SemanticModel<'_>,
    made: &BTreeMap<usize, ProgramStep>,
) -> BTreeMap<Option<usize>, BTreeMap<String, ProgramStep>> {
    let callables = facts.callables();
    let mut inserted: BTreeMap<Option<usize>, BTreeMap<String, ProgramStep>> = BTreeMap::new();
    for (id, body) in facts.inserts() {
        if callables.skill(&id.value).is_some() {
            continue;
        }
        let Some(number) = callables.action(&id.value) else { continue };
        let Some(action) = facts.seen.actions.get(number).filter(|action| can_insert(body, action)) else { continue };
        let Some(step) = made.get(&number) else { continue };
        let skill = match action.body {
            CalleeBody::Skill(number) => Some(number),
            CalleeBody::Session | CalleeBody::Phase(_) | CalleeBody::Topic(..) => None,
        };
        // Whoever inserts it means it to run.
        let step = ProgramStep { condition: None, ..step.clone() };
        inserted.entry(skill).or_default().insert(id.value.clone(), step);
    }
    inserted
}

/// Asks the rules. What they find inside of something that is already reported as an error is not said: the first mistake
/// explains it.
fn ask(facts: &SemanticModel<'_>, findings: &Findings, asked: RuleSelection) {
    let broken = findings.broken();
    let found = Findings::new();
    for rule in RULES.iter().filter(|rule| asked == RuleSelection::All || rule.essential) {
        (rule.check)(facts, &found);
    }
    let follows = |diagnostic: &Diagnostic| Arc::ptr_eq(&diagnostic.file, facts.file) && broken.holds(diagnostic.span);
    findings.extend(found.into_vec().into_iter().filter(|diagnostic| !follows(diagnostic)));
}
