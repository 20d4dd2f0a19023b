//! Checks the topics of skills: each becomes a step of its skill, with the actions of the topic in it (docs/skills.md).

use std::sync::Arc;

use crate::checker::Checker;
use crate::collected::{Collected, CollectedAction};
use crate::walk::{optional_expression, optional_text, strategy};
use bcc_lang::script::interrupted::OnInterrupted;
use bcc_lang::script::script::WrittenTopic;
use bcc_lang::script::step_options::StepOptions;
use bcc_lang::source::span::{Span, Spanned};
use bcc_runtime::program::kind::ActionProperties;
use bcc_runtime::program::limits::Priority;
use bcc_runtime::program::program::{ProgramStep, Topic};
use bcc_runtime::program::route_table::{ChangeTable, RouteTable};
use bcc_runtime::program::skill_topic::{SkillTopic, TOPIC_STEP};

/// The only exit reason of a topic of a skill.
const EXITS: &[&str] = &["exit_criteria_met"];

impl Checker<'_> {
    /// Checks a topic of a skill.
    pub(crate) fn skill_topic(&mut self, written: &WrittenTopic) -> Option<ProgramStep> {
        let number = self.collected.actions.len();
        let start = self.collected.tick();
        let last = written.actions.last().map_or(written.id.span.end, |action| action.span.end);
        self.collected.actions.push(CollectedAction {
            id: written.id.clone(),
            kind: Spanned { value: TOPIC_STEP.to_owned(), span: written.id.span },
            span: Span { end: last.max(written.id.span.end), ..written.id.span },
            body: self.body,
            parent: self.enclosing.last().copied(),
            block: self.block,
            condition: None,
            conditional: written.condition.is_some(),
            on_exit: written.on_exit.clone(),
            described: Some(ActionProperties {
                max_rounds: 1,
                exits: Some(EXITS),
                always_branches: true,
                ..ActionProperties::default()
            }),
            sound: true,
            depends_on: vec![],
            cleanup: None,
            order: start..usize::MAX,
        });
        self.enclosing.push(number);
        let before = self.collected.expressions.len();
        let condition = optional_expression(self, written.condition.as_ref());
        if let Some(action) = self.collected.actions.get_mut(number).filter(|_| matches!(condition, Some(Some(_)))) {
            action.condition = Some(before);
        }
        let goal = optional_text(self, written.goal.as_ref());
        let strategy = strategy(self, written.strategy.as_ref());
        self.blocks += 1;
        let outer = std::mem::replace(&mut self.block, self.blocks);
        self.hear(&written.answer_tables.hear);
        let steps: Vec<_> = written.actions.iter().map(|raw| self.step(raw)).collect();
        self.stop_hearing();
        self.block = outer;
        let routes = self.routes(written.on_exit.as_ref());
        self.enclosing.pop();
        let end = self.collected.tick();
        if let Some(action) = self.collected.actions.get_mut(number) {
            action.order.end = end;
        }
        let topic = Topic {
            id: written.id.value.clone(),
            name: written.name.clone(),
            goal: goal?,
            declarations: Arc::default(),
            condition: None,
            steps: Arc::new(steps.into_iter().collect::<Option<_>>()?),
            routes,
            changes: ChangeTable::default(),
            strategy: strategy?,
            time_budget: None,
            priority: Priority::default(),
            for_each: None,
            finally: Arc::default(),
        };
        let declarations = written.declare.iter().map(|declared| declared.declaration.clone()).collect();
        Some(ProgramStep {
            id: written.id.value.clone(),
            kind: TOPIC_STEP,
            exits: EXITS,
            condition: condition?,
            action: Arc::new(SkillTopic { topic, declarations }),
            routes: RouteTable::default(),
            on_interrupted: OnInterrupted::Ask,
            options: StepOptions::default(),
            compensate: Arc::default(),
        })
    }
}

/// Whether this is a topic of a skill.
pub(crate) fn is_skill_topic(action: &CollectedAction) -> bool {
    action.kind.value == TOPIC_STEP && action.described.as_ref().is_some_and(|described| described.exits == Some(EXITS))
}

/// The topic of a skill that contains the action with this number, or that is it.
pub(crate) fn skill_topic_of(collected: &Collected, action: usize) -> Option<usize> {
    let parent = |number: &usize| collected.actions.get(*number)?.parent;
    std::iter::successors(Some(action), parent)
        .find(|number| collected.actions.get(*number).is_some_and(is_skill_topic))
}
