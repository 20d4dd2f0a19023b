//! What a kept session sent in one of its calls, beside what today's templates would send there.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::PathBuf;
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
use bcc_engine::settings::RunSettings;
use bcc_lang::template::layers::collect;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::templates::Templates;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::message::ChatMessage;
use bcc_store::contract::Store;

#[derive(Clone, Debug)]
pub struct PromptComparison {
    pub session: String,
    pub action: String,
    /// The visit of the action: its instance path, as `t#2/ask`.
    pub path: String,
    pub round: u32,
    /// Which call of the round it is, from 1: of all visits of the action, unless one of them was chosen.
    pub call: usize,
    pub calls: usize,
    pub at: String,
    pub then: Vec<ChatMessage>,
    /// What would be sent now.
    ///
    /// The error says why there is no such prompt.
    pub now: Result<Prompt, Message>,
    pub same: bool,
    /// Whether the repetition of the session, with its own templates, sends what was sent.
    pub repeated: bool,
    pub notes: Vec<Message>,
}

/// Compares a call of a kept session with what would be sent now. The session is only read, and not held.
/// Errors: `Usage` when there is no such session, action, round or call: says which there are. `Failed` when what is kept cannot be
/// read, or holds no prompt.
pub async fn changed(
    archive: &dyn Store,
    project: &Project,
    request: &SentRequest,
) -> Result<PromptComparison, EngineError> {
    let id = &request.session;
    let row = archive.session(id).await?.ok_or_else(|| {
        EngineError::usage(msg!("there is no session `{id}` in this store"))
            .with_help("run `bcc-script sessions list` to list the sessions")
    })?;
    let mut steps = steps(archive, id).await?;
    unmask(&mut steps, &archive.variables(id).await?);
    let (wanted, turn, which) = chosen(&steps, request)?;
    let kept = turn.calls.get(wanted.call).cloned().unwrap_or_default();
    let SentCall { at, prompt: Some(then), .. } = kept else {
        return Err(EngineError::failed(msg!("what `{}` sent in this call is not stored", turn.action)));
    };
    let masker = masker(archive, id, &row.user).await?;
    let then: Vec<ChatMessage> = then.into_iter().map(|said| masked(said, &masker)).collect();
    let settings: RunSettings = serde_json::from_str(&row.settings)
        .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
    let mut changed = PromptComparison {
        session: id.clone(),
        action: turn.action.clone(),
        path: turn.path.clone(),
        round: turn.round,
        call: which.0,
        calls: which.1,
        at,
        then,
        now: Err(Message::default()),
        same: false,
        repeated: false,
        notes: vec![],
    };
    let marks = Arc::new(Marks::default());
    let templates = match templates(project, request, &settings) {
        Ok(templates) => templates.marking(Arc::clone(&marks)),
        Err(error) => {
            changed.now = Err(hidden(error.to_message(), &masker));
            return Ok(changed);
        }
    };
    // A second set for looking places up: the first one goes to the program that is tried.
    let places = self::templates(project, request, &settings)?;
    let pinned = Arc::new(Pinned::load(archive, &row.manifest).await?);
    let repeat = SessionRepeater { archive, row: &row, pinned: &pinned, steps: &steps, utc: settings.clock.is_some() };
    let shown = |messages: &[ChatMessage]| -> Vec<ChatMessage> {
        messages.iter().cloned().map(|said| masked(said, &masker)).collect()
    };
    let fits = |messages: &[ChatMessage]| shown(messages) == changed.then;
    match repeat.up_to(wanted, (templates, &marks), fits).await? {
        Err(why) => {
            let why = hidden(why, &masker);
            changed.now = Err(msg!("the session cannot be repeated up to this call: {why}"));
        }
        Ok(RepeatedCall { then, now }) => {
            changed.repeated = fits(&then);
            if !changed.repeated {
                changed.notes.push(unlike(&masker));
            }
            // A template may fail with words that hold a value: `{% include phone %}`.
            changed.now = now.map_err(|why| hidden(missing_names::told(why, &marks), &masker)).map(|heard| {
                let number = places.rendered_last(&marks);
                let mut prompt = match number.and_then(|number| places.files().get(number)) {
                    Some(loaded) => Prompt::heard(heard, loaded, &masker),
                    None => Prompt { messages: shown(&heard.request.messages), ..Prompt::default() },
                };
                missing_names::note(&mut prompt, &places, &marks);
                prompt
            });
            changed.same = changed.now.as_ref().is_ok_and(|now| now.messages == changed.then);
        }
    }
    Ok(changed)
}

