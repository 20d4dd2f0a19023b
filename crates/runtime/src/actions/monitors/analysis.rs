//! Shared code of the monitors: metrics, requests to the model, and the text of the advice.

use bcc_lang::message::ToMessage;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tracing::error;

use crate::program::analysis::{
    AnalysisResult, MonitorAnalysis, MonitorMetadata, MonitorTarget, UsedAdvice, WatchedTurn,
};
use crate::program::background::{BackgroundCall, BackgroundError, BackgroundReply};
use crate::program::evaluation::log_warnings;
use crate::program::messages::{messages, request};
use crate::program::monitor::{Monitor, MonitorContext};
use crate::program::outcome::{Outcome, ProgressSuggestion};
use crate::program::transcript::cut_in_the_middle;
use bcc_lang::template::front_matter::FeedbackTexts;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::quoting::{quote, quote_after_label};
use bcc_llm::model::request::{Purpose, Task};
use bcc_llm::providers::limit::Deadline;

/// The version of the monitor templates: `ai_ask_monitor_v1.md`. The `version` of an action applies only to its own template.
pub const VERSION: u32 = 1;

/// The maximum length of one part of the advice, in characters: the advice becomes part of a prompt.
const MAX_ADVICE_CHARS: usize = 2000;

/// The metrics with these names, each a text. `None` if there is nothing to analyze.
pub(crate) fn known_metrics(outcome: &Outcome, names: &[&str], language: PromptLanguage) -> Option<Map<String, Value>> {
    let unreadable = outcome.metadata.get("parse_error") == Some(&Value::Bool(true));
    if unreadable || outcome.metrics.is_empty() {
        return None;
    }
    let text = |name: &str| {
        let metric = outcome.metrics.get(name).filter(|metric| metric.is_string());
        (name.to_owned(), metric.cloned().unwrap_or_else(|| Value::from(language.not_available())))
    };
    Some(names.iter().copied().map(text).collect())
}

/// The advice in a prompt: heading, feedback, the second heading with the details if there are any, and the closing line.
pub fn feedback(texts: &FeedbackTexts, feedback: Option<&str>, details: Option<&str>) -> Option<String> {
    // A model wrote it, and it may repeat what a person wrote.
    let trimmed = |text: &str| quote(&cut_in_the_middle(text.trim(), MAX_ADVICE_CHARS)).into_owned();
    let feedback = feedback.map(trimmed).filter(|text| !text.is_empty())?;
    let mut text = format!("{}\n{feedback}\n\n", texts.heading.trim());
    if let Some(details) = details.map(trimmed).filter(|text| !text.is_empty()) {
        text.push_str(&format!("{}\n{details}\n\n", texts.details.trim()));
    }
    text.push_str(texts.closing.trim());
    Some(text)
}

/// Asks a model to analyze a turn, within the limit of `context`.
pub async fn analyze(monitor: &dyn Monitor, watched: &WatchedTurn, context: &MonitorContext) -> AnalysisResult {
    let program = &context.program;
    let prompt = program.templates.get(monitor.name(), VERSION).and_then(|template| {
        let names = names(watched, context);
        let prompt = messages(&template, &names)?;
        log_warnings(&names);
        Ok((template, prompt))
    });
    let (template, prompt) = match prompt {
        Ok(prepared) => prepared,
        Err(fault) => {
            error!(monitor = monitor.name(), action_id = watched.action_id, "no prompt for a monitor: {fault}");
            return AnalysisResult { prompt_error: Some(fault.to_message()), ..AnalysisResult::default() };
        }
    };
    let front = template.front();
    let provider = match front.model.as_deref() {
        None => Ok(Arc::clone(&context.provider)),
        Some(named) => context.models.provider(Some(named)),
    };
    let call_id = match context.restarted_at {
        None => format!("c{}.m", context.seq),
        Some(last_seq) => format!("c{last_seq}.m{}", context.seq),
    };
    let reply = match provider {
        Ok(provider) => {
            let call = BackgroundCall {
                provider: provider.as_ref(),
                request: request(&template, prompt, &context.shape, task(watched, context)),
                shape: &context.shape,
                call_id,
                deadline: Deadline::after(context.limit),
                clock: context.clock.as_ref(),
                program,
                language: template.language(),
                recording: context.recording,
            };
            call.ask().await
        }
        Err(error) => BackgroundReply::failed(call_id, Purpose::Monitor, BackgroundError::from(&error)),
    };
    let feedback_texts = front.feedback.clone().unwrap_or_else(|| monitor.feedback_texts(template.language()));
    AnalysisResult { feedback_texts: Some(feedback_texts), ..analysis_result(monitor, watched, reply) }
}

