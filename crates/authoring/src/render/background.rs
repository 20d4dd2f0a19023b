//! Renders the background prompts: those of monitors, and of the planner that replans the rest of a topic.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::render::action::ActionSetup;
use crate::render::capturing::{CapturedPrompt, answer_placeholder};
use crate::render::find_action::FoundAction;
use crate::render::request::RenderRequest;
use bcc_engine::error::EngineError;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::text::Text;
use bcc_runtime::actions::KINDS;
use bcc_runtime::program::analysis::{AnalysisResult, MonitorAnalysis, WatchedTurn};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::monitor::{DEFAULT_MONITOR_TIMEOUT, Monitor, MonitorContext, monitor_names};
use bcc_runtime::program::orchestration::plan::Cursor;
use bcc_runtime::program::orchestration::plan_prompt::{OrchestrationContext, PlanRequest};
use bcc_runtime::program::orchestration::plans::Plans;
use bcc_runtime::program::orchestration::{Generated, ORCHESTRATOR, generate_orchestration_plan};
use bcc_runtime::program::outcome::Outcome;

/// The metrics of all action types; each monitor uses its own.
const METRICS: [&str; 5] =
    ["information_completeness", "user_engagement", "emotional_intensity", "reply_relevance", "understanding_level"];

/// The prompt of the monitor or planner `name` after the answer of the requested round. Values that only a model could
/// provide (metrics, an analysis) are placeholders.
pub(crate) async fn prompt(
    setup: &mut ActionSetup<'_>,
    name: &str,
    request: &RenderRequest,
    marks: &Marks,
) -> Result<CapturedPrompt, EngineError> {
    let kind = setup.found.step.kind;
    let prompts = KINDS.iter().find(|known| known.name() == kind).map_or(&[][..], |known| known.prompts());
    if prompts.iter().any(|(own, _)| *own == name) {
        if request.round > 1 || !request.answers.is_empty() {
            let message = msg!("`{}` takes no answer, so its first round is the only one", setup.found.step.id);
            return Err(EngineError::usage(message).with_help("omit `--round` and `--answer`"));
        }
        return setup.prompt_with_template(name, marks).await;
    }
    let asks = KINDS.iter().any(|known| known.name() == kind && known.asks());
    let monitor = setup.found.step.action.watched().map(|watched| watched.monitor);
    let id = &setup.found.step.id;
    if name != ORCHESTRATOR && monitor.is_none_or(|monitor| monitor.name() != name) {
        if !asks {
            let message =
                msg!("`{id}` is of type `{kind}` and asks no model, so it does not use the template `{name}`");
            return Err(EngineError::usage(message));
        }
        let own: Vec<&str> =
            if prompts.is_empty() { vec![kind] } else { prompts.iter().map(|(own, _)| *own).collect() };
        let others: Vec<&str> = own.into_iter().chain(monitor.map(Monitor::name)).collect();
        let others = others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
        let error = EngineError::usage(msg!("`{id}` does not use the template `{name}`"));
        return Err(error.with_help(msg!("its templates are {others}; omit NAME to see its own prompt")));
    }
    // Run the conversation up to and including the evaluated answer.
    let round = request.round.max(1);
    let placeholder = [answer_placeholder(round)];
    let answers = if request.answers.is_empty() { &placeholder[..] } else { &request.answers };
    setup.prompt_of_round(round, answers, marks).await?;
    marks.clear();
    let place = EventLocation {
        phase_id: Some(setup.found.phase.id.clone()),
        topic_id: Some(setup.found.topic.id.clone()),
        action_id: Some(id.clone()),
        round: Some(round),
        path: format!("{}/{id}", setup.found.topic.id),
    };
    let failed = match name == ORCHESTRATOR {
        true => ask_planner(setup, &place).await?,
        false => ask_monitor(setup, &place).await,
    };
    let captured = setup.capturing_models.take().pop();
    captured.ok_or_else(|| EngineError::failed(failed.unwrap_or_else(|| msg!("`{name}` asked no model"))))
}

