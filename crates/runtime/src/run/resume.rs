//! Resumes a stored session: rows become frames, scopes and counters.

use crate::program::stored_event::public_line;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde::Deserialize;

use crate::notebook::state::NotebookState;
use crate::program::decision::RequestKind;
use crate::program::event::{Committed, Event, Speaker};
use crate::program::location::EventLocation;
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::transcript::{RecentTranscript, TranscriptEntry};
use crate::program::turn::message_id;
use crate::run::compensations::{Compensations, compensations_of};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{FrameTarget, Frames, Insertion, ROOT, lineage, public_path, redacted_key, skill_path};
use crate::run::head::{Head, SessionStatus};
use crate::run::notebook::state_of;
use crate::run::orchestrate::replanned;
use crate::run::session::Session;
use crate::run::start::SessionParts;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::{DeclarationMap, Scope, ScopeLayer, Scopes, Stored};
use bcc_store::contract::Store;
use bcc_store::rows::{FrameRow, RequestRow, SessionRow, VariableRow};

impl Session {
    /// Resumes a session that is not final, and commits that. If it was waiting, its question is reported again.
    /// Errors: There is no session with this id, it is final, or the stored data cannot be read.
    pub async fn resume(parts: SessionParts) -> Result<Self, RunError> {
        let budget = parts.budget;
        let empty = Self::empty(parts);
        let (id, store) = (empty.id.clone(), Arc::clone(&empty.store));
        let row = store.session(&id).await?.ok_or_else(|| RunError::NotFound(id.clone()))?;
        let unreadable = |what: Message| RunError::Unreadable { id: id.clone(), what };
        let status =
            SessionStatus::parse(&row.status).ok_or_else(|| unreadable(msg!("unknown status `{}`", row.status)))?;
        if status.is_final() {
            return Err(RunError::Final { id: id.clone(), status: status.name() });
        }
        let head: Head = serde_json::from_str(&row.head).map_err(|error| unreadable(msg!("head: {error}")))?;
        let frame_rows = store.frames(&id).await?;
        let variables = store.variables(&id).await?;
        let user_rows = store.user_variables(&row.user).await?;
        let StoredState { program, frames, scopes, outer, notebook, compensations } =
            read_state(&empty.base, &empty.services, &frame_rows, &variables, &user_rows).map_err(unreadable)?;
        let masker = Masker::new(&sensitive_values(&variables, &user_rows));
        let recent = recent(store.as_ref(), &id, &program, head.messages).await?;
        // An answer that was stored but not yet processed is the newest message.
        let pending = recent.last_user_message().filter(|_| head.pending).map(str::to_owned);
        let request = open_request(store.as_ref(), &id, status, head.waiting.as_deref()).await?;
        let counters = store.counters(&id).await?.into_iter().map(|row| (row.name, row.count)).collect();
        let counted_until_ms = empty.services.clock.elapsed_ms();
        let mut session = Self {
            counted_until_ms,
            notebook,
            program,
            status,
            head,
            answers: row.answers,
            revision: row.revision,
            last_seq: row.last_seq,
            frames,
            scopes,
            outer,
            counters,
            compensations,
            recent,
            request,
            pending,
            masker,
            ..empty
        };
        session.take_budget(budget)?;
        // Before the first commit, which stores the unfinished analyses.
        session.restart_analyses();
        session.restart_plan();
        session.report_resume(&row).await?;
        Ok(session)
    }

    async fn report_resume(&mut self, row: &SessionRow) -> Result<(), RunError> {
        let mut draft = CommitDraft::default();
        let place = self.place();
        let resumed = Event::SessionResumed {
            script: self.script.clone(),
            model: self.model.clone(),
            last_seq: row.last_seq,
            answers: row.answers,
        };
        draft.event(&EventLocation::default(), resumed);
        if self.status.is_waiting() {
            let waiting = self.store.last_by_kind(&self.id, "waiting").await?;
            self.commit(draft).await?;
            if let Some(waiting) = waiting {
                let unreadable =
                    |error: serde_json::Error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() };
                let (place, event) = stored_waiting(&waiting.body).map_err(unreadable)?;
                let (at, line) = (waiting.at.as_str(), &*public_line(&waiting.body));
                let committed = Committed { seq: waiting.seq, at, place: &place, event: &event, line };
                self.services.observer.committed(&committed);
            }
            return Ok(());
        }
        if self.status == SessionStatus::Running {
            // A turn was running, so a message may have been shown partially. A stopped turn reported this itself.
            draft.event(&place, Event::MessageDiscarded { message_id: message_id(row.last_seq, 0) });
        }
        self.status = SessionStatus::Running;
        self.commit(draft).await
    }
}