fn analysis_result(monitor: &dyn Monitor, watched: &WatchedTurn, reply: BackgroundReply) -> AnalysisResult {
    let BackgroundReply { calls, reading, error: failure, .. } = reply;
    if let Some(failure) = failure {
        error!(monitor = monitor.name(), action_id = watched.action_id, kind = failure.kind, "a monitor got no reply");
    }
    let analysis = match reading {
        None => MonitorAnalysis::default(),
        Some(Ok(read)) => MonitorAnalysis::from_reply(&read.object, read.parse_retry_count),
        Some(Err(unreadable)) => {
            error!(
                monitor = monitor.name(),
                action_id = watched.action_id,
                strategies = ?unreadable.strategies(),
                errors = ?unreadable.failures.iter().map(|failure| &failure.error).collect::<Vec<_>>(),
                "a monitor's reply could not be read, and its advice is empty"
            );
            let parse_retry_count = unreadable.retry_count();
            MonitorAnalysis::empty(MonitorMetadata { parse_error: true, parse_retry_count })
        }
    };
    AnalysisResult { analysis, calls, ..AnalysisResult::default() }
}

/// A target as templates see it: with all of its fields, also with those that are empty and not stored.
fn target_value(target: &MonitorTarget) -> Value {
    json!({ "get": target.get, "define": target.define, "required": target.required })
}

fn names(watched: &WatchedTurn, context: &MonitorContext) -> TemplateNames {
    let mut names = context.names.clone();
    let line = |text: &str| Value::from(quote_after_label(text));
    let texts = |list: &[String]| list.iter().map(|text| line(text)).collect::<Value>();
    let metrics = watched.metrics.iter();
    let metrics = metrics.map(|(name, metric)| (name.clone(), line(metric.as_str().unwrap_or_default()))).collect();
    names.set_text("action_type", watched.action_type.as_str());
    names.set_text("action_id", watched.action_id.as_str());
    names.set("current_round", json!(watched.round));
    names.set("max_rounds", json!(watched.max_rounds));
    names.set("metrics", Value::Object(metrics));
    names.set("progress_suggestion", json!(watched.progress_suggestion));
    names.set_text("exit_reason", watched.exit_reason.map_or("", |reason| reason.name()));
    names.set("target_variables", Value::from(watched.target_variables.clone()));
    let unexplained = |name: &String| MonitorTarget { get: name.clone(), ..MonitorTarget::default() };
    let targets: Value = match watched.targets.is_empty() {
        // An analysis that an earlier release stored has only names.
        true => watched.target_variables.iter().map(|name| target_value(&unexplained(name))).collect(),
        false => watched.targets.iter().map(target_value).collect(),
    };
    names.set("targets", targets);
    names.set_text("question", &*quote(&watched.question));
    names.set_text("answer", &*quote(&watched.answer));
    names.set_text("exit", watched.exit.as_str());
    names.set("earlier_advice", watched.earlier_advice.iter().map(earlier_advice).collect());
    names.set_text("strategy", watched.strategy.as_str());
    names.set_text("min_completeness_requirement", watched.min_completeness_requirement.as_str());
    names.set_text("retry_strategy", watched.retry_strategy.as_str());
    names.set("max_retry_count", json!(watched.max_retry_count));
    names.set("engagement_trend", texts(&watched.engagement_trend));
    names.set("emotion_trend", texts(&watched.emotion_trend));
    names.set("user_feedback_history", texts(&watched.user_feedback_history));
    names
}

/// Used advice as a template sees it: `round`, `advice`, and `result`, which is empty as long as nothing followed.
fn earlier_advice(used: &UsedAdvice) -> Value {
    let advice = quote_after_label(&used.advice);
    let result = used.progress_suggestion.map(ProgressSuggestion::name).unwrap_or_default();
    let engagement = quote_after_label(&used.engagement);
    json!({ "action_id": used.action_id, "round": used.round, "advice": advice, "result": result, "engagement": engagement })
}

/// The task for scripted replies, in which the replies of a monitor are ordered by round, even if some rounds are not analyzed.
fn task(watched: &WatchedTurn, context: &MonitorContext) -> Task {
    Task {
        purpose: Purpose::Monitor,
        session: context.session.clone(),
        kind: watched.action_type.clone(),
        action_id: watched.action_id.clone(),
        path: watched.path.clone(),
        answer: watched.user_feedback_history.last().cloned(),
        round: watched.round,
        call: watched.round.saturating_sub(1),
        ..Task::default()
    }
}
