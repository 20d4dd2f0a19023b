//! Walks a script or a skill in the order of execution, from the first phase to the last action, and compiles it.

use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::checker::Checker;
use crate::cleanup::Cleanup;
use crate::collected::{ActionPosition, AssignmentKind, CalleeBody, Definition};
use crate::declarations::{CollectedDeclarations, check_list, collect};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::declare::Declared;
use bcc_lang::script::fields::TextField;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::limits::WrittenStrategy;
use bcc_lang::script::script::{Script, WrittenPhase, WrittenTopic};
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::text::Text;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};
use bcc_runtime::program::kind::KindChecker;
use bcc_runtime::program::limits::{ForEach, Priority, Strategy};
use bcc_runtime::program::program::{Phase, Skill, Topic};
use bcc_runtime::program::route_table::{ChangeTable, RouteTable, Trigger};
use bcc_runtime::program::tool_rule::ToolRule;

/// The compiled parts of a script.
pub struct Tree {
    pub globals: Arc<DeclarationMap>,
    pub declarations: Arc<DeclarationMap>,
    pub goal: Option<Text>,
    pub phases: Vec<Phase>,
    pub routes: RouteTable,
    pub changes: ChangeTable,
    pub triggers: Vec<Trigger>,
    pub tools: Vec<ToolRule>,
    pub skills: Vec<Skill>,
}

/// Walks a script. Returns its tree if all of it could be read.
pub fn script(checker: &mut Checker<'_>, script: &Script, skills: &[&WrittenSkill]) -> Option<Tree> {
    let (file, findings) = (checker.file, checker.findings);
    let (mut globals, mut session) = (CollectedDeclarations::default(), CollectedDeclarations::default());
    for (list, place) in all_lists(script) {
        check_list(list, place, file, findings);
        collect(&mut globals, list, place, Scope::Global, file, findings);
        collect(&mut session, list, place, Scope::Session, file, findings);
    }
    checker.collected.enter(CalleeBody::Session);
    add_definitions(checker, &script.declare, Scope::Session, CalleeBody::Session);
    checker.known.enter(Scope::Global, globals.declarations);
    checker.known.enter(Scope::Session, session.declarations);
    let goal = optional_text(checker, script.goal.as_ref());
    checker.hear(&script.answer_tables.hear);
    unique_ids(script.phases.iter().map(|phase| &phase.id), "phase_id", file, findings);
    unique_ids(script.phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.id), "topic_id", file, findings);
    let phases: Vec<Option<Phase>> =
        script.phases.iter().enumerate().map(|(number, written)| phase(checker, number, written)).collect();
    checker.body = CalleeBody::Session;
    checker.stop_hearing();
    let routes = checker.routes(script.on_exit.as_ref());
    let changes = checker.changes(script.answer_tables.on_change.as_ref());
    let triggers = checker.triggers(&script.triggers);
    let variables = all_lists(script).into_iter().flat_map(|(list, _)| list).map(|declared| &declared.declaration);
    let variables = variables.map(|declaration| (declaration.name.clone(), declaration.clone())).collect();
    let tools = checker.tools(&script.tools, variables);
    checker.collected.leave(CalleeBody::Session);
    let skills: Vec<Option<Skill>> =
        skills.iter().enumerate().map(|(number, written)| skill(checker, number, written)).collect();
    let declarations = checker.known.leave();
    let globals = checker.known.leave();
    let phases = phases.into_iter().collect::<Option<_>>()?;
    let skills = skills.into_iter().collect::<Option<_>>()?;
    Some(Tree { globals, declarations, goal: goal?, phases, routes, changes, triggers, tools: tools?, skills })
}

