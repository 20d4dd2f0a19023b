//! Masks sensitive values in a typed event, so that observers and the event's JSON line show the same.

use bcc_lang::message::message::Message;
use serde_json::Value;

use crate::program::event::Event;
use crate::program::event_masking::{
    PLAN_FIELDS, mask_debug_info, mask_fields, mask_metadata, mask_outcome_metadata, mask_outputs,
};
use bcc_lang::value::mask::Masker;

/// Fields of events and of the rows of exports that contain only the engine's own values, never text of a person, so masks skip them. Inside
/// the other fields, these names mean nothing.
pub const OWN_FIELDS: [&str; 28] = [
    "seq",
    "at",
    "timestamp",
    "session_id",
    "type",
    "location",
    "message_id",
    "call_id",
    "answer_id",
    "action_id",
    "action_type",
    "exit_reason",
    "progress_suggestion",
    "scope",
    "source",
    "name",
    "round",
    "role",
    "model",
    "tokens_in",
    "tokens_out",
    "ms",
    "attempts",
    "parse_retry_count",
    "current_round",
    "max_rounds",
    "retry_count",
    "strategies",
];

/// Masks the fields that may contain conversation text or extracted values. Conversation messages themselves are not masked.
pub(crate) fn redact(event: &mut Event, masker: &Masker) {
    let text = |text: &mut String| *text = masker.text(text);
    let optional = |text: &mut Option<String>| {
        if let Some(text) = text {
            *text = masker.text(text);
        }
    };
    let message = |message: &mut Message| message.change_texts(&mut |text| *text = masker.text(text));
    let optional_message = |messages: &mut Option<Message>| messages.iter_mut().for_each(message);
    let value = |value: &mut Value| masker.value(value, &[]);
    match event {
        Event::Outcome { outcome, .. } => {
            optional(&mut outcome.ai_message);
            outcome.extracted_variables.values_mut().for_each(|variable| masker.exact_data(variable));
            outcome.metrics.values_mut().for_each(|metric| masker.data(metric));
            mask_outcome_metadata(&mut outcome.metadata, masker);
            mask_debug_info(&mut outcome.debug_info, masker);
            outcome.messages.values_mut().for_each(|stored| message(&mut stored.0));
        }
        Event::VariableSet { value: set, .. } => masker.exact_data(set),
        Event::MonitorFeedback { analysis, .. } => value(analysis),
        Event::Orchestrated { reason, from, why, plan, original, now, .. } => {
            [reason, from].into_iter().for_each(text);
            message(why);
            masker.value(plan, &PLAN_FIELDS);
            original.iter_mut().chain(now).for_each(text);
        }
        Event::ModelCall(call) => {
            mask_debug_info(&mut call.debug_info, masker);
            optional_message(&mut call.error);
            for skipped in &mut call.skipped_models {
                message(&mut skipped.error);
            }
        }
        Event::Cell(cell) => {
            text(&mut cell.content);
            mask_metadata(&mut cell.metadata, masker);
            mask_outputs(&mut cell.outputs, masker);
        }
        Event::ToolCalled(call) => {
            call.arguments.iter_mut().for_each(|arguments| mask_fields(arguments, masker));
            call.result.iter_mut().for_each(|result| result.change(|result| masker.data(result)));
            optional(&mut call.by);
            optional(&mut call.comment);
            optional_message(&mut call.error);
        }
        Event::PlanChanged { name, .. } => optional(name),
        Event::NotebookAction { action, error, effects, .. } => {
            text(action);
            optional_message(error);
            effects.iter_mut().for_each(text);
        }
        Event::Behavior { target, feedback, why, .. } => {
            text(target);
            message(why);
            value(feedback);
        }
        Event::EffectStarted { summary, .. } | Event::EffectFinished { summary, .. } => message(summary),
        // The error text of a model's server may repeat what was sent to it.
        Event::Warning { message: content, help, .. } | Event::Error { message: content, help, .. } => {
            message(content);
            optional_message(help);
        }
        Event::SessionStopped { summary } | Event::SessionFailed { summary } | Event::SessionCancelled { summary } => {
            optional_message(&mut summary.reason);
        }
        Event::RequestOpened { prompt, approvers, .. } => {
            text(prompt);
            approvers.iter_mut().for_each(text);
        }
        // The question of a conversation is part of the conversation.
        Event::Waiting { r#for, prompt, .. } if *r#for != "input" => text(prompt),
        Event::RequestAnswered { by, comment, values, .. } => {
            optional(by);
            optional(comment);
            values.values_mut().for_each(|value| masker.exact_data(value));
        }
        Event::SessionStarted { .. }
        | Event::SessionResumed { .. }
        | Event::PhaseEntered { .. }
        | Event::TopicEntered { .. }
        | Event::ActionStarted { .. }
        | Event::Skipped { .. }
        | Event::MessageDiscarded { .. }
        | Event::Message { .. }
        | Event::RouteTaken { .. }
        | Event::Triggered { .. }
        | Event::Undone { .. }
        | Event::BudgetReached { .. }
        | Event::TakenBack { .. }
        | Event::Waiting { .. }
        | Event::SessionCompleted { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use bcc_lang::message::stored::StoredMessage;
    use serde_json::{Map, json};

    use super::*;
    use crate::program::event::{ModelCall, Speaker, Summary};
    use crate::program::event_masking::mask;
    use crate::program::outcome::Outcome;
    use crate::program::shown_cell::ShownCell;

    const SECRET: &str = "13800001111";

    fn text() -> String {
        format!("call {SECRET}")
    }

    fn map() -> Map<String, Value> {
        let value = json!({
            "a": [text(), 13_800_001_111_u64],
            "b": { "c": text(), "name": text(), "location": { "source": text() } },
            "name": text(),
            "role": text(),
            "at": text(),
        });
        value.as_object().unwrap().clone()
    }

    /// One event of each variant that may contain sensitive text, with the secret in every field.
    fn events() -> Vec<Event> {
        let summary =
            || Summary { reason: Some(bcc_lang::message::message::Message::text(text())), ..Summary::default() };
        let (ai_message, any) = (Some(text()), Value::Object(map()));
        let outcome = Outcome {
            ai_message,
            extracted_variables: map().into_iter().map(|(name, value)| (name, value.into())).collect(),
            metrics: map(),
            metadata: map(),
            debug_info: map(),
            messages: [("/a".to_owned(), StoredMessage(Message::text(text())))].into(),
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
        let call = ModelCall {
            debug_info: map(),
            error: Some(bcc_lang::message::message::Message::text(text())),
            ..ModelCall::default()
        };
        vec![
            Event::Outcome { action_type: "ai_ask", outcome: Box::new(outcome) },
            Event::VariableSet { name: "x".into(), scope: "session", value: any.clone().into(), source: "ask".into() },
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
                why: bcc_lang::message::message::Message::text(text()),
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
                error: Some(bcc_lang::message::message::Message::text(text())),
                effects: vec![text()],
            },
            Event::Behavior {
                behavior_id: "b".into(),
                iteration: 1,
                target: text(),
                feedback: any,
                target_achieved: true,
                decided_by: "reflection",
                why: bcc_lang::message::message::Message::text(text()),
            },
            Event::EffectStarted {
                effect_id: "e".into(),
                kind: "exec".into(),
                summary: bcc_lang::message::message::Message::text(text()),
            },
            Event::EffectFinished {
                effect_id: "e".into(),
                kind: "exec".into(),
                summary: bcc_lang::message::message::Message::text(text()),
            },
            Event::Warning {
                code: "w",
                message: bcc_lang::message::message::Message::text(text()),
                help: Some(bcc_lang::message::message::Message::text(text())),
            },
            Event::Error {
                code: "e",
                message: bcc_lang::message::message::Message::text(text()),
                help: Some(bcc_lang::message::message::Message::text(text())),
            },
            Event::SessionStopped { summary: summary() },
            Event::SessionFailed { summary: summary() },
        ]
    }

    #[test]
    fn a_typed_event_is_masked_like_its_line() {
        let masker = Masker::new(&[json!(SECRET).into(), json!(13_800_001_111_u64).into()]);
        for mut event in events() {
            let mut line = json!(event);
            mask(&mut line, &masker);
            redact(&mut event, &masker);
            assert_eq!(json!(event), line);
            assert!(!line.to_string().contains(SECRET), "{line}");
        }
    }

    #[test]
    fn conversation_messages_are_not_masked() {
        let masker = Masker::new(&[json!(SECRET).into()]);
        let mut event = Event::Message { message_id: "m".into(), role: Speaker::User, text: text(), answer_id: None };
        redact(&mut event, &masker);
        assert!(matches!(event, Event::Message { text: message, .. } if message == text()));
    }
}
