//! Asks a model for a client, with the templates of the project.

use bcc_engine::engine::Engine;
use bcc_lang::message::argument::ToMessage as _;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::schema::embedded::reply_rules;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::template::Template;
use bcc_lang::value::quoting::{quote, quote_after_label};
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver as _, NoLiveOutput, ReplyPolicy};
use bcc_llm::model::request::Task;
use bcc_llm::reply::read::read as read_reply;
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::actions::behaviors::model::received;
use bcc_runtime::actions::behaviors::offered::NOT_OFFERED;
use bcc_runtime::notebook::action::NAMES;
use bcc_runtime::program::exchange::PROMPT_NAMES;
use bcc_runtime::program::messages::{messages, request as request_of};
use bcc_runtime::program::reask::{ask_again, problems_note};
use serde_json::{Value, json};

use crate::behavior::goal::GoalLevel;
use crate::behavior::live::LiveBehavior;
use crate::behavior::question::Question;
use crate::behavior::request::BehaviorRequest;
use crate::problem::{Problem, ProblemKind};
use crate::settings::ServeSettings;

/// How often a model is asked again at least when its reply cannot be used.
const MIN_RETRIES: u32 = 1;

/// The maximum number of actions of a behavior that a prompt asks for.
const MAX_ACTIONS: u64 = 20;

/// How many behaviors a step should take; prompts count down from it. Clients decide when they stop.
const EXPECTED_BEHAVIORS: u64 = 10;

/// How long a client waits until it asks again when no model answers, in seconds.
const RETRY_AFTER: u64 = 5;

/// The names of the engine that a template of a session may use, and that are empty here.
const EMPTY_NAMES: [&str; 6] = ["who", "user", "last_user_message", "topic_goal", "phase_goal", "global_goal"];

/// Asks the model until `read` takes its reply, of which `live` sees the text. None if no reply can be used.
///
/// # Errors
/// `Unavailable` if there is no reply at all; those of the project and its templates.
pub(crate) async fn ask_model<T>(
    engine: &Engine,
    settings: &ServeSettings,
    request: &BehaviorRequest,
    question: Question,
    read: &(impl Fn(&Value) -> Result<T, Message> + Sync),
    mut live: Option<&mut LiveBehavior>,
) -> Result<Option<T>, Problem> {
    let goal = request.goal(question.goal_level());
    let templates = engine.templates(language_of(&goal))?;
    let template = templates.get(question.template(), 1).map_err(|error| Problem::failure(&error.to_message()))?;
    let shape = shape(question)?;
    let prompt = messages(&template, &names(engine, &template, request, question, &goal));
    let prompt = prompt.map_err(|error| Problem::failure(&error.to_message()))?;
    let mut call = request_of(&template, prompt, &shape, task(request, question, goal));
    let models = engine.models(settings.model.as_deref(), settings.behavior.model.as_deref())?;
    let provider = models.provider(template.front().model.as_deref()).map_err(|error| no_model(&error))?;
    let ReplyPolicy { reask, .. } = provider.reply_policy_for(&call.task);
    let language = template.language();
    for attempt in 0..=reask.max(MIN_RETRIES) {
        call.task.call = attempt;
        let asked = match live.as_deref_mut() {
            Some(live) => {
                live.restart();
                provider.complete(&call, live).await
            }
            None => provider.complete(&call, &mut NoLiveOutput).await,
        };
        let reply = match asked {
            Ok(reply) => reply,
            Err(ModelError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(no_model(&error)),
        };
        // Replies about behaviors are repaired, as in a `behavior_loop`.
        let reading = read_reply(&reply.text, &shape, true);
        let used = received(question.template(), &reply.text, &reading, Some(&shape)).and_then(|value| read(&value));
        match used {
            Ok(used) => return Ok(Some(used)),
            Err(why) => {
                tracing::warn!(question = question.name(), attempt, %why, "a reply for a client cannot be used");
                // What was sent cannot be replaced by another reply.
                if live.as_deref().is_some_and(LiveBehavior::has_sent) {
                    return Ok(None);
                }
                ask_again(&mut call.messages, &reply.text, problems_note(&[why.to_string()], language));
            }
        }
    }
    Ok(None)
}

/// The language of the prompt for a goal.
fn language_of(goal: &str) -> PromptLanguage {
    match goal.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}')) {
        true => PromptLanguage::Zh,
        false => PromptLanguage::En,
    }
}

