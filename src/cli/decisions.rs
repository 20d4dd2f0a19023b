//! What `run` and `sessions resume` do while a session waits for a decision or a time.

use std::time::Duration;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;

use crate::cli::drive::ResumeHint;
use crate::cli::front_end::FrontEnd;
use crate::cli::input::{InputLine, RejectedInput};
use bcc_engine::error::EngineError;
use bcc_runtime::actions::notebook::review::{CODE, is_about_code};
use bcc_runtime::actions::tools::call::{ANSWER, ARGUMENTS};
use bcc_runtime::program::decision::{DecisionKind, RequestKind};
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::decisions::names_in;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_store::rows::RequestRow;
use serde_json::Value;

/// The longest time that a process stays for; a session that waits longer rests until `tick` or a resume.
const MAX_STAY: Duration = Duration::from_secs(60);

/// How people write decisions in a conversation, in lower case; a comment may follow.
const WORDS: [(&str, DecisionKind); 10] = [
    ("approve", DecisionKind::Approve),
    ("批准", DecisionKind::Approve),
    ("reject", DecisionKind::Reject),
    ("驳回", DecisionKind::Reject),
    ("push_back", DecisionKind::PushBack),
    ("退回", DecisionKind::PushBack),
    ("edit", DecisionKind::Edit),
    ("修改", DecisionKind::Edit),
    ("answer", DecisionKind::Answer),
    ("代答", DecisionKind::Answer),
];

/// Words that decide only if nothing follows them: in a sentence they mean anything.
const SINGLE_WORDS: [(&str, DecisionKind); 4] = [
    ("yes", DecisionKind::Approve),
    ("同意", DecisionKind::Approve),
    ("no", DecisionKind::Reject),
    ("拒绝", DecisionKind::Reject),
];

/// What may stand between a decision and its comment, or at the end of it.
const SEPARATORS: [char; 10] = [' ', ',', '，', '：', ':', '\u{3000}', '.', '。', '!', '！'];

/// Whether this process stays for the open request: for a time that comes soon, for a program, which can send every decision, and for a
/// decision that whoever sits here may make.
pub fn waits_here(session: &Session, front: FrontEnd) -> bool {
    let open = session.request().filter(|_| session.status() != SessionStatus::WaitingInput);
    let Some(request) = open else { return true };
    if request.kind == RequestKind::Time.name() {
        return time_left(session).is_some();
    }
    matches!(front, FrontEnd::Json { .. }) || is_plain(request)
}

/// Whether anybody may decide, with a single word.
fn is_plain(request: &RequestRow) -> bool {
    names_in(request.approvers.as_deref()).is_some_and(|names| names.is_empty()) && required_fields(request).is_empty()
}

/// The fields of the form that an approval needs.
fn required_fields(request: &RequestRow) -> Vec<String> {
    let schema = request.schema.as_deref().and_then(|schema| serde_json::from_str::<serde_json::Value>(schema).ok());
    let required = schema.as_ref().and_then(|schema| schema.get("required")?.as_array());
    required.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The time until the open request is due, if that is soon.
pub fn time_left(session: &Session) -> Option<Duration> {
    session.time_left().filter(|left| *left <= MAX_STAY)
}

/// Whether lines of input are read: nothing is asked of a person while the session waits for a time.
pub fn takes_input(session: &Session) -> bool {
    session.status() == SessionStatus::WaitingInput
        || session.request().is_none_or(|request| request.kind != RequestKind::Time.name())
}

/// Reads an answer as a decision, if the session waits for one: a word and, after it, the comment.
pub fn as_decision(input: InputLine, session: &Session, front: FrontEnd) -> InputLine {
    let InputLine::Answer { text, answer_id } = input else { return input };
    // A question about an interrupted effect can be open beside decisions of other branches.
    let decides = session.status() != SessionStatus::WaitingInput;
    let named = answer_id
        .as_ref()
        .and_then(|given| session.requests().into_iter().map(|(_, open)| open).find(|open| open.id == *given));
    let Some(request) = named.or_else(|| session.request().filter(|_| decides)) else {
        return InputLine::Answer { text, answer_id };
    };
    let is_meant = answer_id.as_ref().is_none_or(|given| *given == request.id);
    match written_decision(&text).filter(|_| is_meant) {
        Some((decision, rest)) => {
            let (comment, values) = match decision {
                DecisionKind::Edit => {
                    let name = if is_code(request) { CODE } else { ARGUMENTS };
                    (None, ExactValues::from_iter([(name.to_owned(), Value::from(rest).into())]))
                }
                DecisionKind::Answer => (None, ExactValues::from_iter([(ANSWER.to_owned(), Value::from(rest).into())])),
                DecisionKind::Approve | DecisionKind::Reject | DecisionKind::PushBack => {
                    (Some(rest), ExactValues::new())
                }
            };
            let request = Some(request.id.clone());
            InputLine::Decision(Box::new(ApprovalDecision { request, decision, by: None, comment, values }))
        }
        None if text.trim().is_empty() => InputLine::Blank,
        None if matches!(front, FrontEnd::Json { .. }) => {
            let message = Message::word("a line was not accepted: the session waits for a decision");
            InputLine::Rejected(RejectedInput { code: "decision-expected", message, help: Some(expected(request)) })
        }
        None => {
            front.note(&expected(request));
            InputLine::Blank
        }
    }
}

/// The decision that a line begins with, and its comment.
fn written_decision(text: &str) -> Option<(DecisionKind, String)> {
    let find = |words: &[(&str, DecisionKind)], written: &str| {
        let written = written.to_lowercase().replace('-', "_");
        words.iter().find(|(word, _)| *word == written).map(|(_, decision)| *decision)
    };
    let text = text.trim().trim_end_matches(['.', '。', '!', '！']);
    if let Some(decision) = find(&SINGLE_WORDS, text) {
        return Some((decision, String::new()));
    }
    let (word, comment) = text.split_at(text.find(SEPARATORS).unwrap_or(text.len()));
    Some((find(&WORDS, word)?, comment.trim_start_matches(SEPARATORS).to_owned()))
}

fn expected(request: &RequestRow) -> Message {
    let names = names_in(request.decisions.as_deref()).unwrap_or_default();
    let (of_calls, names): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| is_of_calls(name));
    let usual = msg!("this is a decision: write {}, followed by a comment if you like", Message::names(&names));
    match of_calls.is_empty() {
        true => usual,
        false if is_code(request) => msg!("{usual}; or `edit` and the code"),
        false => msg!("{usual}; or `edit` and the arguments as JSON, or `answer` and the result"),
    }
}

