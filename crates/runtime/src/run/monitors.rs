//! Monitors of a session: their input after a turn, the storage of their advice, and the events about its use
//! (docs/monitors.md). The analyses run in the background, see [`crate::run::mailbox`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::action::WatchedConfig;
use crate::program::analysis::{TREND, UsedAdvice, WatchedTurn};
use crate::program::event::{Event, ModelCall};
use crate::program::location::EventLocation;
use crate::program::monitor::{DEFAULT_MONITOR_TIMEOUT, MonitorContext, monitor_names};
use crate::program::outcome::Outcome;
use crate::program::program::{Phase, Program, Topic};
use crate::program::transcript::{RecentTranscript, cut_in_the_middle};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::HeldAnswer;
use crate::run::mailbox::{FinishedAnalysis, Job, PendingAnalysis};
use crate::run::planner::RequestedPlan;
use crate::run::position::Position;
use crate::run::session::Session;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
use bcc_lang::value::scopes::Scopes;

/// The maximum number of characters of an answer, or of a metric in a trend, in a monitor's input.
const MAX_ANSWER_CHARS: usize = 500;

/// The maximum number of characters of a metric in a monitor's input.
const MAX_METRIC_CHARS: usize = 2000;

/// The maximum number of characters of used advice, or of what followed, in a monitor's input.
const MAX_USED_CHARS: usize = 200;

/// Advice that is stored for the next turn of its topic or skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The sequence number of the event with the advice.
    pub seq: u64,
    /// The sequence number of the analyzed outcome; the newer advice counts.
    #[serde(rename = "about")]
    pub outcome_seq: u64,
    /// The text for the prompt.
    pub text: String,
    /// The action of the analyzed turn.
    pub action_id: String,
    pub action_type: String,
    pub round: u32,
    pub analysis: Value,
}

/// A turn that processed an answer.
pub(crate) struct TurnToWatch<'a> {
    pub(crate) position: &'a Position<'a>,
    pub(crate) place: &'a EventLocation,
    /// The answer, if it was held back.
    pub(crate) held: Option<&'a HeldAnswer>,
    /// The variables after the turn: the session may have left their topic since.
    pub(crate) scopes: Scopes,
}

/// The part of the metrics of one turn that monitors see as a trend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrendPoint {
    pub engagement: String,
    pub emotion: String,
}

impl Session {
    /// Waits until a monitor or the planner has a result, without a timeout; [`Session::commit_results`] commits it. Dropping the
    /// future loses nothing.
    pub async fn wait_for_result(&self) {
        tokio::select! {
            () = self.mailbox.wait_for_result() => {}
            () = self.planner.arrived() => {}
        }
    }

    /// Commits the results of monitors since the last call: each analysis is one row, and its advice is stored in the frame of its
    /// topic. Advice for a topic that has ended is stored but not used.
    /// Errors: The store failed. The session object must then be dropped; the stored session is intact.
    pub async fn commit_results(&mut self) -> Result<(), RunError> {
        self.ensure_consistent()?;
        if self.status.is_final() {
            return Ok(());
        }
        let (arrivals, planned) = (self.mailbox.take(), self.planner.take());
        if arrivals.is_empty() && planned.is_none() {
            return Ok(());
        }
        let mut draft = CommitDraft::default();
        for arrival in arrivals {
            self.record_analysis(arrival, &mut draft);
        }
        if let Some(planned) = planned {
            self.apply_finished_plan(planned, &mut draft);
        }
        self.commit(draft).await
    }

