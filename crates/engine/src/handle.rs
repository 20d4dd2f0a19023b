//! Runs a session in a task: answers go in, events come out. Embedders control sessions with this handle.

use bcc_lang::message::ToMessage;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::engine::{Engine, OpenedSession, ResumeRequest, RunRequest};
use crate::error::EngineError;
use crate::report::write::write_script_report;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::output_piece::OutputPiece;
use bcc_runtime::program::tool_progress::ToolProgressPiece;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::error::RunError;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::Store;

/// The number of answers in the queue. If it is full, the sender waits.
const MAX_QUEUED_ANSWERS: usize = 16;

/// An event of a session.
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
    /// A piece of a message that is being generated. It is not final until its `message` is committed.
    Delta {
        /// The message that it belongs to.
        message_id: String,
        /// The piece.
        text: String,
    },
    /// A piece of the output of a command that is running. It is not stored in this form.
    Output {
        /// The effect that it belongs to.
        effect_id: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The piece: complete lines, or the end of the output. Sensitive values are masked.
        text: String,
        /// The number of bytes before it that are not shown.
        left_out: u64,
    },
    /// How far a call of a tool is. It is not stored.
    ToolProgress {
        /// The name of the tool.
        tool: String,
        /// How much is done, in the unit of the tool.
        done: f64,
        /// Of how much, if the tool says so.
        total: Option<f64>,
    },
}

/// A session that runs in a task. If the handle is dropped, the current turn ends, and the session stays in its store.
#[derive(Debug)]
pub struct SessionHandle {
    id: String,
    commands: mpsc::Sender<Command>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    task: JoinHandle<Result<SessionPause, EngineError>>,
    notices: Vec<Message>,
}

/// What a handle asks of the task, with the channel for the result.
enum Command {
    Answer { text: String, answer_id: Option<String>, result: oneshot::Sender<Result<TakenAnswer, EngineError>> },
    TakeBack { result: oneshot::Sender<Result<TakenBack, EngineError>> },
    Decide { decision: Box<ApprovalDecision>, result: oneshot::Sender<Result<(), EngineError>> },
}

/// Forwards events to the handle.
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

    fn output(&self, output: &OutputPiece<'_>) {
        let (effect_id, text) = (output.effect_id.to_owned(), output.text.to_owned());
        let (stream, left_out) = (output.stream, output.left_out);
        let _ = self.0.send(SessionEvent::Output { effect_id, stream, text, left_out });
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        let ToolProgressPiece { tool, done, total, .. } = *progress;
        let _ = self.0.send(SessionEvent::ToolProgress { tool: tool.to_owned(), done, total });
    }
}

impl Engine {
    /// Starts a session, or resumes the requested one, in a task of the current tokio runtime.
    ///
    /// # Errors
    /// As [`Engine::run`]: `Invalid` contains the findings of a script with errors.
    pub async fn start(&self, request: &RunRequest) -> Result<SessionHandle, EngineError> {
        let (sender, events) = mpsc::unbounded_channel();
        let opened = self.run(request, Arc::new(Sender(sender))).await?;
        Ok(SessionHandle::of(opened, events, Arc::clone(self.store())))
    }

    /// Resumes a stored session in a task of the current tokio runtime.
    ///
    /// # Errors
    /// As [`Engine::resume`].
    pub async fn start_resumed(&self, id: &str, request: &ResumeRequest) -> Result<SessionHandle, EngineError> {
        let (sender, events) = mpsc::unbounded_channel();
        let opened = self.resume_as(id, request, Arc::new(Sender(sender))).await?;
        Ok(SessionHandle::of(opened, events, Arc::clone(self.store())))
    }
}

impl SessionHandle {
    fn of(opened: OpenedSession, events: mpsc::UnboundedReceiver<SessionEvent>, store: Arc<dyn Store>) -> Self {
        let OpenedSession { session, notices, answers, .. } = opened;
        let (commands, mailbox) = mpsc::channel(MAX_QUEUED_ANSWERS);
        let id = session.id.clone();
        Self {
            id,
            commands,
            events,
            task: tokio::spawn(drive_to_end(session, mailbox, answers.into(), store)),
            notices,
        }
    }

    /// The id of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Notices for the person before the session starts: for example, that no model is configured.
    pub fn notices(&self) -> &[Message] {
        &self.notices
    }