/// A message without the sensitive values in the texts of others.
fn hidden(mut message: Message, masker: &Masker) -> Message {
    message.change_texts(&mut |text| *text = masker.text(text));
    message
}

/// The wanted call, its turn, and the how manieth of how many calls of its round it is.
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
        let rounds: Vec<String> = rounds.iter().map(u32::to_string).collect();
        let error = EngineError::usage(msg!("`{action}` asked no model in round {round} of session `{session}`"));
        return Err(error.with_help(msg!("it asked a model in these rounds: {}", rounds.join(", "))));
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

/// The templates that a session like this one would begin with now.
fn templates(project: &Project, request: &SentRequest, settings: &RunSettings) -> Result<Templates, EngineError> {
    let own = settings.project.as_deref().map(PathBuf::from).filter(|own| own.is_dir() && !request.here);
    let directory = own.unwrap_or_else(|| project.directory.clone());
    let scheme = request.scheme.as_deref().or(settings.scheme.as_deref());
    let files = collect(&TemplateFolders::of(&directory), scheme)?;
    Ok(Templates::new(&files, &uuid::Uuid::now_v7().simple().to_string())?)
}

async fn masker(archive: &dyn Store, id: &str, user: &str) -> Result<Masker, EngineError> {
    let rows = archive.variables(id).await?.into_iter().chain(archive.user_variables(user).await?);
    let values: Vec<Value> =
        rows.filter(|row| row.sensitive).filter_map(|row| serde_json::from_str(&row.value).ok()).collect();
    Ok(Masker::new(&values))
}

/// What is said when the repetition does not give what was sent.
fn unlike(masker: &Masker) -> Message {
    let why = if masker.is_empty() {
        "repeated with its own templates, the session does not produce exactly what was sent originally (a variable of its user or of its command line has changed since then, time was short, or a monitor finished at a different moment); this may account for part of the difference"
    } else {
        "repeated with its own templates, the session does not produce exactly what was sent originally (sensitive values are stored masked); this may account for part of the difference"
    };
    Message::word(why)
}

impl PromptComparison {
    pub fn as_value(&self) -> Value {
        let now = self.now.as_ref().map(Prompt::as_value).ok();
        json!({
            "session_id": self.session,
            "action_id": self.action,
            "path": self.path,
            "round": self.round,
            "call": self.call,
            "calls": self.calls,
            "at": self.at,
            "then": { "messages": as_value(&self.then) },
            "now": now,
            "error": self.now.as_ref().err(),
            "same": self.same,
            "repeated": self.repeated,
            "diff": self.differences(),
            "notes": self.notes,
        })
    }

    /// The unified difference of each message; empty where there is none. None at all when there is no prompt now.
    pub fn differences(&self) -> Vec<String> {
        let Ok(now) = &self.now else { return vec![] };
        let content = |messages: &[ChatMessage], number: usize| {
            messages.get(number).map(|message| message.content.clone()).unwrap_or_default()
        };
        let count = self.then.len().max(now.messages.len());
        (0..count).map(|number| difference(&content(&self.then, number), &content(&now.messages, number))).collect()
    }
}

const CONTEXT: usize = 3;

/// The unified difference of two texts; empty when there is none.
fn difference(then: &str, now: &str) -> String {
    if then == now {
        return String::new();
    }
    // A text that ends without a line end would be told so under each hunk.
    let (then, now) = (format!("{then}\n"), format!("{now}\n"));
    TextDiff::from_lines(&then, &now).unified_diff().context_radius(CONTEXT).header("then", "now").to_string()
}