/// The request that a session waits for, unless that is an answer in the conversation.
async fn open_request(
    store: &dyn Store,
    id: &str,
    status: SessionStatus,
    waiting: Option<&str>,
) -> Result<Option<RequestRow>, RunError> {
    if !matches!(status, SessionStatus::WaitingApproval | SessionStatus::WaitingTime) {
        return Ok(None);
    }
    let found = store.requests(id).await?.into_iter().find(|request| Some(request.id.as_str()) == waiting);
    let missing =
        || RunError::Unreadable { id: id.to_owned(), what: Message::word("the request that it waits for is missing") };
    found.map(Some).ok_or_else(missing)
}

/// A stored line of type `waiting`.
#[derive(Deserialize)]
struct Waiting {
    r#for: String,
    prompt: String,
    answer_id: String,
    #[serde(default)]
    request_id: Option<String>,
    location: EventLocation,
}

/// The location and the prompt of a stored line of type `waiting`.
pub(crate) fn waiting_of(line: &str) -> Result<(EventLocation, String), serde_json::Error> {
    let Waiting { prompt, location, .. } = serde_json::from_str(line)?;
    Ok((location, prompt))
}

/// The event of a stored line of type `waiting`.
fn stored_waiting(line: &str) -> Result<(EventLocation, Event), serde_json::Error> {
    let Waiting { r#for, prompt, answer_id, request_id, location } = serde_json::from_str(line)?;
    let known = ["interrupted_effect", RequestKind::Approval.name(), RequestKind::Time.name()];
    let r#for = known.into_iter().find(|name| *name == r#for).unwrap_or("input");
    Ok((location, Event::Waiting { r#for, prompt, answer_id, request_id }))
}

/// The user's variables as a layer, without those that this program does not declare as global: they belong to other scripts.
pub(crate) fn user_layer(program: &Program, rows: &[VariableRow]) -> Result<ScopeLayer, Message> {
    let own = rows.iter().filter(|row| program.globals.contains_key(&row.name));
    layer(Scope::Global, String::new(), &program.globals, own)
}

/// The parts of a session's state that are read from rows.
pub(crate) struct StoredState {
    /// The program with the plans of the current topic.
    pub program: Arc<Program>,
    pub frames: Frames,
    pub scopes: Scopes,
    pub outer: Vec<Scopes>,
    pub notebook: NotebookState,
    pub compensations: Compensations,
}

/// Reads the state from these rows. `base` is the program of the script.
/// Errors: A message with the row that cannot be read.
pub(crate) fn read_state(
    base: &Arc<Program>,
    services: &Services,
    frames: &[FrameRow],
    variables: &[VariableRow],
    user_rows: &[VariableRow],
) -> Result<StoredState, Message> {
    let frames = Frames::from_rows(frames)?;
    let program = match replanned(&frames, base, services.recheck.as_ref())? {
        Some(program) => Arc::new(program),
        None => Arc::clone(base),
    };
    let (scopes, outer) = open_scopes(&program, &frames, variables, user_rows)?;
    let notebook = state_of(variables)?;
    let compensations = compensations_of(variables)?;
    Ok(StoredState { program, frames, scopes, outer, notebook, compensations })
}

/// The end of the conversation until message number `last`, and the last message of the person regardless of its age.
pub(crate) async fn recent(
    store: &dyn Store,
    id: &str,
    program: &Program,
    last: u64,
) -> Result<RecentTranscript, RunError> {
    let mut count = program.history_messages.max(1);
    loop {
        let after = last.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        let mut messages = store.messages(id, after, count).await?;
        messages.retain(|message| message.number <= last);
        if after > 0 && !messages.iter().any(|message| message.role == Speaker::User.name()) {
            count = count.saturating_mul(4);
            continue;
        }
        let mut recent = program.recent_transcript();
        for message in messages {
            let speaker = if message.role == Speaker::User.name() { Speaker::User } else { Speaker::Ai };
            recent.push(TranscriptEntry { speaker, text: message.text });
        }
        return Ok(recent);
    }
}

/// The scopes of the frames, outermost first: the current ones, and those outside of running skills.
fn open_scopes(
    program: &Program,
    frames: &Frames,
    rows: &[VariableRow],
    user_rows: &[VariableRow],
) -> Result<(Scopes, Vec<Scopes>), Message> {
    let (mut scopes, mut outer) = (Scopes::default(), Vec::new());
    scopes.push(user_layer(program, user_rows)?);
    let layer_of = |scope: Scope, path: &str, declarations: &Arc<DeclarationMap>| {
        let rows = rows.iter().filter(|row| row.scope == scope.name() && row.path == path);
        layer(scope, path.to_owned(), declarations, rows)
    };
    scopes.push(layer_of(Scope::Session, "", &program.declarations)?);
    let Some(mut above) = frames.get(ROOT) else { return Ok((scopes, outer)) };
    let mut phase = None;
    let leaf = frames.leaf();
    for key in lineage(&leaf) {
        let frame = frames.get(key).ok_or_else(|| msg!("no frame `{}`", redacted_key(key)))?;
        match &frame.at {
            FrameTarget::Phase => {
                let found =
                    program.phases.get(above.next).ok_or_else(|| msg!("no phase for `{}`", redacted_key(key)))?;
                scopes.push(layer_of(Scope::Phase, key, &found.declarations)?);
                phase = Some(found);
            }
            FrameTarget::Topic => {
                let topic = phase.and_then(|phase| phase.topics.get(above.next));
                let topic = topic.ok_or_else(|| msg!("no topic for `{}`", redacted_key(key)))?;
                scopes.push(layer_of(Scope::Topic, &public_path(key), &topic.declarations)?);
            }
            FrameTarget::Skill(id) => {
                let skill = program.skills.get(id).ok_or_else(|| msg!("no skill `{id}`"))?;
                let inside = Scopes::isolated(layer_of(Scope::Topic, &skill_path(key), &skill.inputs)?);
                outer.push(std::mem::replace(&mut scopes, inside));
            }
            // An action of the script inside a skill sees the script's scopes.
            FrameTarget::Single(_) if matches!(frame.insertion, Some(Insertion::Triggered { outside: true, .. })) => {
                if let Some(script) = outer.first_mut() {
                    std::mem::swap(&mut scopes, script);
                }
            }
            FrameTarget::Session
            | FrameTarget::Block(_)
            | FrameTarget::Single(_)
            | FrameTarget::Action
            | FrameTarget::Finally
            | FrameTarget::Compensation => {}
        }
        above = frame;
    }
    Ok((scopes, outer))
}

fn layer<'r>(
    scope: Scope,
    path: String,
    declarations: &Arc<DeclarationMap>,
    rows: impl Iterator<Item = &'r VariableRow>,
) -> Result<ScopeLayer, Message> {
    let mut layer = ScopeLayer::new(scope, path, Arc::clone(declarations));
    for row in rows {
        let value = ExactValue::parse(&row.value).map_err(|error| msg!("variable `{}`: {error}", row.name))?;
        let stored = Stored { value, source: row.source.clone(), round: row.round, at: row.at.clone() };
        layer.put(row.name.clone(), stored);
    }
    Ok(layer)
}

fn sensitive_values(rows: &[VariableRow], user_rows: &[VariableRow]) -> Vec<ExactValue> {
    rows.iter()
        .chain(user_rows)
        .filter(|row| row.sensitive)
        .filter_map(|row| ExactValue::parse(&row.value).ok())
        .collect()
}
