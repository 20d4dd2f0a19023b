//! What the orchestrator is told: the analysis, the topic with its actions, and what a plan may refer to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::program::location::EventLocation;
use crate::program::monitor::USUAL_LIMIT;
use crate::program::orchestration::edits::{id_of, is_skipped};
use crate::program::orchestration::plan::{Cursor, Revision};
use crate::program::orchestration::plans::Plans;
use crate::program::orchestration::{MOST_PLANS, ORCHESTRATOR};
use crate::program::program::{Phase, Program, Topic};
use crate::program::services::Services;
use crate::program::transcript::{RecentTranscript, cut_in_the_middle};
use crate::program::turn::base_names;
use bcc_lang::schema::embedded;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::reply::shape::{ReplyShape, ShapeError};

/// The names that the template gets beyond variables and the engine's names.
pub const ORCHESTRATOR_NAMES: [&str; 13] = [
    "chat",
    "chat_history",
    "answer",
    "topic_id",
    "strategy",
    "analysis",
    "actions",
    "current_action",
    "revision",
    "plans_left",
    "new_id",
    "skills",
    "variables",
];

/// The most actions that a prompt lists: the newest done ones and those that come next.
const MOST_ACTIONS: usize = 60;

/// How many done actions are listed before the current one.
const MOST_DONE: usize = 15;

/// How many characters of a text of an action are shown.
const MOST_TEXT: usize = 400;

/// How many characters of the analysis are shown.
const MOST_ANALYSIS: usize = 8_000;

/// How many names of variables and skills are listed.
const MOST_NAMES: usize = 200;

/// Everything that a plan is made from. It owns all of it: a model is asked beside the session.
pub struct OrchestrationContext {
    pub program: Arc<Program>,
    pub services: Services,
    /// What the template can name, without what comes from the analysis and the actions.
    pub names: TemplateNames,
    pub topic_id: String,
    pub action_id: String,
    pub path: String,
    pub round: u32,
    /// Whether the topic's strategy says `orchestration: on`.
    pub allowed: bool,
    /// The topic's actions as this visit has them, as [`crate::program::recheck::Recheck::actions`] writes them.
    pub actions: Vec<Value>,
    /// For what the plan will be made.
    pub revision: Revision,
    /// How often this visit has asked for a plan.
    pub asked: u32,
    /// The id of the call, which no other call of the session has.
    pub call_id: String,
    /// How long it may take: [`USUAL_LIMIT`].
    pub limit: Duration,
}

/// The parts of an [`OrchestrationContext`] that a session lends.
pub struct PlanRequest<'a> {
    pub program: &'a Arc<Program>,
    pub services: &'a Services,
    pub phase: &'a Phase,
    pub topic: &'a Topic,
    /// Where the action stands that the analysis is about.
    pub place: &'a EventLocation,
    pub recent: &'a RecentTranscript,
    pub scopes: Scopes,
    /// The topic's actions as this visit has them.
    pub actions: Vec<Value>,
    pub cursor: Cursor,
    pub plans: &'a Plans,
    pub last_seq: u64,
    pub call_id: String,
}

impl OrchestrationContext {
    pub fn new(planning: PlanRequest<'_>) -> Self {
        let PlanRequest { program, services, phase, topic, place, recent, scopes, actions, cursor, plans, .. } =
            planning;
        let known: Vec<&str> = scopes.names().into_iter().take(MOST_NAMES).collect();
        let variables = known.join(", ");
        let plain = TemplateNames::new(scopes.clone());
        let strategy = topic.strategy.text.as_ref().and_then(|text| program.texts.render(text, &plain).ok());
        let mut names = base_names(program, Some(phase), Some(topic), recent, scopes);
        let chat: Arc<str> = recent.as_text(program.history_chars, &program.who, &program.user).into();
        let said = cut_in_the_middle(recent.last_user_message().unwrap_or_default(), program.history_chars);
        let skills: Vec<&str> = program.skills.keys().map(String::as_str).take(MOST_NAMES).collect();
        let revision = plans.revision(cursor);
        names.give_text("chat", Arc::clone(&chat));
        names.give_text("chat_history", chat);
        names.give_text("answer", said.as_str());
        names.give_text("last_user_message", said);
        names.give_text("time", services.clock.words(planning.last_seq));
        names.give("current_round", Value::from(place.round.unwrap_or(1)));
        names.give("max_rounds", Value::from(place.round.unwrap_or(1)));
        names.give_text("topic_id", topic.id.as_str());
        names.give_text("strategy", strategy.unwrap_or_default());
        names.give_text("skills", skills.join(", "));
        names.give_text("variables", variables);
        names.give("revision", Value::from(revision.plans));
        names.give("plans_left", Value::from(MOST_PLANS.saturating_sub(revision.plans)));
        names.give_text("new_id", format!("{}_plan_{}", topic.id, plans.asked + 1));
        Self {
            program: Arc::clone(program),
            services: services.clone(),
            names,
            topic_id: topic.id.clone(),
            action_id: place.action_id.clone().unwrap_or_default(),
            path: place.path.clone(),
            round: place.round.unwrap_or(1),
            allowed: topic.strategy.orchestration,
            actions,
            revision,
            asked: plans.asked,
            call_id: planning.call_id,
            limit: USUAL_LIMIT,
        }
    }
}

pub(crate) fn names(analysis: &Value, context: &OrchestrationContext) -> TemplateNames {
    let mut names = context.names.clone();
    let cursor = context.revision.cursor;
    let current = context.actions.get(cursor.at).filter(|_| cursor.begun).map(id_of).unwrap_or_default();
    names.give_text("analysis", cut_in_the_middle(&analysis.to_string(), MOST_ANALYSIS));
    names.give_text("actions", listed(&context.actions, cursor));
    names.give_text("current_action", current);
    names
}

pub(crate) fn shape() -> Result<ReplyShape, ShapeError> {
    let text = embedded::reply(ORCHESTRATOR).unwrap_or_default();
    let schema = serde_json::from_str(text).map_err(|error| ShapeError::Unreadable { why: error.to_string() })?;
    ReplyShape::new(&schema, &[])
}

/// The actions of a topic for a prompt, one line of JSON each: index, id, kind, state, content, exit.
fn listed(actions: &[Value], cursor: Cursor) -> String {
    let first = cursor.at.saturating_sub(MOST_DONE);
    let lines = actions.iter().enumerate().skip(first).take(MOST_ACTIONS).map(|(index, action)| {
        let state = match index {
            _ if index < cursor.at => "done",
            _ if index == cursor.at && cursor.begun => "current",
            _ if is_skipped(action) => "skipped",
            _ => "to_come",
        };
        let mut line = Map::new();
        line.insert("index".into(), json!(index));
        line.insert("action_id".into(), json!(id_of(action)));
        line.insert("action_type".into(), action.get("action_type").cloned().unwrap_or_default());
        line.insert("state".into(), json!(state));
        for name in ["content", "exit"] {
            let text = action.get("config").and_then(|config| config.get(name)).and_then(Value::as_str);
            if let Some(text) = text {
                line.insert(name.into(), Value::from(cut_in_the_middle(text, MOST_TEXT)));
            }
        }
        Value::Object(line).to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}
