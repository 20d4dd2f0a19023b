//! Reads the text of a model as a reply of an action (docs/replies.md).

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::ExactValue;
use serde_json::{Map, Value};
use tracing::warn;

use crate::reply::coerce::{CoercionRecord, coerce_object};
use crate::reply::extract::is_reply;
use crate::reply::meaning;
use crate::reply::repair::record::{RepairKind, RepairRecord};
use crate::reply::shape::ReplyShape;
use crate::reply::strategies::{ParseFailure, ParseStrategy, parse};

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its fields; keys that are not in the schema are unchanged.
    pub object: Map<String, Value>,
    /// The same fields before coercion.
    pub received: Map<String, Value>,
    /// How the numbers of the reply were written. May contain numbers that coercion has replaced.
    digits: Option<Digits>,
    /// The number of the successful strategy, starting at 1.
    pub parse_retry_count: u8,
    pub failures: Vec<ParseFailure>,
    /// The coercions; empty for a reply that was valid.
    pub coercions: Vec<CoercionRecord>,
    /// The repairs of the fourth strategy, in the order of the text; empty for the others.
    pub repairs: Vec<RepairRecord>,
}

impl Reply {
    /// A reply whose fields were made from a list.
    pub(crate) fn of_list(
        object: Map<String, Value>,
        received: Map<String, Value>,
        strategy: ParseStrategy,
        coercions: Vec<CoercionRecord>,
        repairs: Vec<RepairRecord>,
    ) -> Self {
        let (digits, failures) = (None, vec![]);
        Self { object, received, digits, parse_retry_count: strategy.number(), failures, coercions, repairs }
    }

    /// A field with the digits of its numbers.
    pub fn field(&self, name: &str) -> Option<ExactValue> {
        let digits = self.digits.as_ref().and_then(|digits| digits.field(name)).cloned();
        Some(ExactValue::new(self.object.get(name)?.clone(), digits))
    }

    /// `object`, which has the same or other fields than the reply, with the digits of the numbers that are the same.
    pub fn with_digits(&self, object: Map<String, Value>) -> ExactValue {
        ExactValue::new(Value::Object(object), self.digits.clone())
    }

    /// Whether the raw text was truncated, so that fields may be missing. Each field that is present is complete.
    pub fn cut_off(&self) -> bool {
        is_cut(&self.repairs)
    }
}

/// A text in which no strategy finds an object. The caller falls back to a default outcome.
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
    /// The number of strategies tried: `parse_retry_count` of the fallback outcome.
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

/// Parses `raw` with the strategies, the fourth only with `repair`, and coerces the object to `shape`: values that can be converted
/// without loss are converted, other invalid or missing fields are set to their defaults. Each repair and coercion is recorded and
/// logged as a warning, without the value.
///
/// # Errors
/// [`UnreadableReply`] when no strategy finds an object, or when the text was truncated before its `safety_risk`, if the shape has
/// this field.
pub fn read(raw: &str, shape: &ReplyShape, repair: bool) -> Result<Reply, UnreadableReply> {
    let own = shape.own_fields();
    let mut parsed = parse(raw, &own, repair).map_err(|failures| UnreadableReply { failures })?;
    // An ellipsis stands for fields that the model left out; without its opening brace, more may be missing.
    let is_partial = |repair: &RepairRecord| matches!(repair.kind, RepairKind::Ellipsis | RepairKind::MissingBrace);
    let leaves_out = parsed.repairs.iter().any(is_partial);
    let unusable = if (is_cut(&parsed.repairs) || leaves_out) && lacks_safety_risk(&parsed.object, shape) {
        Some("the text ends before it states whether the reply is safe")
    } else if is_cut(&parsed.repairs) && !is_reply(&parsed.object, &own) {
        Some("the text ends before its first field is complete")
    } else {
        None
    };
    if let Some(reason) = unusable {
        let error = Message::word(reason);
        warn!(strategy = %parsed.strategy, %error, "a strategy could not read the reply");
        parsed.failures.push(ParseFailure { strategy: parsed.strategy, error });
        return Err(UnreadableReply { failures: parsed.failures });
    }
    for RepairRecord { kind, at } in &parsed.repairs {
        warn!(%kind, at, "the text of the reply was repaired");
    }
    let original = parsed.object.clone();
    let mut records = meaning::resolve(&mut parsed.object, parsed.digits.as_ref(), shape);
    let (object, coerced) = coerce_object(parsed.object, shape);
    let digits = fields_with_digits(parsed.digits.as_ref(), &original, &object);
    records.extend(coerced);
    if !records.is_empty() {
        // One line per reply; the events of the call contain what was expected for each field.
        let fields: Vec<String> =
            records.iter().map(|record| format!("{} {}", record.path, record.kind.name())).collect();
        warn!(fields = fields.join(", "), "fields of the reply were coerced");
    }
    let parse_retry_count = parsed.strategy.number();
    let (failures, repairs) = (parsed.failures, parsed.repairs);
    Ok(Reply { object, received: original, digits, parse_retry_count, failures, coercions: records, repairs })
}

/// The digits of `value`, also of numbers that were texts when they were received. `received` is only looked up if that is possible.
fn with_numbers_from_texts<'a>(
    digits: Option<&Digits>,
    received: impl FnOnce() -> Option<&'a Value>,
    value: &Value,
) -> Option<Digits> {
    if matches!(value, Value::Number(_) | Value::Object(_)) {
        match (received(), value) {
            (Some(Value::String(text)), Value::Number(_)) => return Digits::of_json(text.trim())?.matching(value),
            (Some(Value::Object(received)), Value::Object(fields)) => {
                return fields_with_digits(digits, received, fields);
            }
            _ => {}
        }
    }
    digits.cloned()
}

/// Nearly every reply has none: names are copied only for fields that have some.
fn fields_with_digits(
    digits: Option<&Digits>,
    received: &Map<String, Value>,
    fields: &Map<String, Value>,
) -> Option<Digits> {
    let own = |name: &str| digits.and_then(|digits| digits.field(name));
    let kept = fields.iter().filter_map(|(name, field)| {
        let digits = with_numbers_from_texts(own(name), || received.get(name), field)?;
        Some((name.clone(), Some(digits)))
    });
    let names = digits.is_some().then(|| received.keys()).into_iter().flatten();
    let removed = names.filter(|name| !fields.contains_key(*name));
    Digits::of_fields(kept.chain(removed.map(|name| (name.clone(), own(name).cloned()))))
}

fn is_cut(repairs: &[RepairRecord]) -> bool {
    repairs.iter().any(|repair| repair.kind == RepairKind::CutOff)
}

/// Whether `shape` requires `safety_risk` and `object` lacks it. In a truncated text this must not count as safe.
fn lacks_safety_risk(object: &Map<String, Value>, shape: &ReplyShape) -> bool {
    const SAFETY: &str = "safety_risk";
    shape.reserved().any(|name| name == SAFETY)
        && object.get(SAFETY).and_then(|risk| risk.get("detected")).is_none_or(|detected| !detected.is_boolean())
}
