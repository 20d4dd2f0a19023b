//! Tests of servers that plan before each behavior and judge with actions.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_runtime::effects::behaviors::{BehaviorPiece, BehaviorServer, ResponseStream, ServerError};
use bcc_runtime::program::host_services::{BehaviorServers, HostServices};
use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaviors::{SessionRun, no_models, run_with, script, test_session};
use crate::crashing_store::CrashMode;

/// A server whose answers depend only on the state and the place of the request.
struct Planner {
    plans: Value,
    judgements: Value,
    /// The requests: what was asked, the state, the stage, the step, and the goal of the behavior.
    asked: Arc<Mutex<Vec<String>>>,
}

struct OneResponse(Option<Value>);

#[async_trait]
impl ResponseStream for OneResponse {
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError> {
        Ok(self.0.take().map(BehaviorPiece::Response))
    }
}

impl Planner {
    /// Where the session is, after recording the request.
    fn place(&self, question: &str, observation: &Value) -> String {
        let location = &observation["observation"]["location"];
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let place = format!("{} {}", text(&location["current_stage_id"]), text(&location["current_step_id"]));
        let state = text(&observation["observation"]["context"]["FSM"]["state"]);
        let feedback = if observation.get("behavior_feedback").is_some() { " feedback" } else { "" };
        let line = format!("{question}: {state} {place} ({}){feedback}", text(&location["goals"]["behavior"]));
        self.asked.lock().unwrap().push(line);
        place
    }
}

#[async_trait]
impl BehaviorServer for Planner {
    async fn actions(&self, observation: &Value) -> Result<Box<dyn ResponseStream>, ServerError> {
        let place = self.place("actions", observation);
        Ok(Box::new(OneResponse(Some(
            json!({ "actions": [{ "type": "add-text", "content": format!("work at {place}") }] }),
        ))))
    }

    async fn reflection(&self, observation: &Value) -> Result<Value, ServerError> {
        let place = self.place("judge", observation);
        Ok(self.judgements.get(&place).unwrap_or(&self.judgements["*"]).clone())
    }

    fn plans(&self) -> bool {
        true
    }

    async fn plan(&self, observation: &Value) -> Result<Value, ServerError> {
        let place = self.place("plan", observation);
        Ok(self.plans.get(&place).unwrap_or(&self.plans["*"]).clone())
    }
}

struct OneServer(Arc<Planner>);

impl BehaviorServers for OneServer {
    fn server(&self, _: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        Ok(Arc::clone(&self.0) as Arc<dyn BehaviorServer>)
    }
}

/// Runs the loop of the topic `a` in the phase `p` and returns what the server was asked.
async fn planned(plans: Value, judgements: Value, crash_mode: CrashMode) -> (SessionRun, Vec<String>) {
    let asked = Arc::default();
    let planner = Arc::new(Planner { plans, judgements, asked: Arc::clone(&asked) });
    let services = || HostServices { servers: Arc::new(OneServer(Arc::clone(&planner))), ..HostServices::default() };
    let script = script("server: s").replace("action_id: loop_b,", "action_id: loop_b, condition: 'false',");
    let program = test_session::checked(&script, Path::new(crate::ROOT));
    let result = run_with(&program, &services, &no_models(), crash_mode).await;
    let mut asked = asked.lock().unwrap().clone();
    asked.dedup();
    (result, asked)
}

fn judged(mark: &str) -> Value {
    json!({ "actions": [{ "type": mark }, { "type": "complete_reflection", "reason": "looked" }] })
}

