//! Reports why a conversation cannot continue as its test describes, with help for the author.

use bcc_lang::message::msg;
use serde_json::Value;

use crate::test_runner::conversation::{ConversationEnd, TestConversation};
use crate::test_runner::result::TranscriptLine;
use bcc_lang::message::message::Message;
use bcc_lang::script::test::expect::Expect;
use bcc_lang::script::test::replies::Asker;
use bcc_lang::script::test::text_expectation::TextExpectation;
use bcc_lang::source::span::{Span, Spanned};
use bcc_llm::model::request::Purpose;
use bcc_llm::providers::scripted::MissingReply;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::run::head::SessionStatus;

/// The maximum number of characters of a quoted text.
const MAX_QUOTED_CHARACTERS: usize = 80;

/// Fails if an action requested more replies than its list has.
pub(crate) fn check_reply_count(conversation: &mut TestConversation<'_>) -> Result<(), ConversationEnd> {
    let Some((missing, list)) =
        missing(conversation).into_iter().find_map(|missing| Some((missing.clone(), missing.list?)))
    else {
        return Ok(());
    };
    let test = conversation.setting.test;
    let Some(replies) = test.replies().nth(list) else { return Ok(()) };
    let (span, has) = (replies.span, replies.entries.len());
    let message = msg!(
        "`{}` asked the model {}, but the test has {}",
        missing.action_id,
        times(missing.requests),
        if has == 1 { Message::word("1 reply for it") } else { msg!("{has} replies for it") }
    );
    let is_error = replies.entries.last().is_some_and(|entry| {
        use bcc_lang::script::test::replies::SentReply;
        matches!(entry.sent, SentReply::Error(_) | SentReply::Cut(..))
    });
    let help = if is_error {
        Message::word("an error applies to one attempt, and a model call has up to four attempts: add the next reply")
    } else {
        msg!(
            "add the reply for round {} to `{}`, or end the action earlier with `EXIT: \"YES\"`",
            missing.round,
            replies.asker.written()
        )
    };
    let expected = match has {
        1 => Message::word("at most 1 request"),
        _ => msg!("at most {has} requests"),
    };
    let found = msg!("request {} in round {}", missing.requests, missing.round);
    Err(conversation.failure(span, message, expected, found, Some(help)))
}

/// Fails if an action ran a program for which there is no result.
pub(crate) fn check_command_results(conversation: &mut TestConversation<'_>) -> Result<(), ConversationEnd> {
    let Some(missing) = conversation.commands.missing() else { return Ok(()) };
    let action = missing.action;
    let test = conversation.setting.test;
    let (span, message) = match missing.list {
        Some((span, count)) => {
            (span, msg!("`{action}` ran its program {}, but the test has results for {count}", times(count + 1)))
        }
        None => {
            let span = test.name.as_ref().map_or(Span::default(), |name| name.node.span);
            (span, msg!("`{action}` runs a program, and no program runs in tests: its result is missing"))
        }
    };
    let help = msg!(
        "write `commands: {{ {action}: [{{ exit_code: 0, stdout: done }}] }}` in the test, with one result for each attempt, or `simulate: {{ stdout: done }}` in the config of the action"
    );
    Err(conversation.failure(span, message, Message::default(), Message::default(), Some(help)))
}

/// Fails if a tool was called for which there is no result.
pub(crate) fn check_tool_results(conversation: &mut TestConversation<'_>) -> Result<(), ConversationEnd> {
    let Some(missing) = conversation.tools.missing() else { return Ok(()) };
    let tool = missing.tool;
    let test = conversation.setting.test;
    let (span, message) = match missing.list {
        Some((span, count)) => {
            (span, msg!("the tool `{tool}` was called {}, but the test has results for {count}", times(count + 1)))
        }
        None => {
            let span = test.name.as_ref().map_or(Span::default(), |name| name.node.span);
            (span, msg!("the tool `{tool}` was called, and no tool is called in tests: its result is missing"))
        }
    };
    let help = msg!(
        "write `tools: {{ {tool}: [{{ … }}] }}` in the test, with one result for each call; `{{ error: … }}` and `timeout` are results too"
    );
    Err(conversation.failure(span, message, Message::default(), Message::default(), Some(help)))
}

