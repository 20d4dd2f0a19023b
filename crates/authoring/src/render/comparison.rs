//! Compares a prompt of a stored session with the prompt that the current templates would produce.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Value, json};
use similar::TextDiff;

use crate::render::find_action::listed;
use crate::render::missing_names;
use crate::render::prompt::{Prompt, as_value, masked};
use crate::render::replay_session::{CallPosition, RepeatedCall, SessionRepeater};
use crate::render::request::SentRequest;
use crate::render::sent_calls::{SentCall, SentStep, SentTurn, steps, unmask};
use bcc_engine::error::EngineError;
use bcc_engine::files::TemplateFolders;
use bcc_engine::pin::Pinned;
use bcc_engine::project::Project;
use bcc_engine::session_variables::user_variables;
use bcc_engine::settings::RunSettings;
use bcc_lang::template::layers::collect;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::templates::Templates;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::message::ChatMessage;
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;

#[derive(Clone, Debug)]
pub struct PromptComparison {
    pub session: String,
    pub action: String,
    /// The visit of the action: its instance path, such as `t#2/ask`.
    pub path: String,
    pub round: u32,
    /// The number of the call in the round, from 1, over all visits of the action unless one was selected.
    pub call: usize,
    pub calls: usize,
    pub at: String,
    pub original: Vec<ChatMessage>,
    /// The prompt that would be sent now.
    ///
    /// The error is the reason why there is no such prompt.
    pub current: Result<Prompt, Message>,
    pub same: bool,
    /// Whether repeating the session with its own templates produces the original prompt.
    pub repeated: bool,
    pub notes: Vec<Message>,
}

/// Compares a call of a stored session with what would be sent now. The session is only read, and not locked.
/// Errors: `Usage` if there is no such session, action, round or call, with those that exist; `Failed` if the stored
/// data cannot be read or contains no prompt.
pub async fn compare(
    store: &dyn Store,
    project: &Project,
    request: &SentRequest,
) -> Result<PromptComparison, EngineError> {
    let id = &request.session;
    let row = store.session(id).await?.ok_or_else(|| {
        EngineError::usage(msg!("there is no session `{id}` in this store"))
            .with_help("run `bcc-script sessions list` to list the sessions")
    })?;
    let mut steps = steps(store, id).await?;
    unmask(&mut steps, &store.variables(id).await?);
    let (wanted, turn, call_number) = chosen(&steps, request)?;
    let stored = turn.calls.get(wanted.call).cloned().unwrap_or_default();
    let SentCall { at, prompt: Some(original), .. } = stored else {
        return Err(EngineError::failed(msg!("what `{}` sent in this call is not stored", turn.action)));
    };
    let masker = masker(store, &row).await?;
    let original: Vec<ChatMessage> = original.into_iter().map(|message| masked(message, &masker)).collect();
    let settings: RunSettings = serde_json::from_str(&row.settings)
        .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
    settings.place(id, &project.directory, request.use_given_project)?;
    let mut comparison = PromptComparison {
        session: id.clone(),
        action: turn.action.clone(),
        path: turn.path.clone(),
        round: turn.round,
        call: call_number.0,
        calls: call_number.1,
        at,
        original,
        current: Err(Message::default()),
        same: false,
        repeated: false,
        notes: vec![],
    };
    let marks = Arc::new(Marks::default());
    let templates = match templates(project, request, &settings) {
        Ok(templates) => templates.with_marks(Arc::clone(&marks)),
        Err(error) => {
            comparison.current = Err(redacted(error.to_message(), &masker));
            return Ok(comparison);
        }
    };
    // A second set for lookups: the first one is moved into the program that is run.
    let lookup = self::templates(project, request, &settings)?;
    let pinned = Arc::new(Pinned::load(store, &row.manifest).await?);
    let repeat = SessionRepeater { store, row: &row, pinned: &pinned, steps: &steps, utc: settings.clock.is_some() };
    let shown = |messages: &[ChatMessage]| -> Vec<ChatMessage> {
        messages.iter().cloned().map(|message| masked(message, &masker)).collect()
    };
    let is_original = |messages: &[ChatMessage]| shown(messages) == comparison.original;
    match repeat.repeat_to(wanted, (templates, &marks), is_original).await? {
        Err(reason) => {
            let reason = redacted(reason, &masker);
            comparison.current = Err(msg!("the session cannot be repeated up to this call: {reason}"));
        }
        Ok(RepeatedCall { original, current: now }) => {
            comparison.repeated = is_original(&original);
            if !comparison.repeated {
                comparison.notes.push(difference_note(&masker));
            }
            // A template error may contain a value: `{% include phone %}`.
            comparison.current = now
                .map_err(|reason| redacted(missing_names::with_unknown_names(reason, &marks), &masker))
                .map(|captured| {
                    let number = lookup.last_rendered(&marks);
                    let mut prompt = match number.and_then(|number| lookup.files().get(number)) {
                        Some(loaded) => Prompt::from_captured(captured, loaded, &masker),
                        None => Prompt { messages: shown(&captured.request.messages), ..Prompt::default() },
                    };
                    missing_names::note(&mut prompt, &lookup, &marks);
                    prompt
                });
            comparison.same = comparison.current.as_ref().is_ok_and(|now| now.messages == comparison.original);
        }
    }
    Ok(comparison)
}

/// Masks sensitive values in the foreign texts of a message.
fn redacted(mut message: Message, masker: &Masker) -> Message {
    message.change_texts(&mut |text| *text = masker.text(text));
    message
}