/// Walks a skill, which can use only its inputs and the names of the engine. Returns it if all of it could be read, without
/// the actions that it inserts.
pub fn skill(checker: &mut Checker<'_>, number: usize, written: &WrittenSkill) -> Option<Skill> {
    let outer = std::mem::take(&mut checker.known);
    // The author of a skill does not know what its callers listen for.
    let heard = std::mem::take(&mut checker.heard);
    checker.body = CalleeBody::Skill(number);
    checker.collected.enter(checker.body);
    check_list(&written.inputs, Scope::Topic, checker.file, checker.findings);
    let mut inputs = CollectedDeclarations::default();
    collect(&mut inputs, &written.inputs, Scope::Topic, Scope::Topic, checker.file, checker.findings);
    for topic in &written.topics {
        check_list(&topic.declare, Scope::Topic, checker.file, checker.findings);
        collect(&mut inputs, &topic.declare, Scope::Topic, Scope::Topic, checker.file, checker.findings);
    }
    let from = checker.collected.definitions.len();
    add_definitions(checker, &written.inputs, Scope::Topic, CalleeBody::Skill(number));
    checker.collected.definitions.iter_mut().skip(from).for_each(|definition| definition.how = AssignmentKind::Input);
    for topic in &written.topics {
        add_definitions(checker, &topic.declare, Scope::Topic, CalleeBody::Skill(number));
    }
    checker.known.enter(Scope::Global, DeclarationMap::new());
    checker.known.enter(Scope::Session, DeclarationMap::new());
    checker.known.enter(Scope::Topic, inputs.declarations);
    unique_ids(written.topics.iter().map(|topic| &topic.id), "topic_id", checker.file, checker.findings);
    let mut steps: Vec<_> = written.actions.iter().map(|raw| checker.step(raw)).collect();
    steps.extend(written.topics.iter().map(|topic| checker.skill_topic(topic)));
    checker.collected.leave(checker.body);
    // A skill has one scope: variables that it sets belong to it too.
    let mut declarations = DeclarationMap::new();
    for _ in 0..3 {
        for (name, declaration) in checker.known.leave().iter() {
            declarations.entry(name.clone()).or_insert_with(|| declaration.clone());
        }
    }
    checker.known = outer;
    checker.heard = heard;
    checker.body = CalleeBody::Session;
    Some(Skill {
        id: written.id.value.clone(),
        inputs: Arc::new(declarations),
        input_names: written.inputs.iter().map(|input| input.declaration.name.clone()).collect(),
        outputs: written.outputs.iter().map(|output| output.value.clone()).collect(),
        steps: Arc::new(steps.into_iter().collect::<Option<_>>()?),
        inserts: BTreeMap::new(),
        file: None,
    })
}

fn add_definitions(checker: &mut Checker<'_>, list: &[Declared], place: Scope, body: CalleeBody) {
    for declared in list {
        let Declaration { name, value, declared: kind, .. } = &declared.declaration;
        let order = checker.collected.tick();
        checker.collected.definitions.push(Definition {
            name: name.clone(),
            span: declared.span,
            at: ActionPosition { body, action: None },
            how: AssignmentKind::Declared,
            scope: Some(declared.scope.unwrap_or(place)),
            to: declared.scope.unwrap_or(place),
            order,
            declared: *kind,
            has_value: !value.is_null(),
        });
    }
}

fn all_lists(script: &Script) -> Vec<(&[bcc_lang::script::declare::Declared], Scope)> {
    let mut lists = vec![(script.declare.as_slice(), Scope::Session)];
    for phase in &script.phases {
        lists.push((&phase.declare, Scope::Phase));
        lists.extend(phase.topics.iter().map(|topic| (topic.declare.as_slice(), Scope::Topic)));
    }
    lists
}

fn phase(checker: &mut Checker<'_>, number: usize, written: &WrittenPhase) -> Option<Phase> {
    checker.body = CalleeBody::Phase(number);
    checker.collected.enter(checker.body);
    let condition = optional_expression(checker, written.condition.as_ref());
    let mut collected = CollectedDeclarations::default();
    collect(&mut collected, &written.declare, Scope::Phase, Scope::Phase, checker.file, checker.findings);
    for topic in &written.topics {
        collect(&mut collected, &topic.declare, Scope::Topic, Scope::Phase, checker.file, checker.findings);
    }
    checker.known.enter(Scope::Phase, collected.declarations);
    add_definitions(checker, &written.declare, Scope::Phase, CalleeBody::Phase(number));
    let goal = optional_text(checker, written.goal.as_ref());
    checker.hear(&written.answer_tables.hear);
    let topics: Vec<Option<Topic>> = written
        .topics
        .iter()
        .enumerate()
        .map(|(topic_number, written)| topic(checker, (number, topic_number), written))
        .collect();
    checker.body = CalleeBody::Phase(number);
    checker.stop_hearing();
    let routes = checker.routes(written.on_exit.as_ref());
    let changes = checker.changes(written.answer_tables.on_change.as_ref());
    checker.collected.leave(checker.body);
    let declarations = checker.known.leave();
    Some(Phase {
        id: written.id.value.clone(),
        name: written.name.clone(),
        goal: goal?,
        declarations,
        condition: condition?,
        topics: topics.into_iter().collect::<Option<_>>()?,
        routes,
        changes,
    })
}

