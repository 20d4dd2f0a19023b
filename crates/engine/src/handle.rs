//! A session as a task of its own: commands go in, events come out. What embeds the library drives sessions by this handle.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::engine::{Engine, OpenedSession, ResumeRequest, RunRequest};
use crate::error::EngineError;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};

/// How many answers may wait to be taken; who sends one more waits.
const MOST_COMMANDS: usize = 16;

/// What a session tells.
#[derive(Clone, Debug)]
pub enum SessionEvent {
    /// An event that is durable. Sensitive values are masked.
    Committed {
        /// Counts from 1 in a session, without gaps.
        seq: u64,
        /// RFC 3339, UTC.
        at: String,
        /// Where it happened.
        place: EventLocation,
        /// What happened.
        event: Box<Event>,
        /// The same as one line of JSON, as `--json` writes it.
        line: String,
    },
    /// A piece of a message that is being written. It counts for nothing until its `message` is committed.
    Delta {
        /// The message that it is a piece of.
        message_id: String,
        /// The piece.
        text: String,
    },
}

/// A session that runs in a task. Dropping the handle lets the turn that is under way end; the session then rests in its store.
#[derive(Debug)]
pub struct SessionHandle {
    id: String,
    commands: mpsc::Sender<Answer>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    task: JoinHandle<Result<SessionPause, EngineError>>,
    notices: Vec<Message>,
}

struct Answer {
    text: String,
    answer_id: Option<String>,
    taken: oneshot::Sender<Result<TakenAnswer, EngineError>>,
}

/// Passes on what is told, for as long as somebody listens.
struct Sender(mpsc::UnboundedSender<SessionEvent>);

impl Observer for Sender {
    fn committed(&self, committed: &Committed<'_>) {
        let _ = self.0.send(SessionEvent::Committed {
            seq: committed.seq,
            at: committed.at.to_owned(),
            place: committed.place.clone(),
            event: Box::new(committed.event.clone()),
            line: committed.line.to_owned(),
        });
    }

    fn delta(&self, delta: &Delta<'_>) {
        let (message_id, text) = (delta.message_id.to_owned(), delta.text.to_owned());
        let _ = self.0.send(SessionEvent::Delta { message_id, text });
    }
}

impl Engine {
    /// Begins a session, or goes on with the one that is named, in a task of the current tokio runtime.
    ///
    /// # Errors
    /// As [`Engine::run`]: `Invalid` has the findings of a script that is not sound.
    pub async fn start(&self, request: &RunRequest) -> Result<SessionHandle, EngineError> {
        let (sender, events) = mpsc::unbounded_channel();
        let opened = self.run(request, Arc::new(Sender(sender))).await?;
        Ok(SessionHandle::of(opened, events))
    }

    /// Takes up a session that is kept in the store, in a task of the current tokio runtime.
    ///
    /// # Errors
    /// As [`Engine::resume`].
    pub async fn take_up(&self, id: &str, request: &ResumeRequest) -> Result<SessionHandle, EngineError> {
        let (sender, events) = mpsc::unbounded_channel();
        let opened = self.resume_as(id, request, Arc::new(Sender(sender))).await?;
        Ok(SessionHandle::of(opened, events))
    }
}

impl SessionHandle {
    fn of(opened: OpenedSession, events: mpsc::UnboundedReceiver<SessionEvent>) -> Self {
        let OpenedSession { session, notices, .. } = opened;
        let (commands, mailbox) = mpsc::channel(MOST_COMMANDS);
        Self { id: session.id.clone(), commands, events, task: tokio::spawn(drive(session, mailbox)), notices }
    }

    /// The id under which the session is kept.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What a person should know before it begins: that no model is configured, for example.
    pub fn notices(&self) -> &[Message] {
        &self.notices
    }

    /// The next event; `None` once the session came to its end or rests. They wait here until they are taken.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        self.events.recv().await
    }

    /// Gives an answer of the person. It is durable when this comes back with [`TakenAnswer::Yes`]. While a turn runs, it waits; with an
    /// `answer_id`, as the event `waiting` gives it, the same answer may be sent again without harm.
    ///
    /// # Errors
    /// When the store cannot take it, or the session rests already; then it was not taken.
    pub async fn answer(&self, text: &str, answer_id: Option<&str>) -> Result<TakenAnswer, EngineError> {
        let gone = || EngineError::failed(msg!("the session `{}` no longer accepts answers", self.id));
        let (taken, told) = oneshot::channel();
        let answer = Answer { text: text.to_owned(), answer_id: answer_id.map(str::to_owned), taken };
        self.commands.send(answer).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }

    /// Takes no more answers and waits until the turn that is under way, if any, is over. Gives where the session stands then.
    ///
    /// # Errors
    /// When the store failed. What was committed before stays.
    pub async fn close(self) -> Result<SessionPause, EngineError> {
        drop(self.commands);
        self.task
            .await
            .map_err(|error| EngineError::failed(msg!("the task of `{}` ended unexpectedly: {error}", self.id)))?
    }
}

/// The task: turns until the session waits, then the next answer.
async fn drive(mut session: Session, mut mailbox: mpsc::Receiver<Answer>) -> Result<SessionPause, EngineError> {
    loop {
        let pause = session.advance().await?;
        if pause != SessionPause::Waiting {
            return Ok(pause);
        }
        loop {
            let answer = tokio::select! {
                // What monitors have to say is taken down while the person thinks.
                () = session.arrived() => {
                    session.note_arrivals().await?;
                    continue;
                }
                answer = mailbox.recv() => answer,
            };
            let Some(Answer { text, answer_id, taken }) = answer else { return Ok(SessionPause::Waiting) };
            match session.answer(&text, answer_id.as_deref()).await {
                Ok(became) => {
                    let _ = taken.send(Ok(became));
                    if became == TakenAnswer::Yes {
                        break;
                    }
                }
                Err(error) => {
                    let error = EngineError::from(error);
                    let again = EngineError::failed(error.to_message());
                    let _ = taken.send(Err(error));
                    return Err(again);
                }
            }
        }
    }
}

/// What embedders hold may move between threads.
const _: () = {
    const fn send<T: Send>() {}
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Engine>();
    send_and_sync::<SessionHandle>();
    send::<Session>();
    send::<SessionEvent>();
    send::<EngineError>();
};