/// The selected call, its turn, its number, and the number of calls in its round.
fn chosen<'s>(
    steps: &'s [SentStep],
    request: &SentRequest,
) -> Result<(CallPosition, &'s SentTurn, (usize, usize)), EngineError> {
    let SentRequest { session, action, path, round, call, .. } = request;
    let turns = || {
        steps.iter().enumerate().filter_map(|(number, step)| match step {
            SentStep::Turn(turn) => Some((number, turn)),
            _ => None,
        })
    };
    let of_action = || turns().filter(|(_, turn)| turn.action == *action);
    let wanted = || of_action().filter(|(_, turn)| path.as_ref().is_none_or(|path| turn.path == *path));
    let mut rounds: Vec<u32> = wanted().map(|(_, turn)| turn.round).collect();
    let Some(last) = rounds.last().copied() else {
        let each = |all: &mut dyn Iterator<Item = &'s str>| {
            let mut names: Vec<&str> = Vec::new();
            for name in all.filter(|name| !name.is_empty()) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names
        };
        let visits = each(&mut of_action().map(|(_, turn)| turn.path.as_str()));
        if let (Some(path), false) = (path, visits.is_empty()) {
            let error = EngineError::usage(msg!("`{action}` asked no model at `{path}` in session `{session}`"));
            return Err(error.with_help(msg!("it asked a model at {}", listed(&visits))));
        }
        let asked = each(&mut turns().map(|(_, turn)| turn.action.as_str()));
        let error = EngineError::usage(msg!("`{action}` asked no model in session `{session}`"));
        return Err(match asked.is_empty() {
            true => error.with_help("no action of the session has asked a model yet"),
            false => error.with_help(msg!("actions that asked a model are {}", listed(&asked))),
        });
    };
    let round = round.unwrap_or(last);
    let calls: Vec<(CallPosition, &SentTurn)> = wanted()
        .filter(|(_, turn)| turn.round == round)
        .flat_map(|(step, turn)| (0..turn.calls.len()).map(move |call| (CallPosition { step, call }, turn)))
        .collect();
    if calls.is_empty() {
        rounds.sort_unstable();
        rounds.dedup();
        let error = EngineError::usage(msg!("`{action}` asked no model in round {round} of session `{session}`"));
        return Err(error.with_help(msg!("it asked a model in these rounds: {}", Message::values(rounds))));
    }
    let number = call.unwrap_or(calls.len());
    match number.checked_sub(1).and_then(|index| calls.get(index)) {
        Some((wanted, turn)) => Ok((*wanted, turn, (number, calls.len()))),
        None => {
            let error = EngineError::usage(msg!("round {round} of `{action}` has no call {number}"));
            Err(error.with_help(msg!("its calls are numbered from 1 to {}", calls.len())))
        }
    }
}

/// The templates that a new session with these settings would use.
fn templates(project: &Project, request: &SentRequest, settings: &RunSettings) -> Result<Templates, EngineError> {
    let scheme = request.scheme.as_deref().or(settings.scheme.as_deref());
    let files = collect(&TemplateFolders::of(&project.directory), scheme)?;
    Ok(Templates::new(&files, &uuid::Uuid::now_v7().simple().to_string())?)
}

async fn masker(store: &dyn Store, row: &SessionRow) -> Result<Masker, EngineError> {
    let rows = store.variables(&row.id).await?.into_iter().chain(user_variables(store, row).await?);
    let values: Vec<ExactValue> =
        rows.filter(|row| row.sensitive).filter_map(|row| ExactValue::parse(&row.value).ok()).collect();
    Ok(Masker::new(&values))
}

/// The note for a repetition that does not produce the original prompt.
fn difference_note(masker: &Masker) -> Message {
    let text = if masker.is_empty() {
        "repeated with its own templates, the session does not produce exactly what was sent originally (a variable of its user or of its command line has changed since then, time was short, or a monitor finished at a different moment); this may account for part of the difference"
    } else {
        "repeated with its own templates, the session does not produce exactly what was sent originally (sensitive values are stored masked); this may account for part of the difference"
    };
    Message::word(text)
}

impl PromptComparison {
    pub fn as_value(&self) -> Value {
        let now = self.current.as_ref().map(Prompt::as_value).ok();
        json!({
            "session_id": self.session,
            "action_id": self.action,
            "path": self.path,
            "round": self.round,
            "call": self.call,
            "calls": self.calls,
            "at": self.at,
            "then": { "messages": as_value(&self.original) },
            "now": now,
            "error": self.current.as_ref().err(),
            "same": self.same,
            "repeated": self.repeated,
            "diff": self.differences(),
            "notes": self.notes,
        })
    }

    /// The unified diff of each message, empty for equal messages. No diffs at all if there is no current prompt.
    pub fn differences(&self) -> Vec<String> {
        let Ok(now) = &self.current else { return vec![] };
        let content = |messages: &[ChatMessage], number: usize| {
            messages.get(number).map(|message| message.content.clone()).unwrap_or_default()
        };
        let count = self.original.len().max(now.messages.len());
        (0..count).map(|number| difference(&content(&self.original, number), &content(&now.messages, number))).collect()
    }
}

const CONTEXT: usize = 3;

/// The unified diff of two texts; empty if they are equal.
fn difference(original: &str, current: &str) -> String {
    if original == current {
        return String::new();
    }
    // Without a final line break, each hunk would contain a notice about it.
    let (original, current) = (format!("{original}\n"), format!("{current}\n"));
    TextDiff::from_lines(&original, &current).unified_diff().context_radius(CONTEXT).header("then", "now").to_string()
}