/// Whether the request is about code.
fn is_code(request: &RequestRow) -> bool {
    let schema = request.schema.as_deref().and_then(|schema| serde_json::from_str::<serde_json::Value>(schema).ok());
    schema.as_ref().is_some_and(is_about_code)
}

/// Whether a decision with this name is about the call of a tool, and needs a value.
fn is_of_calls(name: &str) -> bool {
    [DecisionKind::Edit, DecisionKind::Answer].iter().any(|decision| decision.name() == name)
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

/// Says at a terminal how the next line decides, and about what if it was asked for by a branch: others may have written since.
pub fn report_next(session: &Session, front: FrontEnd, hint: &ResumeHint) {
    if front != FrontEnd::Terminal {
        return;
    }
    if session.awaited().is_some() {
        let request = session.request().filter(|_| session.status() == SessionStatus::WaitingApproval);
        if let Some(request) = request.filter(|request| request.kind != RequestKind::Time.name()) {
            front.note(&expected(request));
            if is_code(request) {
                let answer = hint.of_command("requests answer", &session.id);
                front.note(&msg!(
                    "for code of several lines: /quit, then `{answer} edit --set code=TEXT`, and resume the session"
                ));
            }
        }
        return;
    }
    let decides = session.request().map(|request| request.id.clone());
    let open = session.requests().into_iter().find(|(_, request)| Some(&request.id) == decides.as_ref());
    let Some((place, request)) = open.filter(|(_, request)| request.kind != RequestKind::Time.name()) else { return };
    let action = place.action_id.unwrap_or_default();
    front.note(&msg!("your next line decides about `{action}`: {prompt}", prompt = request.prompt.clone()));
}

/// Says what the session waits for, and how it continues.
pub fn report_request(session: &Session, front: FrontEnd, hint: &ResumeHint) {
    let is_time = |request: &RequestRow| request.kind == RequestKind::Time.name();
    let open: Vec<&RequestRow> = session.requests().into_iter().map(|(_, open)| open).collect();
    let decisions: Vec<&RequestRow> = open.iter().copied().filter(|request| !is_time(request)).collect();
    match decisions.as_slice() {
        [] => {
            let Some(due) = session.request().and_then(|request| request.due_at.clone()) else { return };
            let resume = hint.command(&session.id);
            front.note(&msg!(
                "saved; the session waits until {due}. Then it continues with `bcc-script tick`, or with: {resume}"
            ));
        }
        [request] => report_decision(request, &session.id, front, hint),
        several => {
            for request in several {
                report_decision(request, &format!("{}/{}", session.id, request.id), front, hint);
            }
        }
    }
}

/// Says how a decision is made. `target` is what names its request on the command line.
fn report_decision(request: &RequestRow, target: &str, front: FrontEnd, hint: &ResumeHint) {
    let approvers = names_in(request.approvers.as_deref()).unwrap_or_default();
    let mut approve = hint.of_command("approve", target);
    if !approvers.is_empty() {
        approve.push_str(" --by NAME");
    }
    for field in required_fields(request) {
        approve.push_str(&format!(" --set {field}=VALUE"));
    }
    let others = names_in(request.decisions.as_deref()).unwrap_or_default();
    let is_of_call = others.iter().any(|name| is_of_calls(name));
    let others: Vec<String> = others
        .iter()
        .filter(|name| *name != "approve" && !is_of_calls(name))
        .map(|name| name.replace('_', "-"))
        .collect();
    let others = if others.is_empty() {
        Message::default()
    } else {
        msg!("; or instead of approve: {}", Message::names(&others))
    };
    let others = match is_of_call {
        false => others,
        true => {
            let answer = hint.of_command("requests answer", target);
            let by = if approvers.is_empty() { "" } else { " --by NAME" };
            let edit = format!("{answer} edit --set arguments=JSON{by}");
            let text = format!("{answer} answer --set answer=TEXT{by}");
            let code = format!("{answer} edit --set code=TEXT{by}");
            match is_code(request) {
                true => msg!("{others}; or with other code: {code}", others = others),
                false => msg!(
                    "{others}; or with other arguments: {edit}; or with a result of your own: {text}",
                    others = others
                ),
            }
        }
    };
    let message = match approvers.as_slice() {
        [] => msg!("saved; the session waits for a decision: {approve}{others}", others = others),
        names => {
            msg!(
                "saved; the session waits for a decision of {}: {approve}{others}",
                Message::names(names),
                others = others
            )
        }
    };
    front.note(&message);
}
