//! The prompts that are made beside a talk: of the monitor that looks at an action, and of what plans the rest of its topic.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::render::action::Scene;
use crate::render::capturing::{CapturedPrompt, answer_of};
use crate::render::find_action::FoundAction;
use crate::render::request::RenderRequest;
use bcc_engine::error::EngineError;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::text::Text;
use bcc_runtime::actions::KINDS;
use bcc_runtime::program::analysis::{AnalysisResult, MonitorAnalysis, WatchedTurn};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::monitor::{Monitor, MonitorContext, USUAL_LIMIT, monitor_names};
use bcc_runtime::program::orchestration::plan::Cursor;
use bcc_runtime::program::orchestration::plan_prompt::{OrchestrationContext, PlanRequest};
use bcc_runtime::program::orchestration::plans::Plans;
use bcc_runtime::program::orchestration::{Generated, ORCHESTRATOR, generate_orchestration_plan};
use bcc_runtime::program::outcome::Outcome;

/// The metrics of any kind; each monitor takes its own.
const METRICS: [&str; 5] =
    ["information_completeness", "user_engagement", "emotional_intensity", "reply_relevance", "understanding_level"];

/// What the monitor or the planner named `name` would be asked after the answer of the wanted round. What only a model could
/// say (metrics, an analysis) is a placeholder.
pub(crate) async fn asked(
    scene: &mut Scene<'_>,
    name: &str,
    request: &RenderRequest,
    marks: &Marks,
) -> Result<CapturedPrompt, EngineError> {
    let kind = scene.found.step.kind;
    let prompts = KINDS.iter().find(|known| known.name() == kind).map_or(&[][..], |known| known.prompts());
    if prompts.iter().any(|(own, _)| *own == name) {
        if request.round > 1 || !request.answers.is_empty() {
            let message = msg!("`{}` takes no answer, so its first round is the only one", scene.found.step.id);
            return Err(EngineError::usage(message).with_help("omit `--round` and `--answer`"));
        }
        return scene.asked_with(name, marks).await;
    }
    let asks = KINDS.iter().any(|known| known.name() == kind && known.asks());
    let monitor = scene.found.step.action.watched().map(|watched| watched.monitor);
    let id = &scene.found.step.id;
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
    // The talk as it is by then, with the answer that is looked at.
    let round = request.round.max(1);
    let placeholder = [answer_of(round)];
    let answers = if request.answers.is_empty() { &placeholder[..] } else { &request.answers };
    scene.asked(round, answers, marks).await?;
    marks.clear();
    let place = EventLocation {
        phase_id: Some(scene.found.phase.id.clone()),
        topic_id: Some(scene.found.topic.id.clone()),
        action_id: Some(id.clone()),
        round: Some(round),
        path: format!("{}/{id}", scene.found.topic.id),
    };
    let failed = match name == ORCHESTRATOR {
        true => planned(scene, &place).await?,
        false => watched(scene, &place).await,
    };
    let heard = scene.listening.take().pop();
    heard.ok_or_else(|| EngineError::failed(failed.unwrap_or_else(|| msg!("`{name}` asked no model"))))
}

/// Lets the monitor look. Gives why it asked no model.
async fn watched(scene: &Scene<'_>, place: &EventLocation) -> Option<Message> {
    let FoundAction { phase, topic, step, .. } = scene.found;
    let (program, services) = (scene.program, &scene.services);
    let config = step.action.watched()?;
    let mark = |name: &str| Value::from(format!("⟦{name}⟧"));
    let metrics: Map<String, Value> = METRICS.iter().map(|name| ((*name).to_owned(), mark(name))).collect();
    let outcome = Outcome { success: true, metrics, ..Outcome::default() };
    let time = services.clock.words(0);
    let names = monitor_names(program, phase, topic, &scene.recent, scene.scopes.clone(), time);
    let words = |text: &Option<Text>| {
        text.as_ref().and_then(|text| program.texts.render(text, &names).ok()).unwrap_or_default()
    };
    let (strategy, round) = (&topic.strategy, place.round.unwrap_or(1));
    let trend = |name: &str| vec![format!("⟦{name}⟧")];
    let watched = WatchedTurn {
        action_type: step.kind.to_owned(),
        action_id: step.id.clone(),
        path: place.path.clone(),
        round,
        max_rounds: config.max_rounds,
        metrics: config.monitor.parse_metrics(&outcome)?,
        target_variables: config.targets.clone(),
        engagement_trend: trend("user_engagement"),
        emotion_trend: trend("emotional_intensity"),
        user_feedback_history: scene.recent.newest_of_user(round as usize),
        strategy: words(&strategy.text),
        min_completeness_requirement: words(&strategy.min_completeness_requirement),
        retry_strategy: words(&strategy.retry_strategy),
        max_retry_count: strategy.retries(),
        ..WatchedTurn::default()
    };
    let context = MonitorContext {
        program: Arc::clone(program),
        names,
        shape: config.shape.clone(),
        provider: services.models.monitor(&step.id)?,
        models: Arc::clone(&services.models),
        clock: Arc::clone(&services.clock),
        seq: 0,
        limit: USUAL_LIMIT,
        recording: false,
    };
    let AnalysisResult { prompt_error, .. } = config.monitor.analyze_with_llm(&watched, &context).await;
    prompt_error
}

/// Lets a plan be made. Gives why no model was asked for one.
async fn planned(scene: &Scene<'_>, place: &EventLocation) -> Result<Option<Message>, EngineError> {
    let FoundAction { phase, topic, index, .. } = scene.found;
    let actions = scene.services.recheck.actions(&topic.id);
    let (Some(at), Some(actions)) = (index, actions) else {
        let id = place.action_id.as_deref().unwrap_or_default();
        return Err(EngineError::usage(msg!(
            "`{id}` is not directly in the list of a topic, and only such actions are replanned"
        ))
        .with_help("choose an action that is directly in a topic"));
    };
    let context = OrchestrationContext::new(PlanRequest {
        program: scene.program,
        services: &scene.services,
        phase,
        topic,
        place,
        recent: &scene.recent,
        scopes: scene.scopes.clone(),
        actions,
        cursor: Cursor { at, begun: true },
        plans: &Plans::default(),
        last_seq: 0,
        call_id: "render".to_owned(),
    });
    let said = |what: &str| Some(format!("⟦{what}⟧"));
    let analysis = MonitorAnalysis {
        intervention_needed: true,
        feedback_for_action: said("feedback_for_action"),
        orchestration_needed: true,
        orchestration_reason: said("orchestration_reason"),
        ..MonitorAnalysis::default()
    };
    let analysis = serde_json::to_value(&analysis).unwrap_or_default();
    let Generated { fault, .. } = generate_orchestration_plan(&analysis, &context).await;
    Ok(fault)
}