/// Nobody answered. What it says may name servers, so it goes to the log; what a server says may repeat a person, so it goes only to the
/// log at debug level.
fn no_model(error: &ModelError) -> Problem {
    tracing::warn!(kind = error.summary(), error = %error.without_server_text(), "no model answers a client");
    tracing::debug!(error = %error.to_message(), "no model answers a client");
    let problem = Problem::new(ProblemKind::Unavailable, msg!("no model answers; the log of the server says why"));
    problem.with_log_help().retry_after(RETRY_AFTER)
}

/// The shape of the reply: of a plan, only the fields of its level.
fn shape(question: Question) -> Result<ReplyShape, Problem> {
    let mut rules = reply_rules(question.template()).unwrap_or_else(|| json!({ "type": "object" }));
    if let Question::Plan(level) = question
        && let Some(properties) = rules.get_mut("properties").and_then(Value::as_object_mut)
    {
        properties.retain(|name, _| level.fields().contains(&name.as_str()));
    }
    ReplyShape::new(&rules, &[]).map_err(|error| Problem::failure(&error.to_message()))
}

fn names(
    engine: &Engine,
    template: &Template<'_>,
    request: &BehaviorRequest,
    question: Question,
    goal: &str,
) -> TemplateNames {
    let mut names = TemplateNames::default();
    for name in PROMPT_NAMES.into_iter().chain(EMPTY_NAMES) {
        names.set_text(name, "");
    }
    names.set_text("time", engine.prompt_time(template.language()));
    let target = quote(goal);
    for name in ["target", "task", "content", "topic_content"] {
        names.set_text(name, &*target);
    }
    let number = match question {
        Question::Plan(_) => request.next_behavior(),
        _ => request.observed.location.behavior_iteration.max(1),
    };
    for name in ["iteration", "current_round"] {
        names.set(name, Value::from(number));
    }
    names.set("max_rounds", Value::from(EXPECTED_BEHAVIORS));
    let left = EXPECTED_BEHAVIORS.saturating_sub(number);
    names.set("behaviors_left", Value::from(if question == Question::Actions { left + 1 } else { left }));
    names.set("max_actions", Value::from(MAX_ACTIONS));
    // Whether code can run is for the client to say: it has the kernel.
    let offered = NAMES.into_iter().filter(|name| !NOT_OFFERED.contains(name));
    names.set("actions", offered.collect());
    names.set("custom_actions", json!([]));
    let todo = request.todo_list();
    names.set("todo_list", todo.iter().map(|item| quote_after_label(item).into_owned()).collect());
    let feedback = request.feedback.as_ref().and_then(|feedback| serde_json::to_string(feedback).ok());
    names.set_text("feedback", feedback.unwrap_or_default());
    names.set_text("behavior", &*quote(&request.goal(GoalLevel::Behavior)));
    let observation = match &request.shown {
        Value::String(text) => text.clone(),
        shown => shown.to_string(),
    };
    names.set_text("observation", observation);
    if let Question::Plan(level) = question {
        names.set_text("level", level.name());
    }
    names
}

/// What providers that are not models see.
fn task(request: &BehaviorRequest, question: Question, goal: String) -> Task {
    let level = match question {
        Question::Plan(level) => level.name(),
        _ => "",
    };
    Task {
        kind: question.template().to_owned(),
        action_id: question.name().to_owned(),
        path: question.name().to_owned(),
        content: goal,
        inputs: vec![("todo_list".to_owned(), json!(request.todo_list())), ("level".to_owned(), Value::from(level))],
        round: u32::try_from(request.observed.location.behavior_iteration).unwrap_or(u32::MAX).max(1),
        ..Task::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behavior::plan::PlanLevel;

    #[test]
    fn the_schema_of_a_plan_has_the_fields_of_its_level() {
        for level in [PlanLevel::Stages, PlanLevel::Steps, PlanLevel::Behavior] {
            let shape = shape(Question::Plan(level)).unwrap();
            let names: Vec<&str> = shape.root().properties().iter().map(|property| property.name.as_str()).collect();
            assert_eq!(names, level.fields());
        }
    }
}