/// Runs the monitor. Returns why it called no model.
async fn ask_monitor(setup: &ActionSetup<'_>, place: &EventLocation) -> Option<Message> {
    let FoundAction { phase, topic, step, .. } = setup.found;
    let (program, services) = (setup.program, &setup.services);
    let config = step.action.watched()?;
    let mark = |name: &str| Value::from(format!("⟦{name}⟧"));
    let metrics: Map<String, Value> = METRICS.iter().map(|name| ((*name).to_owned(), mark(name))).collect();
    let outcome = Outcome { success: true, metrics, ..Outcome::default() };
    let time = services.clock.prompt_time(0, program.templates.language());
    let names = monitor_names(program, phase, topic, &setup.recent, setup.scopes.clone(), time);
    let rendered = |text: &Option<Text>| {
        text.as_ref().and_then(|text| program.texts.render(text, &names).ok()).unwrap_or_default()
    };
    let (strategy, round) = (&topic.strategy, place.round.unwrap_or(1));
    let trend = |name: &str| vec![format!("⟦{name}⟧")];
    let turn = WatchedTurn {
        action_type: step.kind.to_owned(),
        action_id: step.id.clone(),
        path: place.path.clone(),
        round,
        max_rounds: config.max_rounds,
        metrics: config.monitor.parse_metrics(&outcome, config.language)?,
        target_variables: config.targets.iter().map(|target| target.get.clone()).collect(),
        targets: config.targets.clone(),
        question: setup.recent.last_question().unwrap_or_default().to_owned(),
        answer: setup.recent.last_user_message().unwrap_or_default().to_owned(),
        exit: rendered(&config.exit),
        engagement_trend: trend("user_engagement"),
        emotion_trend: trend("emotional_intensity"),
        user_feedback_history: setup.recent.newest_of_user(round as usize),
        strategy: rendered(&strategy.text),
        min_completeness_requirement: rendered(&strategy.min_completeness_requirement),
        retry_strategy: rendered(&strategy.retry_strategy),
        max_retry_count: strategy.retries(),
        ..WatchedTurn::default()
    };
    let context = MonitorContext {
        session: String::new(),
        program: Arc::clone(program),
        names,
        shape: config.shape.clone(),
        provider: services.models.monitor(&step.id)?,
        models: Arc::clone(&services.models),
        clock: Arc::clone(&services.clock),
        seq: 0,
        restarted_at: None,
        limit: DEFAULT_MONITOR_TIMEOUT,
        recording: false,
    };
    let AnalysisResult { prompt_error, .. } = config.monitor.analyze_with_llm(&turn, &context).await;
    prompt_error
}

/// Requests a plan. Returns why no model was called.
async fn ask_planner(setup: &ActionSetup<'_>, place: &EventLocation) -> Result<Option<Message>, EngineError> {
    let FoundAction { phase, topic, index, .. } = setup.found;
    let actions = setup.services.recheck.actions(&topic.id);
    let (Some(at), Some(actions)) = (index, actions) else {
        let id = place.action_id.as_deref().unwrap_or_default();
        return Err(EngineError::usage(msg!(
            "`{id}` is not directly in the list of a topic, and only such actions are replanned"
        ))
        .with_help("choose an action that is directly in a topic"));
    };
    let context = OrchestrationContext::new(PlanRequest {
        session: "",
        program: setup.program,
        services: &setup.services,
        phase,
        topic,
        place,
        recent: &setup.recent,
        scopes: setup.scopes.clone(),
        actions,
        cursor: Cursor { at, started: true },
        plans: &Plans::default(),
        exit_reason: None,
        last_seq: 0,
        call_id: "render".to_owned(),
    });
    let placeholder = |what: &str| Some(format!("⟦{what}⟧"));
    let analysis = MonitorAnalysis {
        intervention_needed: true,
        feedback_for_action: placeholder("feedback_for_action"),
        orchestration_needed: true,
        orchestration_reason: placeholder("orchestration_reason"),
        ..MonitorAnalysis::default()
    };
    let analysis = serde_json::to_value(&analysis).unwrap_or_default();
    let Generated { error: fault, .. } = generate_orchestration_plan(&analysis, &context).await;
    Ok(fault)
}
