//! Resumes a stored session: rows become frames, scopes and counters.

use crate::plan::access::PlanAccess;
use crate::program::stored_event::public_line;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
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
use crate::run::branch_state::BranchScopes;
use crate::run::compensation_records::{Compensations, compensations_of};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{
    FrameTarget, Frames, ROOT, branch_key, is_below, lineage, public_path, redacted_key, skill_path,
};
use crate::run::head::{Head, SessionStatus};
use crate::run::insertion::Insertion;
use crate::run::notebook::state_of;
use crate::run::orchestrate::replanned;
use crate::run::session::Session;
use crate::run::start::SessionParts;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::{DeclarationMap, Scope, ScopeLayer, Scopes, Stored};
use bcc_store::contract::Store;
use bcc_store::rows::{FrameRow, JournalRow, RequestRow, SessionRow, VariableRow};

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
        let StoredState { program, frames, scopes, outer, branches, notebook, compensations } =
            read_state(&empty.base, &empty.services, &frame_rows, &variables, &user_rows).map_err(unreadable)?;
        let masker = Masker::new(&sensitive_values(&variables, &user_rows));
        // A session that once kept its global variables to itself has values that are not those of the user.
        let keeps_globals = empty.services.keeps_globals || own_globals(&variables).next().is_some();
        let services = Services { keeps_globals, ..empty.services.clone() };
        let recent = recent(store.as_ref(), &id, &program, head.messages).await?;
        // An answer that was stored but not yet processed is the newest message.
        let pending = recent.last_user_message().filter(|_| head.pending).map(str::to_owned);
        let request = open_request(store.as_ref(), &id, status, head.waiting.as_deref()).await?;
        let branch_requests = branch_requests(store.as_ref(), &id, &frames).await?;
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
            branches,
            branch_requests,
            counters,
            compensations,
            recent,
            request,
            pending,
            masker,
            plans: PlanAccess::new(store, &row.user).for_session(&id, &row.settings),
            services,
            ..empty
        };
        if !session.masker.is_empty() {
            session.plans.note_sensitive();
        }
        session.take_budget(budget)?;
        // Before the first commit, which stores the unfinished analyses.
        session.restart_analyses(&variables);
        session.restart_plan();
        session.report_resume(&row).await?;
        Ok(session)
    }

    /// Whether a branch waits for somebody or for a time.
    fn branches_wait(&self) -> bool {
        !self.branch_requests.is_empty() || self.head.effect_in_branch.is_some()
    }

    /// The journal rows of what the session waits for.
    async fn waiting_lines(&self) -> Result<Vec<JournalRow>, RunError> {
        if !self.branches_wait() {
            return Ok(self.store.last_by_kind(&self.id, "waiting").await?.into_iter().collect());
        }
        let mut found = Vec::new();
        let open = self.branch_requests.values().map(|request| request.id.as_str());
        for id in open.chain(self.head.waiting.as_deref()) {
            // The number in the id is that of the event after which it was opened.
            let after = id.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).parse().unwrap_or(1_u64);
            let rows = self.store.journal_by_kind(&self.id, "waiting", after.saturating_sub(1), 8).await?;
            let is_meant = |row: &JournalRow| stored_waiting(&row.body).is_ok_and(|(_, event)| waits_for(&event, id));
            found.extend(rows.into_iter().find(is_meant));
        }
        found.sort_by_key(|row| row.seq);
        Ok(found)
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
        // Branches can wait while others go on.
        let waits = self.status.is_waiting() || self.branches_wait();
        let waiting = if waits { self.waiting_lines().await? } else { vec![] };
        if self.status.is_waiting() {
            self.commit_with_first(draft).await?;
            return self.repeat_lines(&waiting);
        }
        if self.status == SessionStatus::Running {
            // A turn was running, so a message may have been shown partially. A stopped turn reported this itself.
            draft.event(&place, Event::MessageDiscarded { message_id: message_id(row.last_seq, 0) });
        }
        self.status = SessionStatus::Running;
        self.commit(draft).await?;
        self.repeat_lines(&waiting)
    }

    /// Shows stored `waiting` lines again.
    fn repeat_lines(&mut self, waiting: &[JournalRow]) -> Result<(), RunError> {
        for waiting in waiting {
            let unreadable =
                |error: serde_json::Error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() };
            let (place, event) = stored_waiting(&waiting.body).map_err(unreadable)?;
            let (at, line) = (waiting.at.as_str(), &*public_line(&waiting.body));
            let committed = Committed { seq: waiting.seq, at, place: &place, event: &event, line };
            self.services.observer.committed(&committed);
            if let Err(reason) = self.services.observer.commit_ended() {
                self.halted = Some(reason);
            }
        }
        Ok(())
    }
}

