//! Drives a session: turns, answers, commands and signals, until it ends or must wait.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::VecDeque;
use std::path::PathBuf;

use tokio::time::Instant;

use crate::cli::code_interrupt::{CodeInterrupt, can_be_asked};
use crate::cli::commands::commands::command;
use crate::cli::decisions;
use crate::cli::exit::Exit;
use crate::cli::front_end::FrontEnd;
use crate::cli::input::{InputLine, RejectedInput};
use crate::cli::last_analyses::{ANALYSIS_TIME, finish_analyses};
use crate::cli::live_notebook::LiveNotebook;
use crate::cli::output;
use crate::cli::progress::{self, ProgressEnd};
use crate::cli::report;
use crate::cli::script_report::write_report_of;
use crate::cli::signals::Signals;
use crate::cli::state_file::{self, WatchedFile};
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_engine::state_file::file_decision;
use bcc_engine::state_file::keeper::StateFileKeeper;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;

/// The options of the command that resumes a session.
#[derive(Clone, Debug, Default)]
pub struct ResumeHint {
    /// The project, if it is not that of the current directory.
    pub project: Option<PathBuf>,
    /// The store, if it is not the default one of the project.
    pub store: Option<PathBuf>,
    /// Whether the configuration was trusted for this run only.
    pub trust: bool,
    pub record: Option<PathBuf>,
    pub notebook: Option<PathBuf>,
}

/// What a session is given besides what the person enters.
#[derive(Default)]
pub struct GivenInput {
    pub watched: Option<WatchedFile>,
    /// Answers that are given before the person is asked.
    pub answers: VecDeque<String>,
}