fn topic(checker: &mut Checker<'_>, (phase, number): (usize, usize), written: &WrittenTopic) -> Option<Topic> {
    checker.body = CalleeBody::Topic(phase, number);
    checker.collected.enter(checker.body);
    let condition = optional_expression(checker, written.condition.as_ref());
    let mut collected = CollectedDeclarations::default();
    collect(&mut collected, &written.declare, Scope::Topic, Scope::Topic, checker.file, checker.findings);
    // The list is evaluated outside the topic; its element is known inside.
    let list = written.for_each.as_ref().map(|each| checker.list(&each.list));
    checker.known.enter(Scope::Topic, collected.declarations);
    add_definitions(checker, &written.declare, Scope::Topic, checker.body);
    if let Some(each) = &written.for_each {
        checker.element(&each.element);
    }
    let goal = optional_text(checker, written.goal.as_ref());
    let strategy = strategy(checker, written.strategy.as_ref());
    checker.hear(&written.answer_tables.hear);
    let steps = written.actions.iter().map(|raw| checker.step(raw)).collect::<Vec<_>>();
    checker.stop_hearing();
    let finally = checker.cleanup(&written.finally, Cleanup::Finally);
    let routes = checker.routes(written.on_exit.as_ref());
    let changes = checker.changes(written.answer_tables.on_change.as_ref());
    checker.collected.leave(checker.body);
    let declarations = checker.known.leave();
    let element = || written.for_each.as_ref().map(|each| each.element.value.clone()).unwrap_or_default();
    let for_each = match list {
        Some(list) => Some(ForEach { list: list?, element: element() }),
        None => None,
    };
    Some(Topic {
        id: written.id.value.clone(),
        name: written.name.clone(),
        goal: goal?,
        declarations,
        condition: condition?,
        steps: Arc::new(steps.into_iter().collect::<Option<_>>()?),
        routes,
        changes,
        strategy: strategy?,
        time_budget: written.time_budget.as_ref().map(|minutes| minutes.value),
        finally: finally?,
        priority: written.priority.as_ref().and_then(|name| Priority::parse(name.value)).unwrap_or_default(),
        for_each,
    })
}

pub(crate) fn strategy(checker: &mut Checker<'_>, written: Option<&WrittenStrategy>) -> Option<Strategy> {
    let Some(written) = written else { return Some(Strategy::default()) };
    let text = optional_text(checker, written.text.as_ref());
    let min_completeness_requirement = optional_text(checker, written.min_completeness_requirement.as_ref());
    let retry_strategy = optional_text(checker, written.retry_strategy.as_ref());
    Some(Strategy {
        text: text?,
        min_completeness_requirement: min_completeness_requirement?,
        retry_strategy: retry_strategy?,
        max_retry_count: written.max_retry_count,
        orchestration: written.orchestration,
    })
}

/// `Some(None)` if the field is missing, `None` if it is invalid.
#[allow(clippy::option_option)] // the two levels say different things
pub(crate) fn optional_text(checker: &mut Checker<'_>, field: Option<&TextField>) -> Option<Option<Text>> {
    field.map_or(Some(None), |field| checker.text(field).map(Some))
}

#[allow(clippy::option_option)] // as above
pub(crate) fn optional_expression(checker: &mut Checker<'_>, field: Option<&TextField>) -> Option<Option<Expr>> {
    field.map_or(Some(None), |field| checker.expression(field).map(Some))
}

pub(crate) fn unique_ids<'a>(
    ids: impl Iterator<Item = &'a Spanned<String>>,
    name: &str,
    file: &Arc<SourceFile>,
    findings: &Findings,
) {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    // An empty id means a missing one, which was reported.
    for id in ids.filter(|id| !id.value.is_empty()) {
        if let Some(first) = seen.get(id.value.as_str()) {
            let message = msg!("the `{name}` `{}` is used twice", id.value);
            let diagnostic = Diagnostic::error("duplicate-id", message, file, id.span);
            findings.report(diagnostic.with_help("give each a unique id").with_related(
                "first used here",
                file,
                *first,
            ));
            continue;
        }
        seen.insert(&id.value, id.span);
    }
}