    pub(crate) fn record_analysis(&mut self, arrival: FinishedAnalysis, draft: &mut CommitDraft) {
        let FinishedAnalysis {
            request: PendingAnalysis { visit_key, seq: outcome_seq, watched, .. },
            result: analysed,
            feedback,
            orchestrate,
        } = arrival;
        let mut place = self.place_of(&visit_key);
        place.action_id = Some(watched.action_id.clone());
        place.round = Some(watched.round);
        let worked = analysed.succeeded();
        self.record_calls(&place, analysed.calls, draft);
        if let Some(message) = analysed.prompt_error {
            draft.event(&place, Event::Warning { code: "monitor-prompt", message, help: None });
        }
        // Serialization of plain fields cannot fail.
        let analysis = serde_json::to_value(&analysed.analysis).unwrap_or(Value::Null);
        draft.event(
            &place,
            Event::MonitorFeedback {
                action_id: watched.action_id.clone(),
                action_type: watched.action_type.clone(),
                round: watched.round,
                analysis: analysis.clone(),
                used: false,
                feedback: None,
            },
        );
        let seq = self.last_seq + draft.events.len() as u64;
        if orchestrate {
            let (action_id, round) = (watched.action_id.clone(), watched.round);
            let (visit_key, analysis, exit_reason) = (visit_key.clone(), analysis.clone(), watched.exit_reason);
            let plan_request = RequestedPlan { visit_key, action_id, round, analysis, exit_reason };
            if let Some(why) = self.ask_for_plan(plan_request) {
                Self::report_no_plan(&place, why, draft);
            }
        }
        let Some(frame) = self.frames.change(&visit_key) else {
            self.mailbox.forget(&visit_key);
            return;
        };
        if worked {
            frame.analysed.insert(watched.action_id.clone(), digest(&watched.metrics));
        }
        let Some(text) = feedback else {
            // The new analysis outdates the older advice.
            let outdated = |advice: &Advice| advice.action_id == watched.action_id && advice.outcome_seq < outcome_seq;
            if worked && frame.advice.as_deref().is_some_and(outdated) {
                frame.advice = None;
            }
            return;
        };
        if frame.advice.as_ref().is_some_and(|advice| advice.outcome_seq > outcome_seq) {
            return;
        }
        let WatchedTurn { action_id, action_type, round, .. } = watched;
        frame.advice = Some(Box::new(Advice { seq, outcome_seq, text, action_id, action_type, round, analysis }));
    }

    /// Counts and reports model calls that were made in the background.
    pub(crate) fn record_calls(&mut self, place: &EventLocation, calls: Vec<ModelCall>, draft: &mut CommitDraft) {
        for call in calls {
            self.head.model_calls += 1;
            self.head.count_tokens(call.tokens_in.unwrap_or(0), call.tokens_out.unwrap_or(0));
            let warnings = call.warnings();
            draft.event(place, Event::ModelCall(Box::new(call)));
            warnings.into_iter().for_each(|warning| draft.event(place, warning));
        }
    }

    /// Removes the advice in the frame `visit_key` after it reached a prompt, in the same commit as the turn that used it.
    pub(crate) fn advice_used(&mut self, visit_key: &str, place: &EventLocation, draft: &mut CommitDraft) {
        let Some(advice) = self.frames.change(visit_key).and_then(|frame| frame.advice.take()) else { return };
        let Advice { seq, action_id, action_type, round, analysis, .. } = *advice;
        let text = |name: &str| analysis.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let parts = ["feedback_for_action", "modified_approach", "example_suggestion"].map(text);
        let advice: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let used = UsedAdvice {
            action_id: action_id.clone(),
            round,
            advice: cut_in_the_middle(&advice.join(" "), MAX_USED_CHARS),
            turn: self.head.turns,
            ..UsedAdvice::default()
        };
        if let Some(frame) = self.frames.change(visit_key) {
            frame.used_advice.push(used);
            if frame.used_advice.len() > TREND {
                frame.used_advice.remove(0);
            }
        }
        let event = Event::MonitorFeedback { action_id, action_type, round, analysis, used: true, feedback: Some(seq) };
        draft.event(place, event);
    }

    /// The analysis to start once the turn in this draft is committed, if it has a monitor.
    pub(crate) fn next_job(
        &mut self,
        program: &Arc<Program>,
        turn: &TurnToWatch<'_>,
        draft: &CommitDraft,
    ) -> Option<Job> {
        let own = |(at, event): &(Arc<EventLocation>, Event)| {
            matches!(event, Event::Outcome { .. }) && at.path == turn.place.path
        };
        let number = draft.events.iter().position(own)?;
        let (place, Event::Outcome { outcome, .. }) = draft.events.get(number)? else { return None };
        self.watch(program, turn, (place, outcome), self.last_seq + number as u64 + 1)
    }

