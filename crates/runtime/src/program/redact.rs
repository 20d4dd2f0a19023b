//! Takes sensitive values out of a typed event, so that its readers and its line show the same.

use serde_json::{Map, Value};

use crate::program::event::{Event, OWN_FIELDS};
use bcc_lang::value::mask::Masker;

/// Masks what may hold anything of what was said or extracted. The messages of the conversation stay: they are the conversation itself.
pub(crate) fn redact(event: &mut Event, masker: &Masker) {
    let text = |text: &mut String| *text = masker.text(text);
    let optional = |text: &mut Option<String>| {
        if let Some(text) = text {
            *text = masker.text(text);
        }
    };
    let value = |value: &mut Value| masker.value(value, &OWN_FIELDS);
    let fields = |fields: &mut Map<String, Value>| {
        let own = |name: &str| OWN_FIELDS.contains(&name);
        fields.iter_mut().filter(|(name, _)| !own(name)).for_each(|(_, value)| masker.value(value, &OWN_FIELDS));
    };
    match event {
        Event::Outcome { outcome, .. } => {
            optional(&mut outcome.ai_message);
            fields(&mut outcome.extracted_variables);
            fields(&mut outcome.metrics);
            fields(&mut outcome.metadata);
            fields(&mut outcome.debug_info);
        }
        Event::VariableSet { value: set, .. } => value(set),
        Event::MonitorFeedback { analysis, .. } => value(analysis),
        Event::Orchestrated { reason, from, why, plan, original, now, .. } => {
            [reason, from, why].into_iter().for_each(text);
            value(plan);
            original.iter_mut().chain(now).for_each(text);
        }
        Event::ModelCall(call) => {
            fields(&mut call.debug_info);
            optional(&mut call.error);
            for passed in &mut call.passed_over {
                text(&mut passed.error);
            }
        }
        Event::Cell(cell) => {
            text(&mut cell.content);
            for part in [&mut cell.metadata, &mut cell.outputs] {
                masker.value(part, &["output_type", "execution_count"]);
            }
        }
        Event::NotebookAction { action, error, effects, .. } => {
            text(action);
            optional(error);
            effects.iter_mut().for_each(text);
        }
        Event::Behavior { target, feedback, why, .. } => {
            [target, why].into_iter().for_each(text);
            value(feedback);
        }
        Event::EffectStarted { summary, .. } | Event::EffectFinished { summary, .. } => text(summary),
        // What a model's server says of an error may repeat what it was sent.
        Event::Warning { message, help, .. } | Event::Error { message, help, .. } => {
            text(message);
            optional(help);
        }
        Event::SessionStopped { summary } | Event::SessionFailed { summary } => optional(&mut summary.reason),
        Event::SessionStarted { .. }
        | Event::SessionResumed { .. }
        | Event::PhaseEntered { .. }
        | Event::TopicEntered { .. }
        | Event::ActionStarted { .. }
        | Event::Skipped { .. }
        | Event::MessageDiscarded { .. }
        | Event::Message { .. }
        | Event::Routed { .. }
        | Event::Triggered { .. }
        | Event::BudgetReached { .. }
        | Event::Waiting { .. }
        | Event::SessionCompleted { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::program::event::{ModelCall, Speaker, Summary, mask};
    use crate::program::outcome::Outcome;
    use crate::program::shown_cell::ShownCell;

    const SECRET: &str = "13800001111";

    fn text() -> String {
        format!("call {SECRET}")
    }

    fn map() -> Map<String, Value> {
        let value = json!({ "a": [text(), 13_800_001_111_u64], "b": { "c": text() } });
        value.as_object().unwrap().clone()
    }

    /// One event of each variant that may hold what was said, full of it.
    fn events() -> Vec<Event> {
        let summary = || Summary { reason: Some(text()), ..Summary::default() };
        let (ai_message, any) = (Some(text()), Value::Object(map()));
        let outcome = Outcome {
            ai_message,
            extracted_variables: map(),
            metrics: map(),
            metadata: map(),
            debug_info: map(),
            ..Outcome::default()
        };
        let cell = ShownCell {
            number: 1,
            cell_id: "c".into(),
            cell_type: "code",
            content: text(),
            metadata: any.clone(),
            outputs: any.clone(),
            execution_count: None,
            ended: Value::Null,
            left_out: None,
        };
        let call = ModelCall { debug_info: map(), error: Some(text()), ..ModelCall::default() };
        vec![
            Event::Outcome { action_type: "ai_ask", outcome: Box::new(outcome) },
            Event::VariableSet { name: "x".into(), scope: "session", value: any.clone(), source: "ask".into() },
            Event::MonitorFeedback {
                action_id: "ask".into(),
                action_type: "ai_ask".into(),
                round: 1,
                analysis: any.clone(),
                used: false,
                feedback: None,
            },
            Event::Orchestrated {
                reason: text(),
                route: "insert",
                from: text(),
                why: text(),
                accepted: true,
                plan: any.clone(),
                original: vec![text()],
                now: vec![text()],
            },
            Event::ModelCall(Box::new(call)),
            Event::Cell(Box::new(cell)),
            Event::NotebookAction {
                action: text(),
                by: "model",
                cell_id: None,
                success: false,
                error: Some(text()),
                effects: vec![text()],
            },
            Event::Behavior {
                behavior_id: "b".into(),
                iteration: 1,
                target: text(),
                feedback: any,
                target_achieved: true,
                decided_by: "reflection",
                why: text(),
            },
            Event::EffectStarted { effect_id: "e".into(), kind: "exec".into(), summary: text() },
            Event::EffectFinished { effect_id: "e".into(), kind: "exec".into(), summary: text() },
            Event::Warning { code: "w", message: text(), help: Some(text()) },
            Event::Error { code: "e", message: text(), help: Some(text()) },
            Event::SessionStopped { summary: summary() },
            Event::SessionFailed { summary: summary() },
        ]
    }

    #[test]
    fn a_typed_event_shows_what_its_line_shows() {
        let masker = Masker::new([&json!(SECRET), &json!(13_800_001_111_u64)]);
        for mut event in events() {
            let mut line = json!(event);
            mask(&mut line, &masker);
            redact(&mut event, &masker);
            assert_eq!(json!(event), line);
            assert!(!line.to_string().contains(SECRET), "{line}");
        }
    }

    #[test]
    fn what_people_say_to_each_other_stays() {
        let masker = Masker::new([&json!(SECRET)]);
        let mut event = Event::Message { message_id: "m".into(), role: Speaker::User, text: text() };
        redact(&mut event, &masker);
        assert!(matches!(event, Event::Message { text: said, .. } if said == text()));
    }
}
