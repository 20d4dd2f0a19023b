//! The prompt of the orchestrator: the analysis, the topic with its actions, and the names that a plan may refer to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::program::location::EventLocation;
use crate::program::monitor::DEFAULT_MONITOR_TIMEOUT;
use crate::program::orchestration::content::{shown, usable_skills};
use crate::program::orchestration::edits::{id_of, is_skipped};
use crate::program::orchestration::plan::{Cursor, Revision};
use crate::program::orchestration::plans::Plans;
use crate::program::orchestration::{MAX_PLANS, ORCHESTRATOR};
use crate::program::outcome::ExitReason;
use crate::program::program::{Phase, Program, Topic};
use crate::program::services::Services;
use crate::program::transcript::{RecentTranscript, cut_in_the_middle};
use crate::program::turn::base_names;
use bcc_lang::schema::embedded;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::quoting::quote;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::reply::shape::{ReplyShape, ShapeError};

/// The names that the template receives beyond variables and the engine's names.
pub const ORCHESTRATOR_NAMES: [&str; 14] = [
    "chat",
    "chat_history",
    "answer",
    "topic_id",
    "strategy",
    "analysis",
    "exit_reason",
    "actions",
    "current_action",
    "revision",
    "plans_left",
    "new_id",
    "skills",
    "variables",
];

/// The maximum number of actions in a prompt: the last finished ones and the next ones.
const MAX_ACTIONS: usize = 60;

/// The maximum number of finished actions listed before the current one.
const MAX_DONE: usize = 15;

/// The maximum number of shown characters of a text of an action.
const MAX_TEXT_CHARS: usize = 400;

/// The maximum number of shown characters of the analysis.
const MAX_ANALYSIS_CHARS: usize = 8_000;

/// The maximum number of listed names of variables and of skills.
const MAX_NAMES: usize = 200;

/// The input of a request for a plan. It owns all data, because the model is called in the background.
pub struct OrchestrationContext {
    pub program: Arc<Program>,
    pub services: Services,
    /// The id of the session, for traces.
    pub session: String,
    /// The names for the template, except those from the analysis and the actions.
    pub names: TemplateNames,
    pub topic_id: String,
    pub action_id: String,
    pub path: String,
    pub round: u32,
    /// Whether the topic's strategy sets `orchestration: on`.
    pub allowed: bool,
    /// The topic's actions in this visit, in the format of [`crate::program::recheck::Recheck::actions`].
    pub actions: Vec<Value>,
    /// The state that the plan is made for.
    pub revision: Revision,
    /// How often a plan was requested in this visit.
    pub asked: u32,
    /// How often a model was asked for these plans.
    pub call: u32,
    /// The id of a new action that has none.
    pub new_id: String,
    /// The id of the call, unique in the session.
    pub call_id: String,
    /// The time for all calls together: [`DEFAULT_MONITOR_TIMEOUT`].
    pub limit: Duration,
}

/// The parts of an [`OrchestrationContext`] that come from the session.
pub struct PlanRequest<'a> {
    pub program: &'a Arc<Program>,
    pub services: &'a Services,
    /// The id of the session.
    pub session: &'a str,
    pub phase: &'a Phase,
    pub topic: &'a Topic,
    /// The location of the analyzed action.
    pub place: &'a EventLocation,
    pub recent: &'a RecentTranscript,
    pub scopes: Scopes,
    /// The topic's actions in this visit.
    pub actions: Vec<Value>,
    pub cursor: Cursor,
    pub plans: &'a Plans,
    /// Why the analyzed action ended, or what prevented it from continuing.
    pub exit_reason: Option<ExitReason>,
    pub last_seq: u64,
    pub call_id: String,
}

impl OrchestrationContext {
    pub fn new(plan_request: PlanRequest<'_>) -> Self {
        let PlanRequest { program, services, phase, topic, place, recent, scopes, actions, cursor, plans, .. } =
            plan_request;
        let variable_names: Vec<&str> = scopes.names().into_iter().take(MAX_NAMES).collect();
        let variables = variable_names.join(", ");
        let plain = TemplateNames::new(scopes.clone());
        let strategy = topic.strategy.text.as_ref().and_then(|text| program.texts.render(text, &plain).ok());
        let mut names = base_names(program, Some(phase), Some(topic), recent, scopes);
        let chat: Arc<str> = recent.as_text(program.history_chars, &program.who, &program.user).into();
        let last_message = cut_in_the_middle(recent.last_user_message().unwrap_or_default(), program.history_chars);
        let last_message = quote(&last_message);
        let skills: Vec<&str> = usable_skills(program).take(MAX_NAMES).collect();
        let revision = plans.revision(cursor);
        names.set_text("chat", Arc::clone(&chat));
        names.set_text("chat_history", chat);
        names.set_text("answer", &*last_message);
        names.set_text("last_user_message", &*last_message);
        names.set_text("time", services.clock.prompt_time(plan_request.last_seq, program.templates.language()));
        names.set("current_round", Value::from(place.round.unwrap_or(1)));
        names.set("max_rounds", Value::from(place.round.unwrap_or(1)));
        names.set_text("topic_id", topic.id.as_str());
        names.set_text("strategy", strategy.unwrap_or_default());
        names.set_text("skills", skills.join(", "));
        names.set_text("variables", variables);
        names.set("revision", Value::from(revision.plans));
        names.set("plans_left", Value::from(MAX_PLANS.saturating_sub(revision.plans)));
        let new_id = format!("{}_plan_{}", topic.id, plans.requests + 1);
        names.set_text("new_id", new_id.as_str());
        names.set_text("exit_reason", plan_request.exit_reason.map_or("", ExitReason::name));
        Self {
            program: Arc::clone(program),
            services: services.clone(),
            session: plan_request.session.to_owned(),
            names,
            topic_id: topic.id.clone(),
            action_id: place.action_id.clone().unwrap_or_default(),
            path: place.path.clone(),
            round: place.round.unwrap_or(1),
            allowed: topic.strategy.orchestration,
            actions,
            revision,
            asked: plans.requests,
            call: plans.requests + plans.repeated,
            new_id,
            call_id: plan_request.call_id,
            limit: DEFAULT_MONITOR_TIMEOUT,
        }
    }
}

pub(crate) fn names(analysis: &Value, context: &OrchestrationContext) -> TemplateNames {
    let mut names = context.names.clone();
    let cursor = context.revision.cursor;
    let current = context.actions.get(cursor.at).filter(|_| cursor.started).map(id_of).unwrap_or_default();
    names.set_text("analysis", cut_in_the_middle(&analysis.to_string(), MAX_ANALYSIS_CHARS));
    names.set_text("actions", listed(&context.actions, cursor));
    names.set_text("current_action", current);
    names
}

pub(crate) fn shape() -> Result<ReplyShape, ShapeError> {
    let schema = embedded::reply_rules(ORCHESTRATOR).ok_or(ShapeError::NotAnObject)?;
    ReplyShape::new(&schema, &[])
}

/// The actions of a topic for a prompt, one line of JSON each: index, id, kind, state, content, exit.
fn listed(actions: &[Value], cursor: Cursor) -> String {
    let first = cursor.at.saturating_sub(MAX_DONE);
    let lines = actions.iter().enumerate().skip(first).take(MAX_ACTIONS).map(|(index, action)| {
        let state = match index {
            _ if index < cursor.at => "done",
            _ if index == cursor.at && cursor.started => "current",
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
                line.insert(name.into(), Value::from(cut_in_the_middle(&shown(text), MAX_TEXT_CHARS)));
            }
        }
        Value::Object(line).to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}
