//! Finds the session that a conversation is with: the one that said its history, or a fork of it.

use bcc_engine::fork::{ForkPoint, ForkRequest};
use bcc_engine::settings::begun_by;
use bcc_lang::message::msg;
use bcc_runtime::run::head::{Head, SessionStatus};
use bcc_store::rows::SessionRow;

use crate::chat::branches::{ChatBranch, Reservation};
use crate::chat::conversation::ChatTurn;
use crate::chat::transcript::{messages_after, point_at, shown_in_tail, transcript, unanswered};
use crate::live::command::SessionCommand;
use crate::problem::{Problem, ProblemKind};
use crate::state::ServerState;

/// How often another id is tried for a fork.
const MAX_ATTEMPTS: usize = 16;

/// What is done with the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatTask {
    /// The session begins with it.
    Begin {
        /// Whether this request begins it, and not one that came before.
        is_new: bool,
    },
    /// It answers the question that follows this number of answers.
    Answer { answers: u64 },
    /// The session has said something that the client has not got, or waits for somebody else: that is the reply, and the message is no
    /// answer.
    Tell {
        answers: u64,
        /// The ids of the messages.
        messages: Vec<String>,
        /// The number of the last message that the client has got before.
        shown: u64,
    },
}

/// The session of a message, and what is done there.
pub(crate) struct ChatPlace {
    pub(crate) session: String,
    pub(crate) task: ChatTask,
    /// The idempotency key of the message there.
    pub(crate) key: String,
    /// Until the message is answered, nobody else answers the session. None if this is a request for the same answer again.
    _reservation: Option<Reservation>,
}

impl ChatTurn {
    /// Finds the session, or makes it by a fork.
    ///
    /// # Errors
    /// `NotFound` if no session said the history; those of a fork.
    pub(crate) async fn place(&self, state: &ServerState) -> Result<ChatPlace, Problem> {
        // Requests of one conversation are placed one after the other: each sees what the one before has reserved.
        let conversation = self.conversation.as_ref().map(|_| state.branches.conversation(&self.id_prefix()));
        let _placing = match &conversation {
            Some(conversation) => Some(conversation.lock().await),
            None => None,
        };
        if let Some(place) = self.sent_before(state).await? {
            return Ok(place);
        }
        if self.is_repeated
            && let Some(place) = self.sent_elsewhere(state).await?
        {
            return Ok(place);
        }
        if self.history.is_beginning() {
            if self.conversation.is_some()
                && !self.history.before.is_empty()
                && let Some(place) = self.after_part(state).await?
            {
                return Ok(place);
            }
            if let Some(place) = self.silent_beginning(state).await? {
                return Ok(place);
            }
            let (session, reservation) = self.free_id(state).await?;
            return Ok(self.reserved(state, session, ChatTask::Begin { is_new: true }, reservation));
        }
        let mut passed = Vec::new();
        let hash = self.hash(&self.history.before);
        let known = state.branches.at(&hash);
        if let Some(place) = self.continued(state, known, &mut passed).await? {
            return Ok(place);
        }
        // Somebody may have said the same to another process, or before it started.
        let answers = passed.first().filter(|_| !self.is_repeated).map(|branch: &ChatBranch| branch.answers);
        let mut found = self.branches_in_store(state.sessions.store().as_ref(), answers).await?;
        found.retain(|branch| !passed.iter().any(|passed| passed.session == branch.session));
        for branch in found.iter().rev() {
            state.branches.add(hash, branch.clone());
        }
        if let Some(place) = self.continued(state, found, &mut passed).await? {
            return Ok(place);
        }
        // Another answer to a question that was answered before, or another reply to the same answer.
        if let Some(branch) = passed.into_iter().next() {
            return self.forked(state, &branch).await;
        }
        if self.conversation.is_some()
            && let Some(place) = self.after_part(state).await?
        {
            return Ok(place);
        }
        Err(Problem::not_found(msg!("no session of the script `{}` has said this", self.script.session_id))
            .with_help("begin a new conversation: the first request has one message"))
    }

