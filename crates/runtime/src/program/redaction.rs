//! What events and recordings may keep of an exchange: nothing that the author called sensitive.

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
    /// What a recording keeps of a call, while there is one: of its reply, or of its error and of whether the turn goes on.
    pub(crate) fn exchanged(
        &self,
        request: &ModelRequest,
        asking: &RetryState<'_>,
        came: Result<ReplyOrError<'_>, (&ModelError, bool)>,
    ) -> Option<Arc<RecordedExchange>> {
        self.services.recorder.as_ref()?;
        let outputs = asking.ask.outputs;
        let (text, fault, went_on) = match came {
            Ok((raw, reading)) => (Some(self.to_record(outputs, raw, reading)), String::new(), false),
            Err((error, went_on)) => (None, error.in_short(), went_on),
        };
        let hidden = outputs.iter().map(|output| &output.get).filter(|name| self.is_sensitive(name)).cloned().collect();
        let messages = asking.shown(request.messages.clone(), |refused| &refused.recorded);
        let exchanged = RecordedExchange::new(&request.task, messages, text, asking.manners);
        Some(Arc::new(RecordedExchange { fault, went_on, hidden, ..exchanged }))
    }

    /// The same for a recording: bent and refused as the reply was, with what prompts show of it in spite of all masks.
    pub(crate) fn to_record(&self, outputs: &Outputs, raw: &str, reading: &Result<Reply, UnreadableReply>) -> String {
        self.replaced(
            outputs,
            raw,
            reading,
            |reply| &reply.came,
            |output, value, reply| {
                let bent = reply.bends.iter().find(|bent| bent.path.strip_prefix('/') == Some(&output.get));
                output.stand_in(value, bent, reply.object.get(&output.get).unwrap_or(&Value::Null))
            },
        )
    }

    /// A raw reply without what sensitive outputs hold in it, for events.
    pub(crate) fn without_sensitive(
        &self,
        outputs: &Outputs,
        raw: &str,
        reading: &Result<Reply, UnreadableReply>,
    ) -> String {
        self.replaced(outputs, raw, reading, |reply| &reply.object, |output, value, _| output.placeholder(value))
    }

    /// A raw reply; where outputs are sensitive, `object` of it with their values replaced, or nothing of one that was not read.
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
        Value::Object(object).to_string()
    }
}