/// The action calls without a reply. A monitor without replies is not an error.
fn missing(conversation: &TestConversation<'_>) -> Vec<MissingReply> {
    let mut missing =
        conversation.setting.models.scripted.as_ref().map(|scripted| scripted.missing()).unwrap_or_default();
    missing.retain(|missing| missing.purpose == Purpose::Action);
    missing
}

fn times(count: usize) -> Message {
    match count {
        1 => Message::word("once"),
        2 => Message::word("twice"),
        more => msg!("{more} times"),
    }
}

/// Whether the session stopped because the test has no more replies.
pub(crate) fn is_out_of_replies(conversation: &TestConversation<'_>) -> bool {
    !missing(conversation).is_empty()
}

/// Whether the session stopped because its budget is used up.
pub(crate) fn is_out_of_budget(conversation: &TestConversation<'_>) -> bool {
    conversation.session.as_ref().is_some_and(|session| session.larger_budget().is_some())
}

/// The error for an `ai` without a matching message.
pub(crate) fn no_match_error(conversation: &mut TestConversation<'_>, wording: &TextExpectation) -> ConversationEnd {
    let expected = wording.describe();
    let ai_lines = |lines: &[TranscriptLine], from: usize| -> Vec<TranscriptLine> {
        lines.iter().skip(from).filter(|line| line.speaker == Speaker::Ai).cloned().collect()
    };
    let from = conversation.lines.iter().rposition(|line| line.speaker == Speaker::User).map_or(0, |at| at + 1);
    let (all, unchecked) = (ai_lines(&conversation.lines, from), ai_lines(&conversation.lines, conversation.checked));
    if wording.only_forbids() {
        let wrong =
            all.iter().find_map(|line| Some((line.clone(), wording.mismatch_in_message(&line.text, &line.action_id)?)));
        let (line, reason) = wrong.unwrap_or_else(|| (empty_line(), Message::default()));
        return conversation.failure(
            wording.span,
            msg!("the AI said something that it must not say: {reason}"),
            expected,
            line.text,
            None,
        );
    }
    match unchecked.as_slice() {
        [] => {
            let message = match all.is_empty() {
                true => Message::word("the AI said nothing"),
                false => Message::word("the AI said nothing more"),
            };
            let (reason, help) = state(conversation);
            conversation.failure(wording.span, msg!("{message}{why}", why = reason), expected, Message::default(), help)
        }
        [only] => {
            let reason = wording.mismatch_in_message(&only.text, &only.action_id).unwrap_or_default();
            let message = msg!("the AI said something else: {reason}");
            let end = conversation.failure(wording.span, message, expected, only.text.clone(), None);
            if let Some(failure) = conversation.failures.last_mut() {
                failure.exact = wording.exact_text().map(str::to_owned);
            }
            end
        }
        several => {
            let shown: Vec<&str> = several.iter().map(|line| line.text.as_str()).collect();
            let message = msg!("none of the {} messages match", several.len());
            let help =
                conversation.setting.test.strict.then(|| Message::word("with `strict`, the next message must match"));
            conversation.failure(wording.span, message, expected, shown.join("\n"), help)
        }
    }
}

fn empty_line() -> TranscriptLine {
    TranscriptLine { speaker: Speaker::Ai, text: String::new(), action_id: String::new(), seq: 0 }
}

/// The error for a `user` when the session is not waiting for input.
pub(crate) fn unexpected_input_error(
    conversation: &mut TestConversation<'_>,
    text: &str,
    span: Span,
) -> ConversationEnd {
    let (reason, help) = state(conversation);
    let message = msg!("the person cannot say 「{}」{reason}", quoted(text));
    conversation.failure(span, message, Message::default(), Message::default(), help)
}

