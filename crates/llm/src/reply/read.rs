//! A model's text becomes a reply of an action's shape (docs/replies.md).

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};
use tracing::warn;

use crate::reply::coerce::{CoercionRecord, bend};
use crate::reply::repair::record::{RepairKind, RepairRecord};
use crate::reply::shape::ReplyShape;
use crate::reply::strategies::{ParseFailure, parse};

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its fields; keys that the schema does not name are kept as they came.
    pub object: Map<String, Value>,
    /// The same fields as they came, before anything was bent.
    pub came: Map<String, Value>,
    /// The number of the strategy that read it, from 1.
    pub parse_retry_count: u8,
    pub failures: Vec<ParseFailure>,
    /// What was bent to fit; empty for a reply that was valid as it came.
    pub bends: Vec<CoercionRecord>,
    /// What the fourth strategy mended, in the order of the text; empty for the others.
    pub repairs: Vec<RepairRecord>,
}

impl Reply {
    /// Whether the raw text ended too early, so that fields may be missing that the model meant to write. Each field that is
    /// there is whole.
    pub fn cut_off(&self) -> bool {
        is_cut(&self.repairs)
    }
}

/// A text in which no strategy finds an object. The caller degrades; nothing is thrown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no strategy could read the reply: {}", self.final_error())]
pub struct UnreadableReply {
    pub failures: Vec<ParseFailure>,
}

impl ToMessage for UnreadableReply {
    fn to_message(&self) -> Message {
        msg!("no strategy could read the reply: {}", self.final_error())
    }
}

impl UnreadableReply {
    /// How many strategies were tried: the `parse_retry_count` of the degraded outcome.
    pub fn retry_count(&self) -> u8 {
        u8::try_from(self.failures.len()).unwrap_or(u8::MAX)
    }

    pub fn strategies(&self) -> Vec<&'static str> {
        self.failures.iter().map(|failure| failure.strategy.name()).collect()
    }

    pub fn final_error(&self) -> Message {
        self.failures.last().map_or_else(Message::default, |failure| failure.error.clone())
    }
}

/// Reads `raw` by the strategies, the fourth only with `repair`, and bends what it holds to `shape`: a missing or mistyped field takes its default, a
/// value that can be read without loss is. Each mend and each bend is recorded and logged as a warning (never its value).
///
/// # Errors
/// [`UnreadableReply`] when no strategy finds an object, or when the text was cut off before its `safety_risk`, where the shape
/// has one.
pub fn read(raw: &str, shape: &ReplyShape, repair: bool) -> Result<Reply, UnreadableReply> {
    let mut parsed = parse(raw, repair).map_err(|failures| UnreadableReply { failures })?;
    if is_cut(&parsed.repairs) && leaves_safety_open(&parsed.object, shape) {
        let error = Message::word("the text ends before it states whether the reply is safe");
        warn!(strategy = %parsed.strategy, %error, "a strategy could not read the reply");
        parsed.failures.push(ParseFailure { strategy: parsed.strategy, error });
        return Err(UnreadableReply { failures: parsed.failures });
    }
    for RepairRecord { kind, at } in &parsed.repairs {
        warn!(%kind, at, "the text of the reply was mended");
    }
    let came = parsed.object.clone();
    let (object, bends) = bend(parsed.object, shape);
    if !bends.is_empty() {
        // One line a reply: what each field should have been stands in the events of the call.
        let fields: Vec<String> = bends.iter().map(|bend| format!("{} {}", bend.path, bend.bending.name())).collect();
        warn!(fields = fields.join(", "), "fields of the reply were bent");
    }
    let parse_retry_count = parsed.strategy.number();
    Ok(Reply { object, came, parse_retry_count, failures: parsed.failures, bends, repairs: parsed.repairs })
}

fn is_cut(repairs: &[RepairRecord]) -> bool {
    repairs.iter().any(|repair| repair.kind == RepairKind::CutOff)
}

/// Whether `shape` wants to know if the reply is safe and `object` does not say: in a text that was cut off that must not
/// count as a no.
fn leaves_safety_open(object: &Map<String, Value>, shape: &ReplyShape) -> bool {
    const SAFETY: &str = "safety_risk";
    shape.reserved().any(|name| name == SAFETY)
        && object.get(SAFETY).and_then(|risk| risk.get("detected")).is_none_or(|detected| !detected.is_boolean())
}