/// Drives `session` until it ends or waits.
/// Errors: when the store fails; what was committed before stays.
pub async fn drive(
    mut session: Session,
    store: &dyn Store,
    front: FrontEnd,
    hint: &ResumeHint,
    mut notebook: LiveNotebook,
    mut signals: Signals,
    given: GivenInput,
) -> Result<Exit, EngineError> {
    let GivenInput { watched, mut answers } = given;
    let _progress = ProgressEnd;
    let waits_for_file = watched.as_ref().is_some_and(|watched| watched.waits);
    let mut is_input_over = false;
    let resume = hint.command(&session.id);
    signals.set_notice(interrupted_notice(&resume));
    let mut code = CodeInterrupt::listen(&session);
    let mut source = front.source()?;
    notebook.start(&session.id);
    if let Some(watched) = &watched {
        // Before time answers a request in its place.
        file_decision::take_all(&mut session, &watched.keeper).await?;
    }
    loop {
        let pause = {
            let mut advance = std::pin::pin!(session.advance());
            loop {
                tokio::select! {
                    biased;
                    () = signals.any() => {
                        code.cut_off();
                        break None;
                    }
                    () = output::failed(), if !code.is_unseen() => {
                        if !code.unseen() {
                            break None;
                        }
                    }
                    () = code.unseen_too_long() => break None,
                    pause = &mut advance => break Some(pause),
                    () = notebook.due() => notebook.write(store, front).await,
                }
            }
        };
        notebook.catch_up(store, front).await;
        let pause = match pause {
            Some(pause) => pause?,
            None if output::failure().is_some() => {
                return not_shown(store, SessionPause::Waiting, hint, &session.id).await;
            }
            None if code.is_cut_off() => {
                let notice = msg!(
                    "\ninterrupted while code ran: what it has printed is not stored, everything before it is. Resume with: {resume}"
                );
                return interrupted(store, front, &signals, &notice).await;
            }
            None => return interrupted(store, front, &signals, &interrupted_notice(&resume)).await,
        };
        let is_about_code = pause == SessionPause::Waiting && code.take_question(&session);
        if is_about_code && (output::failure_now().is_some() || !can_be_asked(front)) {
            return code_interrupted(store, front, &signals, &resume).await;
        }
        if output::failure().is_some() {
            return not_shown(store, pause, hint, &session.id).await;
        }
        match pause {
            SessionPause::Waiting => {}
            SessionPause::Completed => {
                let reported = write_report_of(&session, store, keeper(watched.as_ref())).await;
                if front == FrontEnd::Terminal {
                    front.note(&msg!("── session {} is complete ──", session.id));
                }
                front.report_unread(source.unread().await);
                return Ok(if reported { Exit::Done } else { Exit::Failed });
            }
            SessionPause::Cancelled => {
                write_report_of(&session, store, keeper(watched.as_ref())).await;
                if front == FrontEnd::Terminal {
                    front.note(&msg!("── session {} is cancelled ──", session.id));
                }
                return Ok(Exit::Ended);
            }
            SessionPause::Failed => {
                write_report_of(&session, store, keeper(watched.as_ref())).await;
                front.report_unread(source.unread().await);
                return Ok(Exit::Failed);
            }
            SessionPause::Stopped => {
                let larger = session.larger_budget().map(|larger| format!(" --budget {larger}"));
                let status = if larger.is_some() { "stopped: the budget is used up" } else { "stopped" };
                let larger = larger.unwrap_or_default();
                front.note(&msg!(
                    "{what}; nothing is lost. Resume with: {resume}{larger}",
                    what = Message::word(status)
                ));
                front.report_unread(source.unread().await);
                return Ok(Exit::Waiting);
            }
        }
        if let Some((watched, event)) = watched.as_ref().and_then(|watched| Some((watched, watched.keeper.look()?))) {
            file_decision::take(&mut session, &watched.keeper, event).await?;
            continue;
        }
        let stays = waits_for_file && session.status() == SessionStatus::WaitingApproval;
        if !stays && !decisions::waits_here(&session, front) {
            store.check_files().await?;
            decisions::report_request(&session, front, hint);
            return Ok(Exit::Waiting);
        }
        if decisions::takes_input(&session) {
            progress::set_shown(false);
        }
        let is_given = !answers.is_empty() && session.awaits_answer();
        if !is_given {
            decisions::report_next(&session, front, hint);
        }
        loop {
            // Results of monitors are stored while the session waits for the person. Immediate results, such as those of prepared
            // replies, are processed before the next answer, so that piped answers always give the same conversation.
            tokio::task::yield_now().await;
            if is_given
                && !session.awaits_analysis()
                && let Some(text) = answers.pop_front()
            {
                front.show_answer(&text)?;
                session.answer(&text, None).await?;
                break;
            }
            let due = decisions::time_left(&session);
            let input = tokio::select! {
                biased;
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => break,
                () = signals.any() => return interrupted(store, front, &signals, &interrupted_notice(&resume)).await,
                () = session.wait_for_result() => {
                    session.commit_results().await?;
                    continue;
                }
                event = state_file::changed(watched.as_ref()), if watched.is_some() => {
                    if let Some(watched) = &watched {
                        file_decision::take(&mut session, &watched.keeper, event).await?;
                    }
                    break;
                }
                input = source.next(), if decisions::takes_input(&session) && !is_input_over && !is_given => input,
            };
            if stays && matches!(input, InputLine::End) {
                is_input_over = true;
                continue;
            }
            // Nobody would see what follows an answer.
            let is_end = matches!(input, InputLine::End | InputLine::Interrupted);
            if !is_end && output::failure_now().is_some() {
                return not_shown(store, SessionPause::Waiting, hint, &session.id).await;
            }
            let input = decisions::as_decision(input, &session, front);
            match input {
                InputLine::Decision(decision) => {
                    if decisions::take(&mut session, *decision).await? {
                        break;
                    }
                }
                InputLine::Answer { text, answer_id } => match session.answer(&text, answer_id.as_deref()).await? {
                    TakenAnswer::Yes => break,
                    TakenAnswer::AlreadyUsed
                    | TakenAnswer::Unknown
                    | TakenAnswer::NotAwaited
                    | TakenAnswer::TooLong => {}
                },
                InputLine::Command(line) => command(&line, &mut session, store).await?,
                InputLine::Blank => {}
                InputLine::Rejected(RejectedInput { code, message, help }) => {
                    session.report_rejected_input(code, message, help).await?;
                }
                InputLine::End => {
                    store.check_files().await?;
                    if let Some(exit) = finish(&mut session, front, &mut signals).await? {
                        return Ok(exit);
                    }
                    match session.request().filter(|_| session.status() != SessionStatus::WaitingInput) {
                        None => front.note(&msg!("saved; the session is waiting for an answer. Resume with: {resume}")),
                        Some(_) => decisions::report_request(&session, front, hint),
                    }
                    return Ok(Exit::Waiting);
                }
                InputLine::Interrupted => {
                    return interrupted(store, front, &signals, &interrupted_notice(&resume)).await;
                }
            }
        }
    }
}