    /// The next event; `None` after the session has ended or paused. Events are queued until they are received.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        self.events.recv().await
    }

    /// Sends an answer of the person. It is durable when this returns [`TakenAnswer::Yes`]. While a turn runs, this waits. With the
    /// `answer_id` of the event `waiting`, sending the same answer again has no effect.
    ///
    /// # Errors
    /// When the store cannot save it, or the session has ended or paused; then the answer was not accepted.
    pub async fn answer(&self, text: &str, answer_id: Option<&str>) -> Result<TakenAnswer, EngineError> {
        let (text, answer_id) = (text.to_owned(), answer_id.map(str::to_owned));
        self.send(|result| Command::Answer { text, answer_id, result }).await
    }

    /// Takes the last answer back, as [`Session::take_back`] does: the events `taken_back` and `waiting` follow. While a turn runs,
    /// this waits.
    ///
    /// # Errors
    /// When the store cannot save it, or the session has ended or paused; then nothing was taken back.
    pub async fn take_back(&self) -> Result<TakenBack, EngineError> {
        self.send(|result| Command::TakeBack { result }).await
    }

    /// Decides about an open request, as [`Session::decide`] does: what follows from it happens then. While a turn runs, this waits.
    ///
    /// # Errors
    /// `Usage` if the decision was refused: no such request is open, or the decision, the person or a value is not permitted. Otherwise the
    /// store cannot save it, or the session has ended or paused. Nothing was decided then.
    pub async fn decide(&self, decision: ApprovalDecision) -> Result<(), EngineError> {
        self.send(|result| Command::Decide { decision: Box::new(decision), result }).await
    }

    async fn send<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Command,
    ) -> Result<T, EngineError> {
        let closed = || EngineError::failed(msg!("the session `{}` no longer accepts answers", self.id));
        let (sender, result) = oneshot::channel();
        self.commands.send(command(sender)).await.map_err(|_| closed())?;
        result.await.map_err(|_| closed())?
    }

    /// Accepts no more answers, waits for the current turn, and returns the state of the session.
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

/// The task: runs the session, and writes the report that its script names when it is over. That the report cannot be written does not
/// change the session.
async fn drive_to_end(
    mut session: Session,
    mailbox: mpsc::Receiver<Command>,
    given: VecDeque<String>,
    store: Arc<dyn Store>,
) -> Result<SessionPause, EngineError> {
    let pause = drive(&mut session, mailbox, given).await?;
    if let Err(error) = write_script_report(&session, store.as_ref(), Language::default()).await {
        tracing::warn!(session = %session.id, error = %error.to_message(), "the report was not written");
    }
    Ok(pause)
}

/// Runs turns until the session waits, then processes the next answer. `given` are the answers that a session which begins again is
/// given, unless somebody else answers.
async fn drive(
    session: &mut Session,
    mut mailbox: mpsc::Receiver<Command>,
    mut given: VecDeque<String>,
) -> Result<SessionPause, EngineError> {
    loop {
        let pause = session.advance().await?;
        if pause != SessionPause::Waiting {
            return Ok(pause);
        }
        loop {
            let due = session.time_left();
            let is_given = !given.is_empty() && session.awaits_answer() && !session.awaits_analysis();
            let command = tokio::select! {
                biased;
                command = mailbox.recv() => command,
                // Results of monitors are stored while the session waits for the person.
                () = session.wait_for_result() => {
                    session.commit_results().await?;
                    continue;
                }
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => break,
                () = std::future::ready(()), if is_given => {
                    let Some(text) = given.pop_front() else { continue };
                    session.answer(&text, None).await?;
                    break;
                }
            };
            match command {
                None => return Ok(SessionPause::Waiting),
                Some(Command::Answer { text, answer_id, result }) => {
                    // A decision about an effect is no answer to the script.
                    let takes_over = session.awaits_answer();
                    let taken = session.answer(&text, answer_id.as_deref()).await;
                    if report(result, taken)? == TakenAnswer::Yes {
                        if takes_over {
                            given.clear();
                        }
                        break;
                    }
                }
                Some(Command::TakeBack { result }) => {
                    if report(result, session.take_back().await)? == TakenBack::Yes {
                        given.clear();
                    }
                }
                Some(Command::Decide { decision, result }) => match session.decide(*decision).await {
                    Ok(()) => {
                        report(result, Ok(()))?;
                        break;
                    }
                    Err(DecisionError::Run(error)) => report(result, Err(error))?,
                    Err(DecisionError::Refused { message, help, .. }) => {
                        let error = EngineError::usage(message);
                        let _ = result.send(Err(help.into_iter().fold(error, EngineError::with_help)));
                        // What was due may have been decided by its time.
                        break;
                    }
                },
            }
        }
    }
}

/// Sends the result of a command to whoever waits for it, and returns it.
fn report<T: Copy>(
    sender: oneshot::Sender<Result<T, EngineError>>,
    result: Result<T, RunError>,
) -> Result<T, EngineError> {
    match result {
        Ok(result) => {
            let _ = sender.send(Ok(result));
            Ok(result)
        }
        Err(error) => {
            let error = EngineError::from(error);
            let copy = EngineError::failed(error.to_message());
            let _ = sender.send(Err(error));
            Err(copy)
        }
    }
}

/// The types of the public API can be sent between threads.
const _: () = {
    const fn send<T: Send>() {}
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Engine>();
    send_and_sync::<SessionHandle>();
    send::<Session>();
    send::<SessionEvent>();
    send::<EngineError>();
};