#[tokio::test]
async fn a_server_plans_stages_steps_and_tasks_and_judges_with_signals() {
    let plans = json!({
        "p a": { "title": "T", "stages": [{ "stage_id": "read", "title": "Read", "goal": "r" }, { "stage_id": "tell", "title": "Tell", "goal": "t" }] },
        "read -": { "steps": [{ "step_id": "load", "title": "Load", "goal": "loaded" }, { "step_id": "look", "title": "Look" }] },
        "read load": { "behavior": { "behavior_id": "load_b1", "step_id": "load", "task": "Load it", "acceptance": ["rows > 0"] } },
        "read look": { "behavior": { "task": "Look at it" } },
        "tell -": { "steps": [{ "step_id": "say", "title": "Say" }] },
        "tell say": { "targetAchieved": true, "reason": "it was said before" },
    });
    let judgements = json!({
        "read load": { "actions": [{ "type": "add-text", "content": "It is loaded." }, { "type": "add", "shot_type": "action", "content": "1", "should_execute": true }, { "type": "mark_step_complete" }, { "type": "complete_reflection", "reason": "rows" }], "next_state": "STEP_COMPLETED" },
        "*": judged("mark_stage_complete"),
    });
    for crash_mode in [CrashMode::Never, CrashMode::After] {
        let (result, asked) = planned(plans.clone(), judgements.clone(), crash_mode).await;
        assert_eq!(result.pause, SessionPause::Completed, "{asked:#?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!("planned", format!("{}\n\n{}\n\n{}", asked.join("\n"), result.behaviors().join("\n"), result.contents.join("\n")));
        }
        assert_eq!(result.state.location.completed_stages, ["read", "tell"]);
        assert!(result.codes().is_empty(), "{:?}", result.codes());
    }
}

#[tokio::test]
async fn a_stage_without_steps_is_completed_by_its_judgement() {
    let plans = json!({
        "p a": { "stages": [{ "stage_id": "first", "title": "First" }, { "stage_id": "second", "title": "Second" }] },
        "*": { "behavior": { "task": "do it" } },
    });
    for mark in ["mark_stage_complete", "mark_step_complete"] {
        for crash_mode in [CrashMode::Never, CrashMode::After] {
            let (result, asked) = planned(plans.clone(), json!({ "*": judged(mark) }), crash_mode).await;
            let exit_reason = result.outcome("loop_a")["exit_reason"].as_str().map(str::to_owned);
            assert_eq!(exit_reason.as_deref(), Some("exit_criteria_met"), "{mark}: {asked:#?}");
            assert_eq!(result.state.location.completed_stages, ["first", "second"], "{mark}: {asked:#?}");
            assert_eq!(result.contents, ["work at first -", "work at second -"], "{mark}");
            assert!(asked.iter().any(|line| line.starts_with("judge:") && line.contains(" first - ")), "{asked:#?}");
        }
    }
}

#[tokio::test]
async fn a_step_goes_on_until_its_signal_and_endless_plans_end_the_session() {
    let task = json!({ "*": { "behavior": { "task": "again" } } });
    let (result, _) = planned(
        task,
        json!({ "*": { "actions": [{ "type": "complete_reflection" }], "next_state": "STEP_RUNNING" } }),
        CrashMode::Never,
    )
    .await;
    assert_eq!(
        (result.pause, result.outcome("loop_a")["exit_reason"].as_str()),
        (SessionPause::Completed, Some("max_rounds_reached"))
    );
    let steps = json!({ "*": { "steps": [{ "step_id": "more" }] } });
    let (result, asked) = planned(steps, json!({ "*": judged("mark_step_complete") }), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Stopped);
    assert_eq!(result.events("error")[0]["code"], "behavior-unreadable");
    assert!(asked.len() <= 12 && result.contents.is_empty(), "{asked:#?}");
}

#[tokio::test]
async fn stages_without_steps_come_in_the_order_of_the_plan() {
    let step = |id: &str| json!({ "step_id": id, "title": id });
    let plans = |stages: Value| {
        json!({
            "p a": { "stages": stages },
            "first -": { "steps": [step("x")] },
            "second -": { "steps": [step("y")] },
            "*": { "behavior": { "task": "do it" } },
        })
    };
    let unplanned = |id: &str| json!({ "stage_id": id, "title": id });
    let planned_with = |id: &str, inner: &str| json!({ "stage_id": id, "title": id, "steps": [step(inner)] });
    for (stages, expected) in [
        (json!([unplanned("first"), planned_with("last", "z")]), vec!["work at first x", "work at last z"]),
        (
            json!([planned_with("begin", "w"), unplanned("second"), planned_with("last", "z")]),
            vec!["work at begin w", "work at second y", "work at last z"],
        ),
    ] {
        for crash_mode in [CrashMode::Never, CrashMode::After] {
            let (result, asked) =
                planned(plans(stages.clone()), json!({ "*": judged("mark_step_complete") }), crash_mode).await;
            assert_eq!(result.pause, SessionPause::Completed, "{asked:#?}");
            assert_eq!(result.contents, expected, "{asked:#?}");
        }
    }
}