    /// The place of the same message that was sent before, if the client wants the same reply.
    async fn sent_before(&self, state: &ServerState) -> Result<Option<ChatPlace>, Problem> {
        // Without an id, somebody else may have said the same.
        if !self.is_repeated && self.conversation.is_none() {
            return Ok(None);
        }
        let store = state.sessions.store().as_ref();
        let key = self.message_key();
        for branch in state.branches.at(&self.hash(&self.history.with_message())) {
            let id = branch.session.as_str();
            let is_reserved = state.branches.is_reserved_for(id, &key);
            let Some(row) = store.session(id).await? else {
                // It begins at this moment, or its beginning has failed.
                if !self.history.is_beginning() {
                    continue;
                }
                if is_reserved {
                    return Ok(Some(self.joined(branch, ChatTask::Begin { is_new: false })));
                }
                if let Some(reservation) = state.branches.reserve(id, &key) {
                    return Ok(Some(self.reserved(
                        state,
                        branch.session,
                        ChatTask::Begin { is_new: true },
                        reservation,
                    )));
                }
                continue;
            };
            let is_accepted = store.answer_accepted(id, &key).await?;
            if self.history.is_beginning() {
                if is_reserved || self.is_repeated && self.is_same_beginning(&row, is_accepted) {
                    return Ok(Some(self.joined(branch, ChatTask::Begin { is_new: false })));
                }
            } else if is_reserved || is_accepted && (self.is_repeated || state.sessions.is_busy(id).await) {
                let task = ChatTask::Answer { answers: branch.answers };
                return Ok(Some(self.joined(branch, task)));
            }
        }
        Ok(None)
    }

    /// The same for a message that was sent to another process, or before this one started.
    async fn sent_elsewhere(&self, state: &ServerState) -> Result<Option<ChatPlace>, Problem> {
        let (store, key) = (state.sessions.store().as_ref(), self.message_key());
        for row in self.rows(store).await? {
            let is_accepted = store.answer_accepted(&row.id, &key).await?;
            let branch = |answers| ChatBranch { session: row.id.clone(), answers, shown: 0 };
            if self.history.is_beginning() {
                let is_begun = is_accepted || begun_by(&row.settings).as_ref() == Some(&key);
                if is_begun && self.is_same_beginning(&row, is_accepted) {
                    return Ok(Some(self.joined(branch(0), ChatTask::Begin { is_new: false })));
                }
            } else if is_accepted {
                let point = point_at(&transcript(store, &row.id).await?, &self.history.before);
                // It may have gone on since.
                let answers = point.map_or(row.answers.saturating_sub(1), |point| point.answers);
                return Ok(Some(self.joined(branch(answers), ChatTask::Answer { answers })));
            }
        }
        if self.history.is_beginning() {
            return Ok(None);
        }
        // An answer may be stored only with its turn.
        for branch in self.branches_in_store(store, None).await? {
            let id = branch.session.as_str();
            if state.sessions.runs_turn_elsewhere(id).await? {
                // Whoever answers it learns what is wrong with it.
                let _ = state.sessions.send(id, None, |ended| SessionCommand::Rest { ended }).await;
            }
            // The turn may also have ended since the answer was looked for.
            if store.answer_accepted(id, &key).await? {
                let task = ChatTask::Answer { answers: branch.answers };
                return Ok(Some(self.joined(branch, task)));
            }
        }
        Ok(None)
    }

    /// Whether a session that began with the same message is that of this person: without an id of the conversation, one that has gone on
    /// is that of somebody else. `is_accepted` says that the message was its first answer.
    fn is_same_beginning(&self, row: &SessionRow, is_accepted: bool) -> bool {
        self.conversation.is_some() || row.answers == 0 || is_accepted && row.answers == 1
    }

    /// The session of this conversation that has stopped before it said anything: it goes on, and no other one begins. Without an id, it may
    /// be that of somebody else.
    async fn silent_beginning(&self, state: &ServerState) -> Result<Option<ChatPlace>, Problem> {
        let store = state.sessions.store().as_ref();
        if !self.has_begun(store).await? {
            return Ok(None);
        }
        for row in self.rows(store).await?.into_iter().filter(|row| row.status == SessionStatus::Stopped.name()) {
            let place = match store.messages_tail(&row.id, 2).await?.len() {
                0 => {
                    let reservation = state.branches.reserve(&row.id, &self.message_key());
                    reservation.map(|own| self.reserved(state, row.id, ChatTask::Begin { is_new: false }, own))
                }
                // The person spoke first.
                1 => self.after_silence(state, &row, 0).await?,
                _ => None,
            };
            if place.is_some() {
                return Ok(place);
            }
        }
        Ok(None)
    }