/// The request that a session waits for, unless that is an answer in the conversation.
async fn open_request(
    store: &dyn Store,
    id: &str,
    status: SessionStatus,
    waiting: Option<&str>,
) -> Result<Option<RequestRow>, RunError> {
    let rests = matches!(status, SessionStatus::WaitingApproval | SessionStatus::WaitingTime);
    // Without it, only branches wait.
    if !rests || waiting.is_none() {
        return Ok(None);
    }
    let found = store.requests(id).await?.into_iter().find(|request| Some(request.id.as_str()) == waiting);
    let missing =
        || RunError::Unreadable { id: id.to_owned(), what: Message::word("the request that it waits for is missing") };
    found.map(Some).ok_or_else(missing)
}

/// The open requests of branches, by the keys of their actions.
pub(crate) async fn branch_requests(
    store: &dyn Store,
    id: &str,
    frames: &Frames,
) -> Result<BTreeMap<String, RequestRow>, RunError> {
    let mut found = BTreeMap::new();
    let mut open = frames.open_requests().peekable();
    if open.peek().is_none() {
        return Ok(found);
    }
    let rows = store.requests(id).await?;
    for (key, request) in open {
        let row = rows.iter().find(|row| row.id == request).cloned();
        let missing = || RunError::Unreadable {
            id: id.to_owned(),
            what: Message::word("the request that it waits for is missing"),
        };
        found.insert(key.to_owned(), row.ok_or_else(missing)?);
    }
    Ok(found)
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

fn waits_for(event: &Event, id: &str) -> bool {
    matches!(event, Event::Waiting { answer_id, .. } if answer_id == id)
}

/// The event of a stored line of type `waiting`.
fn stored_waiting(line: &str) -> Result<(EventLocation, Event), serde_json::Error> {
    let Waiting { r#for, prompt, answer_id, request_id, location } = serde_json::from_str(line)?;
    let known = ["interrupted_effect", RequestKind::Approval.name(), RequestKind::Time.name()];
    let r#for = known.into_iter().find(|name| *name == r#for).unwrap_or("input");
    Ok((location, Event::Waiting { r#for, prompt, answer_id, request_id }))
}

/// The user's variables as a layer, without those that this program does not declare as global: they belong to other scripts.
pub(crate) fn user_layer<'r>(
    program: &Program,
    rows: impl IntoIterator<Item = &'r VariableRow>,
) -> Result<ScopeLayer, Message> {
    let known = rows.into_iter().filter(|row| program.globals.contains_key(&row.name));
    layer(Scope::Global, String::new(), &program.globals, known)
}

/// The global variables that a session keeps to itself ([`Services::keeps_globals`]).
fn own_globals(rows: &[VariableRow]) -> impl Iterator<Item = &VariableRow> {
    rows.iter().filter(|row| row.scope == Scope::Global.name())
}

/// The parts of a session's state that are read from rows.
pub(crate) struct StoredState {
    /// The program with the plans of the current topic.
    pub program: Arc<Program>,
    pub frames: Frames,
    pub scopes: Scopes,
    pub outer: Vec<Scopes>,
    pub branches: BTreeMap<String, BranchScopes>,
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
    let rows = ScopeRows { program: &program, frames: &frames, rows: variables };
    let mut open = BranchScopes::default();
    open.scopes.push(user_layer(&program, user_rows.iter().chain(own_globals(variables)))?);
    open.scopes.push(rows.layer_of(Scope::Session, "", &program.declarations)?);
    let leaf = frames.leaf();
    rows.open(ROOT, &leaf, &mut open)?;
    let branch = lineage(&leaf).filter_map(|key| frames.get(key)?.branch_path.as_deref()).last();
    if let Some(path) = branch {
        open.scopes.push(rows.layer_of(Scope::Topic, path, &Arc::default())?);
    }
    let mut branches = BTreeMap::new();
    rows.branches(&leaf, &open.scopes, &mut branches)?;
    let BranchScopes { scopes, outer } = open;
    let notebook = state_of(variables)?.unwrap_or_default();
    let compensations = compensations_of(variables)?;
    Ok(StoredState { program, frames, scopes, outer, branches, notebook, compensations })
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
            recent.push_of(&message.action_id, TranscriptEntry { speaker, text: message.text });
        }
        return Ok(recent);
    }
}

/// The rows from which scopes are read.
struct ScopeRows<'a> {
    program: &'a Program,
    frames: &'a Frames,
    rows: &'a [VariableRow],
}

impl ScopeRows<'_> {
    fn layer_of(&self, scope: Scope, path: &str, declarations: &Arc<DeclarationMap>) -> Result<ScopeLayer, Message> {
        layer_of_rows(self.rows, scope, path, declarations)
    }

    fn rows_of(&self, scope: Scope, path: &str) -> impl Iterator<Item = &VariableRow> {
        self.rows.iter().filter(move |row| row.scope == scope.name() && row.path == path)
    }

    /// Opens the scopes of the frames from below `from` down to `leaf`.
    fn open(&self, from: &str, leaf: &str, open: &mut BranchScopes) -> Result<(), Message> {
        let BranchScopes { scopes, outer } = open;
        let Some(mut above) = self.frames.get(ROOT) else { return Ok(()) };
        let mut phase = None;
        for key in lineage(leaf) {
            let frame = self.frames.get(key).ok_or_else(|| msg!("no frame `{}`", redacted_key(key)))?;
            let is_new = is_below(key, from);
            match &frame.at {
                FrameTarget::Phase => {
                    let found = self.program.phases.get(above.next);
                    let found = found.ok_or_else(|| msg!("no phase for `{}`", redacted_key(key)))?;
                    if is_new {
                        scopes.push(self.layer_of(Scope::Phase, key, &found.declarations)?);
                    }
                    phase = Some(found);
                }
                FrameTarget::Topic if is_new => {
                    let topic = phase.and_then(|phase| phase.topics.get(above.next));
                    let topic = topic.ok_or_else(|| msg!("no topic for `{}`", redacted_key(key)))?;
                    scopes.push(self.layer_of(Scope::Topic, &public_path(key), &topic.declarations)?);
                }
                FrameTarget::Skill(id) if is_new => {
                    let skill = self.program.skills.get(id).ok_or_else(|| msg!("no skill `{id}`"))?;
                    let inside = Scopes::isolated(self.layer_of(Scope::Topic, &skill_path(key), &skill.inputs)?);
                    outer.push(std::mem::replace(scopes, inside));
                }
                // An action of the script inside a skill sees the script's scopes.
                FrameTarget::Single(_)
                    if is_new && matches!(frame.insertion, Some(Insertion::Triggered { outside: true, .. })) =>
                {
                    if let Some(script) = outer.first_mut() {
                        std::mem::swap(scopes, script);
                    }
                }
                FrameTarget::Session
                | FrameTarget::Topic
                | FrameTarget::Skill(_)
                | FrameTarget::Block(_)
                | FrameTarget::Single(_)
                | FrameTarget::Action
                | FrameTarget::Finally
                | FrameTarget::Compensation => {}
            }
            above = frame;
        }
        Ok(())
    }

    /// The scopes of the branches at `leaf`, an action whose branches run with these scopes around them, and of those inside of them.
    fn branches(&self, leaf: &str, around: &Scopes, found: &mut BTreeMap<String, BranchScopes>) -> Result<(), Message> {
        let Some(rules) = self.frames.get(leaf).and_then(|frame| frame.branches.as_deref()) else { return Ok(()) };
        let mut inside = self.frames.clone();
        for branch in &rules.branches {
            let key = branch_key(leaf, branch);
            let state = self.frames.get(&key).and_then(|frame| frame.branch.as_deref());
            let Some(state) = state.filter(|state| state.started) else { continue };
            let mut seen = Scopes::default();
            for before in rules.before(branch) {
                if let Some(layer) = found.get(&branch_key(leaf, before)).and_then(|before| before.scopes.narrowest()) {
                    seen.push_shared(Arc::clone(layer));
                }
            }
            let mut scopes = around.branch(seen, &*state.path);
            for row in self.rows_of(Scope::Topic, &state.path) {
                let (name, stored) = stored_value(row)?;
                scopes.restore(name, stored, row.sensitive);
            }
            let mut open = BranchScopes { scopes, outer: vec![] };
            inside.set_focus(Some(key.clone()));
            let innermost = inside.leaf();
            self.open(&key, &innermost, &mut open)?;
            self.branches(&innermost, &open.scopes, found)?;
            found.insert(key, open);
        }
        Ok(())
    }
}

