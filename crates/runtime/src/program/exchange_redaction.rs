//! Removes sensitive values from what events and recordings store of an exchange.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::program::output::{OutputVariable, Outputs};
use crate::program::recorder::RecordedExchange;
use crate::program::retry_state::{ReplyOrError, RetryState};
use crate::program::turn::Turn;
use bcc_lang::value::mask::MASK;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::request::ModelRequest;
use bcc_llm::reply::read::{Reply, UnreadableReply};

impl Turn<'_> {
    /// What a recording stores of a call, if the session is recorded: the reply, or the error and whether the turn continues.
    pub(crate) fn exchanged(
        &self,
        request: &ModelRequest,
        retry: &RetryState<'_>,
        result: Result<ReplyOrError<'_>, (&ModelError, bool)>,
    ) -> Option<Arc<RecordedExchange>> {
        self.services.recorder.as_ref()?;
        let outputs = retry.ask.outputs;
        let (text, error, went_on) = match result {
            Ok((raw, reading)) => (Some(self.to_record(outputs, raw, reading)), String::new(), false),
            Err((error, went_on)) => (None, error.summary(), went_on),
        };
        let hidden = outputs.iter().map(|output| &output.get).filter(|name| self.is_sensitive(name)).cloned().collect();
        let messages = retry.shown(request.messages.clone(), |rejected| &rejected.recorded);
        let exchange = RecordedExchange::new(&request.task, messages, text, retry.policy);
        Some(Arc::new(RecordedExchange { error, used_earlier_reply: went_on, hidden, ..exchange }))
    }

    /// The reply for a recording: coerced and rejected like the original, with the values that prompts show despite masking.
    pub(crate) fn to_record(&self, outputs: &Outputs, raw: &str, reading: &Result<Reply, UnreadableReply>) -> String {
        self.replaced(
            outputs,
            raw,
            reading,
            |reply| &reply.received,
            |output, value, reply| {
                let coercion =
                    reply.coercions.iter().find(|coercion| coercion.path.strip_prefix('/') == Some(&output.get));
                output.recorded_placeholder(value, coercion, reply.object.get(&output.get).unwrap_or(&Value::Null))
            },
        )
    }

    /// A raw reply without the values of sensitive outputs, for events.
    pub(crate) fn without_sensitive(
        &self,
        outputs: &Outputs,
        raw: &str,
        reading: &Result<Reply, UnreadableReply>,
    ) -> String {
        self.replaced(outputs, raw, reading, |reply| &reply.object, |output, value, _| output.placeholder(value))
    }

    /// A raw reply; if outputs are sensitive, its `object` with their values replaced, or a mask if it could not be read.
    fn replaced(
        &self,
        outputs: &Outputs,
        raw: &str,
        reading: &Result<Reply, UnreadableReply>,
        object: fn(&Reply) -> &Map<String, Value>,
        with: fn(&OutputVariable, &Value, &Reply) -> Value,
    ) -> String {
        let sensitive: Vec<&OutputVariable> = outputs.iter().filter(|output| self.is_sensitive(&output.get)).collect();
        if sensitive.is_empty() {
            return raw.to_owned();
        }
        let Ok(reply) = reading else { return MASK.to_owned() };
        let mut object = object(reply).clone();
        for output in sensitive {
            if let Some(value) = object.get_mut(&output.get).filter(|value| !value.is_null()) {
                *value = with(output, value, reply);
            }
        }
        reply.with_digits(object).to_string()
    }
}