/// Waits for monitors before the program leaves a session at the end of its input. A person at a terminal wants to be gone at once; a program may
/// give each answer to a process of its own, and then its monitors have no other time. Whoever decides about a request does not wait for
/// them. Returns how the program ends if it was interrupted.
async fn finish(session: &mut Session, front: FrontEnd, signals: &mut Signals) -> Result<Option<Exit>, EngineError> {
    if front == FrontEnd::Terminal || session.status() != SessionStatus::WaitingInput {
        return Ok(None);
    }
    tokio::select! {
        biased;
        () = signals.any() => {
            signals.announce();
            Ok(Some(Exit::Interrupted))
        }
        finished = finish_analyses(session, Instant::now() + ANALYSIS_TIME) => finished.map(|()| None),
    }
}

/// What is written if a signal ends the program before [`drive`].
pub fn interrupted_early_notice() -> Message {
    Message::word("\ninterrupted; nothing is lost")
}

/// Ends the program because of a signal before [`drive`].
pub fn interrupted_early(front: FrontEnd, signals: &Signals) -> Exit {
    signals.announce();
    front.note(&interrupted_early_notice());
    Exit::Interrupted
}

fn interrupted_notice(resume: &str) -> Message {
    msg!("\ninterrupted; nothing is lost. Resume with: {resume}")
}

/// Errors: the store went away after the last commit, so that not everything is in it.
async fn interrupted(
    store: &dyn Store,
    front: FrontEnd,
    signals: &Signals,
    notice: &Message,
) -> Result<Exit, EngineError> {
    signals.announce();
    store.check_files().await?;
    front.note(notice);
    Ok(Exit::Interrupted)
}

/// Ends the program because nobody can be asked about code that Ctrl-C interrupted.
/// Errors: the store went away after the last commit, so that not everything is in it.
async fn code_interrupted(
    store: &dyn Store,
    front: FrontEnd,
    signals: &Signals,
    resume: &str,
) -> Result<Exit, EngineError> {
    signals.announce();
    store.check_files().await?;
    front.note(&msg!(
        "the code was interrupted, and what it printed is stored; the session asks what to do when it is resumed: {resume}"
    ));
    Ok(Exit::Interrupted)
}

/// Reports that standard output cannot be written. Notes for a terminal would go there as well.
/// Errors: the store went away after the last commit, so that not everything is in it.
async fn not_shown(store: &dyn Store, pause: SessionPause, hint: &ResumeHint, id: &str) -> Result<Exit, EngineError> {
    store.check_files().await?;
    if let Some(failure) = output::failure() {
        report::note(&msg!("error: {error}", error = failure.clone()));
    }
    let (show, resume) = (hint.show_command(id), hint.command(id));
    match pause {
        SessionPause::Waiting | SessionPause::Stopped => {
            report::note(&msg!("saved; nothing is lost. Show the conversation with: {show}\nResume with: {resume}"));
            Ok(Exit::Waiting)
        }
        SessionPause::Completed | SessionPause::Failed | SessionPause::Cancelled => {
            report::note(&msg!("the session has ended. Show the conversation with: {show}"));
            Ok(Exit::Failed)
        }
    }
}

impl ResumeHint {
    /// The command that shows the session `id`.
    pub fn show_command(&self, id: &str) -> String {
        self.command_of("show", id)
    }

    fn command_of(&self, subcommand: &str, id: &str) -> String {
        self.with_options(&format!("sessions {subcommand}"), id, subcommand == RESUME)
    }

    /// A command that opens the session `id` from outside of its conversation.
    pub fn of_command(&self, command: &str, id: &str) -> String {
        let mut command = self.with_options(command, id, true);
        if self.trust {
            command.push_str(" --trust");
        }
        command
    }

    fn with_options(&self, command: &str, id: &str, names_project: bool) -> String {
        // An id that comes from the store of somebody else may contain anything.
        let mut command = format!("bcc-script {command} {}", quoted(id));
        if let Some(project) = self.project.as_ref().filter(|_| names_project) {
            command.push_str(" --project ");
            command.push_str(&quoted(project));
        }
        if let Some(store) = &self.store {
            command.push_str(" --store ");
            command.push_str(&quoted(store));
        }
        command
    }

    /// The command that resumes the session `id`.
    pub fn command(&self, id: &str) -> String {
        let mut command = self.command_of(RESUME, id);
        if self.trust {
            command.push_str(" --trust");
        }
        if let Some(file) = &self.record {
            command.push_str(" --record ");
            command.push_str(&quoted(file));
        }
        if let Some(file) = &self.notebook {
            command.push_str(" --notebook ");
            command.push_str(&quoted(file));
        }
        command
    }
}

/// The subcommand that resumes a session.
const RESUME: &str = "resume";

fn keeper(watched: Option<&WatchedFile>) -> Option<&StateFileKeeper> {
    watched.map(|watched| watched.keeper.as_ref())
}