fn stored_value(row: &VariableRow) -> Result<(String, Stored), Message> {
    let value = ExactValue::parse(&row.value).map_err(|error| msg!("variable `{}`: {error}", row.name))?;
    Ok((row.name.clone(), Stored { value, source: row.source.clone(), round: row.round, at: row.at.clone() }))
}

/// The layer of variables with this path, as it is stored.
///
/// # Errors
/// A message with the value that cannot be read.
pub(crate) fn layer_of_rows(
    rows: &[VariableRow],
    scope: Scope,
    path: &str,
    declarations: &Arc<DeclarationMap>,
) -> Result<ScopeLayer, Message> {
    let rows = rows.iter().filter(|row| row.scope == scope.name() && row.path == path);
    layer(scope, path.to_owned(), declarations, rows)
}

fn layer<'r>(
    scope: Scope,
    path: String,
    declarations: &Arc<DeclarationMap>,
    rows: impl Iterator<Item = &'r VariableRow>,
) -> Result<ScopeLayer, Message> {
    let mut layer = ScopeLayer::new(scope, path, Arc::clone(declarations));
    for row in rows {
        let (name, stored) = stored_value(row)?;
        if row.sensitive {
            layer.mark_sensitive(name.clone());
        }
        layer.put(name, stored);
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
