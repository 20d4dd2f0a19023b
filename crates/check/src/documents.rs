//! Checks one document, a script or a skill file: walks it and runs the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::callables::can_insert;
use crate::checker::Checker;
use crate::collected::CalleeBody;
use crate::context::CheckContext;
use crate::growing_lists::growing_lists;
use crate::mistakes::mistaken_expressions;
use crate::rules::RULES;
use crate::semantic_model::SemanticModel;
use crate::unknown_names::unknown_names;
use crate::walk::{self, Tree};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::script::Script;
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::text::AuthorTexts;
use bcc_runtime::program::kind::ActionProperties;
use bcc_runtime::program::program::{ActionNeedingPermission, ProgramStep, Skill};

/// Which rules run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSelection {
    /// The rules that find what keeps a script from running.
    Essential,
    All,
}

/// A skill that a document needs and does not contain itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredInputs {
    /// Its id, as written.
    pub id: Spanned<String>,
    /// Whether a route or a trigger inserts it; otherwise an action calls it.
    pub inserted: bool,
}

/// The result of the check of a document.
pub struct CheckedDocument<T> {
    /// The compiled document; `None` if a part of it could not be read.
    pub tree: Option<T>,
    /// The names to which it assigns values, if all rules ran; `None` if the list is incomplete.
    pub names: Option<BTreeSet<String>>,
    pub needs: Vec<RequiredInputs>,
    /// For a script, the inserted actions that it contains.
    pub inserts: BTreeMap<String, ProgramStep>,
    /// The required permissions, each with the first action that needs it.
    pub permissions: BTreeMap<String, ActionNeedingPermission>,
    /// The behavior servers that are asked, each with the first action that does.
    pub servers: BTreeMap<String, ActionNeedingPermission>,
    /// For a script, the lists of the session that it only appends to.
    pub growing_lists: BTreeSet<String>,
    /// The expressions that certainly cannot be evaluated; empty if all rules ran, and reported them.
    pub mistaken_expressions: Vec<Expr>,
}

/// Checks a script and reports its problems.
pub fn session(
    script: &Script,
    context: &CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &Findings,
    selection: RuleSelection,
) -> CheckedDocument<Tree> {
    let skills = script.inline_skills();
    let mut checker = new_checker(&script.file, context, texts, findings);
    let tree = walk::script(&mut checker, script, &skills);
    let Checker { texts: compiled, collected, compiled_steps, .. } = checker;
    *texts = compiled;
    let model = SemanticModel::new(&script.file, Some(script), &skills, context, collected);
    unknown_names(&model, findings);
    run_rules(&model, findings, selection);
    let mut inserted = inserted(&model, &compiled_steps);
    let inserts = inserted.remove(&None).unwrap_or_default();
    let tree = tree.map(|mut tree| {
        for (number, skill) in tree.skills.iter_mut().enumerate() {
            skill.inserts = inserted.remove(&Some(number)).unwrap_or_default();
        }
        tree
    });
    CheckedDocument {
        tree,
        names: names_of(&model, selection),
        needs: needs(&model),
        inserts,
        permissions: permissions(&model),
        servers: servers(&model),
        growing_lists: growing_lists(&model, script),
        mistaken_expressions: mistakes_of(&model, selection),
    }
}

/// Checks the skill of a skill file and reports its problems.
pub fn skill(
    file: &Arc<SourceFile>,
    written: &WrittenSkill,
    context: &CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &Findings,
    selection: RuleSelection,
) -> CheckedDocument<Skill> {
    let mut checker = new_checker(file, context, texts, findings);
    let tree = walk::skill(&mut checker, 0, written);
    let Checker { texts: compiled, collected, compiled_steps, .. } = checker;
    *texts = compiled;
    let skills = [written];
    let model = SemanticModel::new(file, None, &skills, context, collected);
    unknown_names(&model, findings);
    run_rules(&model, findings, selection);
    let inserts = inserted(&model, &compiled_steps).remove(&Some(0)).unwrap_or_default();
    let tree = tree.map(|skill| Skill { inserts, file: Some(Arc::clone(file)), ..skill });
    let (names, needs, permissions) = (names_of(&model, selection), needs(&model), permissions(&model));
    let (servers, mistaken_expressions) = (servers(&model), mistakes_of(&model, selection));
    let (inserts, growing_lists) = (BTreeMap::new(), BTreeSet::new());
    CheckedDocument { tree, names, needs, inserts, permissions, servers, growing_lists, mistaken_expressions }
}