    /// The place of the message in a session that had this number of answers at the end of the history, and of which the turn after the next
    /// answer has stopped before anything was said: it goes on. None if this is no such session, or if the message is neither that answer
    /// nor begins with it: then it is a changed one, or that of somebody else.
    async fn after_silence(
        &self,
        state: &ServerState,
        row: &SessionRow,
        answers: u64,
    ) -> Result<Option<ChatPlace>, Problem> {
        if row.status != SessionStatus::Stopped.name() || row.answers != answers + 1 {
            return Ok(None);
        }
        let (store, key) = (state.sessions.store().as_ref(), self.message_key());
        let Some(heard) = unanswered(store, &row.id).await? else { return Ok(None) };
        if !heard.is_followed_by(&self.history.message) {
            return Ok(None);
        }
        let Some(reservation) = state.branches.reserve(&row.id, &key) else { return Ok(None) };
        if store.answer_accepted(&row.id, &key).await? {
            let task = ChatTask::Answer { answers };
            return Ok(Some(self.reserved(state, row.id.clone(), task, reservation)));
        }
        let branch = ChatBranch { session: row.id.clone(), answers: row.answers, shown: heard.number };
        let Some(row) = self.at_rest(state, &branch).await? else { return Ok(None) };
        let task = task_after(state, branch, waits_for_others(&row)).await?;
        Ok(Some(self.reserved(state, row.id, task, reservation)))
    }

    /// The first of these sessions that still waits at the end of the history. The others that were there are `passed`.
    async fn continued(
        &self,
        state: &ServerState,
        branches: Vec<ChatBranch>,
        passed: &mut Vec<ChatBranch>,
    ) -> Result<Option<ChatPlace>, Problem> {
        let store = state.sessions.store().as_ref();
        let hash = self.hash(&self.history.before);
        let key = self.message_key();
        // Before those that wait: it may be their message that is sent again.
        for branch in &branches {
            if let Some(row) = store.session(&branch.session).await?
                && let Some(place) = self.after_silence(state, &row, branch.answers).await?
            {
                return Ok(Some(place));
            }
        }
        let mut gone = Vec::new();
        let mut found = None;
        for branch in branches {
            let Some(reservation) = state.branches.reserve(&branch.session, &key) else {
                passed.push(branch);
                continue;
            };
            let Some(row) = self.at_rest(state, &branch).await? else {
                gone.push(branch);
                continue;
            };
            if row.answers == branch.answers {
                let task = task_after(state, branch, waits_for_others(&row)).await?;
                found = Some(self.reserved(state, row.id, task, reservation));
                break;
            }
            if self.is_repeated && store.answer_accepted(&row.id, &key).await? {
                let task = ChatTask::Answer { answers: branch.answers };
                found = Some(self.joined(branch, task));
                break;
            }
            gone.push(branch.clone());
            passed.push(branch);
        }
        // One of them is needed for a fork.
        if found.is_none() {
            gone.retain(|branch| passed.first() != Some(branch));
        }
        state.branches.forget(&hash, &gone);
        Ok(found)
    }

    /// A session as it is when no turn of it runs, unless it has gone on. A turn that has stopped goes on first: nobody has seen the
    /// question that follows it.
    async fn at_rest(&self, state: &ServerState, branch: &ChatBranch) -> Result<Option<SessionRow>, Problem> {
        let store = state.sessions.store().as_ref();
        let row = store.session(&branch.session).await?;
        let is_in_turn = |row: &SessionRow| {
            let status = SessionStatus::parse(&row.status);
            matches!(status, Some(SessionStatus::Running | SessionStatus::Stopped)) && row.answers == branch.answers
        };
        if !row.as_ref().is_some_and(is_in_turn) {
            return Ok(row);
        }
        // Whoever answers it learns what is wrong with it.
        let _ = state.sessions.send(&branch.session, None, |ended| SessionCommand::Rest { ended }).await;
        match store.session(&branch.session).await? {
            Some(row) if row.status == SessionStatus::Stopped.name() => Err(Problem::stopped(&row.id)),
            row => Ok(row),
        }
    }