    /// Whether a monitor watches the action at this position.
    pub(crate) fn is_watched(&self, position: &Position<'_>) -> bool {
        position.step.action.watched().is_some() && self.services.models.monitor(&position.step.id).is_some()
    }

    fn watch(
        &mut self,
        program: &Arc<Program>,
        turn: &TurnToWatch<'_>,
        (place, outcome): (&EventLocation, &Outcome),
        seq: u64,
    ) -> Option<Job> {
        let TurnToWatch { position, held, scopes, .. } = turn;
        let config = position.step.action.watched()?;
        let metrics = shortened(config.monitor.parse_metrics(outcome, config.language)?);
        let trend = self.record_trend_point(&position.visit_key, &metrics);
        let earlier_advice = self.record_result(&position.visit_key, &metrics, outcome);
        let analysed = self.frames.get(&position.visit_key).and_then(|frame| frame.analysed.get(&position.step.id));
        if analysed == Some(&digest(&metrics)) {
            return None;
        }
        // Without a budget no analysis is started.
        if self.larger_budget().is_some() {
            return None;
        }
        // What was said since the answer that the turn judged belongs to another action.
        let messages = held.and_then(|held| held.at.as_ref()).map_or(self.head.messages, |at| at.messages);
        let newer = self.head.messages.saturating_sub(messages);
        let recent = self.recent.before_newest(newer, held.map_or("", |held| held.text.as_str())).into_owned();
        let answer = held.map_or_else(|| recent.last_user_message().unwrap_or_default(), |held| held.text.as_str());
        let names = self.names_of_monitor(program, (position.phase, position.topic), &recent, scopes.clone());
        let strategy = &position.topic.strategy;
        let rendered = |text: &Option<Text>| render_or_empty(program, text.as_ref(), &names);
        let round = place.round.unwrap_or(1);
        // Fewer than the author allows if time is short.
        let last_round = outcome.metadata.get("max_rounds").and_then(Value::as_u64);
        let rounds = round.min(TREND as u32) as usize;
        let mut answers = recent.newest_answers_to(&position.step.id, rounds);
        // A trigger may have taken it along from another action.
        if answers.last() != Some(&answer) {
            answers.push(answer);
        }
        let answers = answers.iter().rev().take(rounds).rev();
        let answers = answers.map(|answer| cut_in_the_middle(answer, MAX_ANSWER_CHARS)).collect();
        let watched = WatchedTurn {
            action_type: position.step.kind.to_owned(),
            action_id: position.step.id.clone(),
            path: place.path.clone(),
            round,
            max_rounds: last_round.and_then(|last| u32::try_from(last).ok()).unwrap_or(config.max_rounds),
            metrics,
            progress_suggestion: outcome.progress_suggestion,
            exit_reason: outcome.exit_reason,
            target_variables: config.targets.iter().map(|target| target.get.clone()).collect(),
            targets: config.targets.clone(),
            question: cut_in_the_middle(recent.last_question().unwrap_or_default(), MAX_ANSWER_CHARS),
            answer: cut_in_the_middle(answer, MAX_ANSWER_CHARS),
            exit: rendered(&config.exit),
            earlier_advice,
            engagement_trend: trend.iter().map(|point| point.engagement.clone()).collect(),
            emotion_trend: trend.iter().map(|point| point.emotion.clone()).collect(),
            user_feedback_history: answers,
            strategy: rendered(&strategy.text),
            min_completeness_requirement: rendered(&strategy.min_completeness_requirement),
            retry_strategy: rendered(&strategy.retry_strategy),
            max_retry_count: strategy.retries(),
        };
        let visit_key = position.visit_key.clone();
        let request = PendingAnalysis { visit_key, seq, messages: Some(messages), restarted_at: None, watched };
        self.job(program, config, request, names)
    }

