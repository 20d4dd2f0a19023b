//! The end of a stored conversation, for a person who resumes it at a terminal.

use serde_json::Value;

use crate::error::EngineError;
use crate::export::{masker_of, parse};
use crate::script_names::ScriptNames;
use bcc_store::contract::Store;

/// The number of messages that are shown: two exchanges.
const MAX_MESSAGES: usize = 4;

/// The maximum number of characters of a message that are shown.
const MAX_CHARACTERS: usize = 600;

/// The end of a conversation, and the names to show it with.
#[derive(Clone, Debug, Default)]
pub struct LastExchanges {
    pub names: ScriptNames,
    /// The role and the text of each message, oldest first. The question that the session waits on is not included, because it
    /// is reported again. Sensitive values are masked.
    pub messages: Vec<(String, String)>,
}

impl LastExchanges {
    /// Errors: The store cannot be read. A session that does not exist has no messages.
    pub async fn of_session(store: &dyn Store, id: &str) -> Result<Self, EngineError> {
        let Some(row) = store.session(id).await? else { return Ok(Self::default()) };
        let masker = masker_of(store, &row).await?;
        let mut rows = store.messages_tail(id, MAX_MESSAGES + 1).await?;
        let waiting = store.last_by_kind(id, "waiting").await?.filter(|_| row.status == "waiting_input");
        let waiting = waiting.map(|event| parse(&event.body, "event")).transpose()?;
        let question = waiting.as_ref().and_then(|event| event.get("prompt")).and_then(Value::as_str);
        if rows.last().is_some_and(|last| last.role == "ai" && Some(last.text.as_str()) == question) {
            rows.pop();
        }
        let skipped = rows.len().saturating_sub(MAX_MESSAGES);
        let messages = rows.into_iter().skip(skipped).map(|row| (row.role, shortened(&masker.text(&row.text))));
        Ok(Self { messages: messages.collect(), names: ScriptNames::of_session(store, &row).await })
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
