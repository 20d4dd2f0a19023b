//! The answers that a session gives again: those of the person in the earlier session, after the events that both have.

use bcc_store::contract::Store;
use serde_json::Value;

use crate::error::EngineError;
use crate::export::events_of;
use crate::settings::RunSettings;
use crate::taken_back::TakenBackEvents;

/// The answers of the person in the session `id` after the event `seq`, without those that were taken back.
pub(crate) async fn answers_after(store: &dyn Store, id: &str, seq: u64) -> Result<Vec<String>, EngineError> {
    let taken_back = TakenBackEvents::of(events_of(store, id, "taken_back").await?);
    let messages = taken_back.others(events_of(store, id, "message").await?);
    let is_answer = |event: &&Value| is_after(event, seq) && event.get("role").and_then(Value::as_str) == Some("user");
    let text = |event: &Value| event.get("text").and_then(Value::as_str).map(str::to_owned);
    Ok(messages.iter().filter(is_answer).filter_map(text).collect())
}

/// The answers that the session `id` is still to be given by whoever opens it. There are none once somebody has given another answer, or
/// has taken one back: the conversation is theirs then.
pub(crate) async fn remaining_answers(
    store: &dyn Store,
    id: &str,
    settings: &RunSettings,
) -> Result<Vec<String>, EngineError> {
    let (Some(count), Some(earlier)) = (settings.given_answers, &settings.retry_of) else { return Ok(vec![]) };
    let seq = settings.retry_seq.unwrap_or_default();
    if events_of(store, id, "taken_back").await?.iter().any(|event| is_after(event, seq)) {
        return Ok(vec![]);
    }
    let own = answers_after(store, id, seq).await?;
    let answers = answers_after(store, earlier, seq).await?;
    // What the earlier session was told since then is not part of it.
    let mut answers = answers.into_iter().take(usize::try_from(count).unwrap_or(usize::MAX));
    let is_repeated = own.iter().all(|text| answers.next().as_ref() == Some(text));
    Ok(if is_repeated { answers.collect() } else { vec![] })
}

fn is_after(event: &Value, seq: u64) -> bool {
    event.get("seq").and_then(Value::as_u64) > Some(seq)
}
