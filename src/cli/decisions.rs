//! What `run` and `sessions resume` do while a session waits for a decision or a time.

use std::time::Duration;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;

use crate::cli::drive::ResumeHint;
use crate::cli::front_end::FrontEnd;
use crate::cli::input::InputLine;
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_runtime::program::decision::{DecisionKind, RequestKind};
use bcc_runtime::run::decisions::{ApprovalDecision, DecisionError, names_in};
use bcc_runtime::run::session::Session;
use bcc_store::rows::RequestRow;

/// The longest time that a process stays for; a session that waits longer rests until `tick` or a resume.
const MAX_STAY: Duration = Duration::from_secs(60);

/// How people write decisions in a conversation, in lower case.
const WORDS: [(&str, DecisionKind); 10] = [
    ("approve", DecisionKind::Approve),
    ("yes", DecisionKind::Approve),
    ("批准", DecisionKind::Approve),
    ("同意", DecisionKind::Approve),
    ("reject", DecisionKind::Reject),
    ("no", DecisionKind::Reject),
    ("驳回", DecisionKind::Reject),
    ("拒绝", DecisionKind::Reject),
    ("push_back", DecisionKind::PushBack),
    ("退回", DecisionKind::PushBack),
];

/// Whether this process stays for the open request: for a time that comes soon, for a program, which can send every decision, and for a
/// decision that whoever sits here may make.
pub fn waits_here(session: &Session, front: FrontEnd) -> bool {
    let Some(request) = session.request() else { return true };
    if request.kind == RequestKind::Time.name() {
        return time_left(session).is_some();
    }
    matches!(front, FrontEnd::Json { .. }) || is_plain(request)
}

/// Whether anybody may decide, with a single word.
fn is_plain(request: &RequestRow) -> bool {
    let schema = request.schema.as_deref().and_then(|schema| serde_json::from_str::<serde_json::Value>(schema).ok());
    let requires =
        schema.as_ref().and_then(|schema| schema.get("required")?.as_array()).is_some_and(|names| !names.is_empty());
    names_in(request.approvers.as_deref()).is_empty() && !requires
}

/// The time until the open request is due, if that is soon.
pub fn time_left(session: &Session) -> Option<Duration> {
    session.time_left().filter(|left| *left <= MAX_STAY)
}

/// Whether lines of input are read: nothing is asked of a person while the session waits for a time.
pub fn takes_input(session: &Session) -> bool {
    session.request().is_none_or(|request| request.kind != RequestKind::Time.name())
}

/// Reads an answer as a decision, if the session waits for one: a word and, after it, the comment.
pub fn as_decision(input: InputLine, session: &Session, front: FrontEnd) -> InputLine {
    let InputLine::Answer { text, answer_id } = input else { return input };
    let Some(request) = session.request() else { return InputLine::Answer { text, answer_id } };
    if answer_id.is_some() {
        return InputLine::Answer { text, answer_id };
    }
    let text = text.trim();
    let end = text.find([' ', ',', '，', '：', ':', '\u{3000}']).unwrap_or(text.len());
    let (word, comment) = text.split_at(end);
    let word = word.to_lowercase().replace('-', "_");
    let Some((_, decision)) = WORDS.iter().find(|(known, _)| *known == word) else {
        if !text.is_empty() {
            front.note(&expected(request));
        }
        return InputLine::Blank;
    };
    let comment = comment.trim_start_matches([' ', ',', '，', '：', ':', '\u{3000}']).to_owned();
    let request = Some(request.id.clone());
    InputLine::Decision(Box::new(ApprovalDecision {
        request,
        decision: *decision,
        by: None,
        comment: Some(comment),
        values: ExactValues::new(),
    }))
}

fn expected(request: &RequestRow) -> Message {
    let names = names_in(request.decisions.as_deref());
    msg!("this is a decision: write {}, followed by a comment if you like", Message::names(&names))
}

/// Passes a decision to the session. A refusal is committed as an error event. Returns whether it was taken.
pub async fn take(session: &mut Session, decision: ApprovalDecision) -> Result<bool, EngineError> {
    match session.decide(decision).await {
        Ok(()) => Ok(true),
        Err(DecisionError::Refused { code, message, help }) => {
            session.report_rejected_input(code, message, help).await?;
            Ok(false)
        }
        Err(DecisionError::Run(error)) => Err(error.into()),
    }
}

/// Says what the session waits for, and how it continues.
pub fn report_request(session: &Session, front: FrontEnd, hint: &ResumeHint) {
    let Some(request) = session.request() else { return };
    let due = request.due_at.clone().unwrap_or_default();
    let id = quoted(&session.id);
    if request.kind == RequestKind::Time.name() {
        let resume = hint.command(&session.id);
        front.note(&msg!(
            "saved; the session waits until {due}. Then it continues with `bcc-script tick`, or with: {resume}"
        ));
        return;
    }
    let approvers = names_in(request.approvers.as_deref());
    let message = match approvers.as_slice() {
        [] => msg!("saved; the session waits for a decision: bcc-script approve {id} (or reject, push-back)"),
        names => msg!(
            "saved; the session waits for a decision of {}: bcc-script approve {id} --by NAME (or reject, push-back)",
            Message::names(names)
        ),
    };
    front.note(&message);
}