/// The state of the session as the end of a sentence, with a help text.
fn state(conversation: &TestConversation<'_>) -> (Message, Option<Message>) {
    if let Some(missing) = missing(conversation).first() {
        let reason = msg!(
            ": the conversation stopped because `{}` asked the model and the test has no replies for it",
            missing.action_id
        );
        let help = msg!("add `{}: [ … ]` under `model`", missing.action_id);
        return (reason, Some(help));
    }
    match conversation.status() {
        Some(SessionStatus::Completed) => (Message::word(": the conversation is over"), None),
        Some(SessionStatus::Failed) => (msg!(": the session failed{}", newest_error(conversation)), None),
        Some(SessionStatus::Stopped) if is_out_of_budget(conversation) => (
            Message::word(": the session stopped because its budget is used up"),
            Some(Message::word("`- restart: { budget: { … } }` resumes it with a larger budget")),
        ),
        Some(SessionStatus::Stopped) => (msg!(": the session stopped{}", newest_error(conversation)), None),
        Some(SessionStatus::WaitingApproval) => {
            (Message::word(": it is waiting for a decision"), Some(Message::word("`- decide: approve` answers it")))
        }
        Some(SessionStatus::WaitingTime) => {
            (Message::word(": it is waiting for a time"), Some(Message::word("`- wait: 2h` lets time pass")))
        }
        Some(SessionStatus::WaitingInput) => (Message::word(": it is waiting for the person"), None),
        _ => (Message::default(), None),
    }
}

fn newest_error(conversation: &TestConversation<'_>) -> Message {
    conversation.log.newest_error().map(|message| msg!(" ({message})")).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// With `strict`, fails if there are unchecked messages before the next input.
pub(crate) fn check_no_unchecked(conversation: &mut TestConversation<'_>, span: Span) -> Result<(), ConversationEnd> {
    if !conversation.setting.test.strict {
        return Ok(());
    }
    let unchecked =
        conversation.lines.iter().skip(conversation.checked).find(|line| line.speaker == Speaker::Ai).cloned();
    match unchecked {
        Some(line) => {
            let message =
                Message::word("the AI sent a message that no `ai` of the test checks, and the test is `strict`");
            let help = Message::word("add an `ai` for it, or remove `strict`");
            Err(conversation.failure(span, message, Message::default(), line.text, Some(help)))
        }
        None => Ok(()),
    }
}

/// Whether this `expect` implies that the session failed or stopped, or that there was an error.
pub(crate) fn expects_failure(expect: &Expect) -> bool {
    let is_failure =
        |kind: &Spanned<String>| ["session_failed", "session_stopped", "error"].contains(&kind.value.as_str());
    let counts = expect.event_counts.iter().flat_map(|counts| &counts.by);
    expect.status.as_ref().is_some_and(|status| matches!(status.value.as_str(), "failed" | "stopped"))
        || expect.errors.as_ref().is_some_and(|errors| !errors.codes.is_empty())
        || expect.events.iter().any(|event| is_failure(&event.kind))
        || counts.into_iter().any(|(kind, count)| is_failure(kind) && !count.matches(&Value::from(0)))
}

/// The dialogue is over: fails if an error occurred that the test does not expect.
pub(crate) fn check_end(conversation: &mut TestConversation<'_>) -> Result<(), ConversationEnd> {
    let test = conversation.setting.test;
    let end = test.dialogue.last().map(|step| step.span());
    let end = end.or(test.name.as_ref().map(|name| name.node.span)).unwrap_or_default();
    check_no_unchecked(conversation, end)?;
    let failed_status = match conversation.status() {
        Some(SessionStatus::Failed) => Some("failed"),
        Some(SessionStatus::Stopped) if !is_out_of_replies(conversation) => Some("stopped"),
        _ => None,
    };
    if let Some(status) = failed_status.filter(|_| !conversation.expects_failure) {
        let message = msg!("the session {what}{}", newest_error(conversation), what = Message::word(status));
        let help = msg!("if the test expects this, write `expect: {{ status: {status} }}`");
        return Err(conversation.failure(end, message, Message::default(), status.to_owned(), Some(help)));
    }
    let used = |count: usize| msg!("{} used", count);
    let unused = conversation.setting.models.scripted.as_ref().map(|scripted| scripted.unused()).unwrap_or_default();
    for unused in unused {
        let Some(replies) = test.replies().nth(unused.list) else { continue };
        let span = replies.span;
        let asker = match &replies.asker {
            Asker::Anyone => Message::word("`*`"),
            asker => msg!("`{}`", asker.written()),
        };
        let message =
            msg!("{} of the {} replies for {asker} were never used", unused.total - unused.used, unused.total);
        if test.strict {
            return Err(conversation.failure(span, message, used(unused.total), used(unused.used), None));
        }
        // The cases of a test may take different paths, and leave replies for other cases.
        if conversation.setting.one_of_several {
            continue;
        }
        let line = conversation.setting.file.line(span.start);
        conversation.notes.push(msg!("line {line}: {message}"));
    }
    Ok(())
}