    /// The job of a monitor; `None` if no model answers it.
    pub(crate) fn job(
        &self,
        program: &Arc<Program>,
        config: &WatchedConfig,
        request: PendingAnalysis,
        names: TemplateNames,
    ) -> Option<Job> {
        let context = MonitorContext {
            program: Arc::clone(program),
            names,
            shape: config.shape.clone(),
            provider: self.services.models.monitor(&request.watched.action_id)?,
            models: Arc::clone(&self.services.models),
            clock: Arc::clone(&self.services.clock),
            seq: request.seq,
            restarted_at: request.restarted_at,
            limit: DEFAULT_MONITOR_TIMEOUT,
            recording: self.services.recorder.is_some(),
            session: self.id.clone(),
        };
        Some(Job { request, monitor: config.monitor, context })
    }

    /// The names of a monitor's prompt, apart from those of the turn that it analyzes.
    pub(crate) fn names_of_monitor(
        &self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        recent: &RecentTranscript,
        scopes: Scopes,
    ) -> TemplateNames {
        let time = self.services.clock.prompt_time(self.last_seq, program.templates.language());
        monitor_names(program, phase, topic, recent, scopes, time)
    }

    /// Stores what followed the advice that earlier turns used, and returns that advice.
    fn record_result(&mut self, visit_key: &str, metrics: &Map<String, Value>, outcome: &Outcome) -> Vec<UsedAdvice> {
        let turn = self.head.turns;
        let engagement = metrics.get("user_engagement").and_then(Value::as_str).unwrap_or_default();
        let engagement = cut_in_the_middle(engagement, MAX_USED_CHARS);
        let is_due = |used: &UsedAdvice| used.turn < turn && used.progress_suggestion.is_none();
        if !self.frames.get(visit_key).is_some_and(|frame| frame.used_advice.iter().any(is_due)) {
            return self.frames.get(visit_key).map(|frame| frame.used_advice.clone()).unwrap_or_default();
        }
        let Some(frame) = self.frames.change(visit_key) else { return vec![] };
        for used in frame.used_advice.iter_mut().filter(|used| is_due(used)) {
            used.progress_suggestion = Some(outcome.progress_suggestion);
            used.engagement.clone_from(&engagement);
        }
        frame.used_advice.clone()
    }

    /// Stores the mood according to the metrics, and returns the newest moods.
    fn record_trend_point(&mut self, visit_key: &str, metrics: &Map<String, Value>) -> Vec<TrendPoint> {
        let text = |name: &str| {
            let text = metrics.get(name).and_then(Value::as_str).unwrap_or_default();
            cut_in_the_middle(text, MAX_ANSWER_CHARS)
        };
        let point = TrendPoint { engagement: text("user_engagement"), emotion: text("emotional_intensity") };
        let Some(frame) = self.frames.change(visit_key) else { return vec![point] };
        frame.trend.push(point);
        if frame.trend.len() > TREND {
            frame.trend.remove(0);
        }
        frame.trend.clone()
    }
}

/// The metrics, truncated to the length that a monitor needs: they are stored with the session until the monitor answers.
fn shortened(mut metrics: Map<String, Value>) -> Map<String, Value> {
    for metric in metrics.values_mut() {
        if let Some(text) = metric.as_str().filter(|text| text.len() > MAX_METRIC_CHARS) {
            *metric = Value::from(cut_in_the_middle(text, MAX_METRIC_CHARS));
        }
    }
    metrics
}

/// A digest that distinguishes metrics, also after a resume.
fn digest(metrics: &Map<String, Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, metric) in metrics {
        (name, metric.as_str()).hash(&mut hasher);
    }
    hasher.finish()
}

/// Renders a text of a strategy. One that cannot be rendered is left out: it guides a monitor and decides nothing.
fn render_or_empty(program: &Program, text: Option<&Text>, names: &TemplateNames) -> String {
    text.and_then(|text| program.texts.render(text, names).ok()).unwrap_or_default()
}