    /// A fork of a session that is not there any more.
    async fn forked(&self, state: &ServerState, branch: &ChatBranch) -> Result<ChatPlace, Problem> {
        let mut attempts = 0..MAX_ATTEMPTS;
        loop {
            let (new, reservation) = self.free_id(state).await?;
            // Without an id, nobody knows whose session it was: its variables are not for others.
            let user = (self.user.is_none() && self.conversation.is_none()).then(|| new.clone());
            let at = ForkPoint::AfterAnswers(branch.answers);
            match state.sessions.fork(ForkRequest { id: &branch.session, at, new: &new, user }).await {
                Ok(()) => {
                    let branch = ChatBranch { session: new.clone(), ..branch.clone() };
                    let task = task_after(state, branch, false).await?;
                    return Ok(self.reserved(state, new, task, reservation));
                }
                // Another process has taken the id.
                Err(problem) if problem.kind() == ProblemKind::Conflict && attempts.next().is_some() => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    /// The session that a client means which sends an id, and only the last part of the history: the newest one, if it waits.
    async fn after_part(&self, state: &ServerState) -> Result<Option<ChatPlace>, Problem> {
        let store = state.sessions.store().as_ref();
        let Some(row) = self.rows(store).await?.into_iter().next() else { return Ok(None) };
        let part = |session: String, answers: u64, task: ChatTask, reservation: Option<Reservation>| {
            let key = self.message_key_after(answers);
            Ok(Some(ChatPlace { session, task, key, _reservation: reservation }))
        };
        if let Some(before) = row.answers.checked_sub(1)
            && store.answer_accepted(&row.id, &self.message_key_after(before)).await?
            && (self.is_repeated || state.sessions.is_busy(&row.id).await)
        {
            return part(row.id, before, ChatTask::Answer { answers: before }, None);
        }
        let tail = shown_in_tail(store, &row.id, self.history.before.last()).await?;
        if self.history.is_beginning() && !tail.ends_in_reply {
            // It is a greeting of the client.
            return Ok(None);
        }
        let key = self.message_key_after(row.answers);
        let Some(reservation) = state.branches.reserve(&row.id, &key) else {
            if state.branches.is_reserved_for(&row.id, &key) {
                return part(row.id, row.answers, ChatTask::Answer { answers: row.answers }, None);
            }
            return Err(Problem::busy());
        };
        let branch = ChatBranch { session: row.id, answers: row.answers, shown: 0 };
        let Some(row) = self.at_rest(state, &branch).await? else { return Ok(None) };
        let others = waits_for_others(&row);
        if !others && row.status != SessionStatus::WaitingInput.name() {
            return Ok(None);
        }
        let now = shown_in_tail(store, &row.id, self.history.before.last()).await?;
        // The client cannot have what was said since.
        let shown = if now.ends_in_reply { now.shown } else { tail.shown.min(now.shown) };
        let branch = ChatBranch { session: row.id.clone(), answers: row.answers, shown };
        let task = task_after(state, branch, others).await?;
        part(row.id, row.answers, task, Some(reservation))
    }

    /// A place that is for this request, which is remembered for those that are sent again.
    fn reserved(&self, state: &ServerState, session: String, task: ChatTask, reservation: Reservation) -> ChatPlace {
        let answers = match &task {
            ChatTask::Begin { .. } => 0,
            ChatTask::Answer { answers } | ChatTask::Tell { answers, .. } => *answers,
        };
        let branch = ChatBranch { session: session.clone(), answers, shown: 0 };
        state.branches.add(self.hash(&self.history.with_message()), branch);
        ChatPlace { session, task, key: self.message_key(), _reservation: Some(reservation) }
    }

    /// A place that another request has, for the same message.
    fn joined(&self, branch: ChatBranch, task: ChatTask) -> ChatPlace {
        ChatPlace { session: branch.session, task, key: self.message_key(), _reservation: None }
    }
}

/// Whether a session waits for a decision of somebody else, also about an action that was interrupted, or for a time.
fn waits_for_others(row: &SessionRow) -> bool {
    match SessionStatus::parse(&row.status) {
        Some(SessionStatus::WaitingApproval | SessionStatus::WaitingTime) => true,
        Some(SessionStatus::WaitingInput) => serde_json::from_str(&row.head).is_ok_and(|head: Head| head.asks_effect),
        _ => false,
    }
}

/// What is done with the message in a session that rests after the history. If the session waits for others, the message is no answer: if
/// it went on at this moment, the message would answer a question that nobody has seen.
async fn task_after(state: &ServerState, branch: ChatBranch, waits_for_others: bool) -> Result<ChatTask, Problem> {
    let ChatBranch { session, answers, shown } = branch;
    let messages = messages_after(state.sessions.store().as_ref(), &session, shown).await?;
    Ok(match messages.is_empty() && !waits_for_others {
        true => ChatTask::Answer { answers },
        false => ChatTask::Tell { answers, messages, shown },
    })
}