/// The mistaken expressions of a document that shall run.
fn mistakes_of(model: &SemanticModel<'_>, selection: RuleSelection) -> Vec<Expr> {
    match selection {
        RuleSelection::Essential => mistaken_expressions(model),
        RuleSelection::All => Vec::new(),
    }
}

/// A checker whose texts are added to those of the program.
fn new_checker<'a>(
    file: &'a Arc<SourceFile>,
    context: &'a CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &'a Findings,
) -> Checker<'a> {
    let mut checker = Checker::new(file, context, findings);
    checker.texts = std::mem::take(texts);
    // After a mistake, items that rules rely on may be missing.
    checker.collected.complete = findings.author_errors() == 0;
    checker
}

/// The names of the collected definitions; `None` if the document is incomplete.
fn names_of(model: &SemanticModel<'_>, selection: RuleSelection) -> Option<BTreeSet<String>> {
    let names = || model.collected.definitions.iter().map(|definition| definition.name.clone()).collect();
    (selection == RuleSelection::All && model.is_complete()).then(names)
}

/// The called and inserted skills that the document does not contain. Inserted actions are not included.
fn needs(model: &SemanticModel<'_>) -> Vec<RequiredInputs> {
    let own = |id: &str| model.skills.iter().any(|skill| skill.id.value == id);
    let calls = model.collected.calls.iter().map(|call| RequiredInputs { id: call.skill.clone(), inserted: false });
    let callables = model.callables();
    let action = |id: &str| callables.skill(id).is_none() && callables.action(id).is_some();
    let inserts = model.inserts().into_iter().filter(|(id, _)| !action(&id.value));
    let inserts = inserts.map(|(id, _)| RequiredInputs { id: id.clone(), inserted: true });
    calls.chain(inserts).filter(|needed| !own(&needed.id.value)).collect()
}

/// The permissions that the actions need according to their kinds.
fn permissions(model: &SemanticModel<'_>) -> BTreeMap<String, ActionNeedingPermission> {
    first_needing(model, |described| described.needs.iter().collect())
}

/// The behavior servers that the actions ask.
fn servers(model: &SemanticModel<'_>) -> BTreeMap<String, ActionNeedingPermission> {
    first_needing(model, |described| described.server.iter().collect())
}

/// What actions need according to their kinds, each with the first action that needs it.
fn first_needing(
    model: &SemanticModel<'_>,
    needed: impl Fn(&ActionProperties) -> Vec<&String>,
) -> BTreeMap<String, ActionNeedingPermission> {
    let mut first = BTreeMap::new();
    for action in &model.collected.actions {
        for what in action.described.iter().flat_map(&needed) {
            first.entry(what.clone()).or_insert_with(|| ActionNeedingPermission {
                action: action.id.value.clone(),
                file: Arc::clone(model.file),
                span: action.span,
            });
        }
    }
    first
}

/// The inserted actions, by the number of the skill that contains them and their routes; `None` for the script.
fn inserted(
    model: &SemanticModel<'_>,
    compiled_steps: &BTreeMap<usize, ProgramStep>,
) -> BTreeMap<Option<usize>, BTreeMap<String, ProgramStep>> {
    let callables = model.callables();
    let mut inserted: BTreeMap<Option<usize>, BTreeMap<String, ProgramStep>> = BTreeMap::new();
    for (id, body) in model.inserts() {
        if callables.skill(&id.value).is_some() {
            continue;
        }
        let Some(number) = callables.action(&id.value) else { continue };
        let Some(action) = model.collected.actions.get(number).filter(|action| can_insert(body, action)) else {
            continue;
        };
        let Some(step) = compiled_steps.get(&number) else { continue };
        let skill = match action.body {
            CalleeBody::Skill(number) => Some(number),
            CalleeBody::Session | CalleeBody::Phase(_) | CalleeBody::Topic(..) => None,
        };
        // An inserted action runs unconditionally.
        let step = ProgramStep { condition: None, ..step.clone() };
        inserted.entry(skill).or_default().insert(id.value.clone(), step);
    }
    inserted
}

/// Runs the rules. Findings inside a part that is already reported as an error are dropped: the first mistake explains
/// them.
fn run_rules(model: &SemanticModel<'_>, findings: &Findings, selection: RuleSelection) {
    let broken = findings.error_spans();
    let found = Findings::new();
    for rule in RULES.iter().filter(|rule| selection == RuleSelection::All || rule.essential) {
        (rule.check)(model, &found);
    }
    let is_consequence =
        |diagnostic: &Diagnostic| Arc::ptr_eq(&diagnostic.file, model.file) && broken.contains(diagnostic.span);
    findings.extend(found.into_vec().into_iter().filter(|diagnostic| !is_consequence(diagnostic)));
}
