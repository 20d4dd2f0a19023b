//! Why a conversation cannot go on as its test has it, told so that its author sees what to do.

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

/// The most characters of a text that a message quotes.
const QUOTED: usize = 80;

/// Fails when an action asked for more replies than its list has.
pub(crate) fn short(talk: &mut TestConversation<'_>) -> Result<(), ConversationEnd> {
    let Some((missing, list)) = missing(talk).into_iter().find_map(|missing| Some((missing.clone(), missing.list?)))
    else {
        return Ok(());
    };
    let test = talk.setting.test;
    let Some(replies) = test.replies().nth(list) else { return Ok(()) };
    let (span, has) = (replies.span, replies.entries.len());
    let message = msg!(
        "`{}` asked the model {}, but the test has {}",
        missing.action_id,
        times(missing.asked),
        if has == 1 { Message::word("1 reply for it") } else { msg!("{has} replies for it") }
    );
    let faulty = replies.entries.last().is_some_and(|entry| {
        use bcc_lang::script::test::replies::Sent;
        matches!(entry.sent, Sent::Fault(_) | Sent::Cut(..))
    });
    let help = if faulty {
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
    let found = msg!("request {} in round {}", missing.asked, missing.round);
    Err(talk.failure(span, message, expected, found, Some(help)))
}

/// The actions that asked in vain. A monitor whose replies are used up has nothing more to say, and nobody waits for it.
fn missing(talk: &TestConversation<'_>) -> Vec<MissingReply> {
    let mut missing = talk.setting.models.scripted.as_ref().map(|scripted| scripted.missing()).unwrap_or_default();
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

/// Whether the session stopped where the test has no replies any more.
pub(crate) fn is_short(talk: &TestConversation<'_>) -> bool {
    !missing(talk).is_empty()
}

/// Whether the session stopped because its budget is used up.
pub(crate) fn is_spent(talk: &TestConversation<'_>) -> bool {
    talk.session.as_ref().is_some_and(|session| session.larger_budget().is_some())
}

/// `ai` found nothing that fits.
pub(crate) fn unheard(talk: &mut TestConversation<'_>, wording: &TextExpectation) -> ConversationEnd {
    let expected = wording.told();
    let said = |lines: &[TranscriptLine], from: usize| -> Vec<TranscriptLine> {
        lines.iter().skip(from).filter(|line| line.speaker == Speaker::Ai).cloned().collect()
    };
    let from = talk.lines.iter().rposition(|line| line.speaker == Speaker::User).map_or(0, |at| at + 1);
    let (all, left) = (said(&talk.lines, from), said(&talk.lines, talk.looked));
    if wording.only_forbids() {
        let wrong = all.iter().find_map(|line| Some((line.clone(), wording.fault_said(&line.text, &line.action_id)?)));
        let (line, why) = wrong.unwrap_or_else(|| (nothing(), Message::default()));
        return talk.failure(
            wording.span,
            msg!("the AI said something that it must not say: {why}"),
            expected,
            line.text,
            None,
        );
    }
    match left.as_slice() {
        [] => {
            let message = match all.is_empty() {
                true => Message::word("the AI said nothing"),
                false => Message::word("the AI said nothing more"),
            };
            let (why, help) = state(talk);
            talk.failure(wording.span, msg!("{message}{why}"), expected, Message::default(), help)
        }
        [only] => {
            let why = wording.fault_said(&only.text, &only.action_id).unwrap_or_default();
            let message = msg!("the AI said something else: {why}");
            let end = talk.failure(wording.span, message, expected, only.text.clone(), None);
            if let Some(failure) = talk.failures.last_mut() {
                failure.exact = wording.exact_text().map(str::to_owned);
            }
            end
        }
        several => {
            let shown: Vec<&str> = several.iter().map(|line| line.text.as_str()).collect();
            let message = msg!("none of the {} messages match", several.len());
            let help = talk.setting.test.strict.then(|| Message::word("with `strict`, the next message must match"));
            talk.failure(wording.span, message, expected, shown.join("\n"), help)
        }
    }
}

fn nothing() -> TranscriptLine {
    TranscriptLine { speaker: Speaker::Ai, text: String::new(), action_id: String::new(), seq: 0 }
}

/// `user` came when nobody waits for it.
pub(crate) fn unawaited(talk: &mut TestConversation<'_>, text: &str, span: Span) -> ConversationEnd {
    let (why, help) = state(talk);
    let message = msg!("the person cannot say 「{}」{why}", quoted(text));
    talk.failure(span, message, Message::default(), Message::default(), help)
}

/// How the session stands, as the end of a sentence, with what to do about it.
fn state(talk: &TestConversation<'_>) -> (Message, Option<Message>) {
    if let Some(missing) = missing(talk).first() {
        let why = msg!(
            ": the conversation stopped because `{}` asked the model and the test has no replies for it",
            missing.action_id
        );
        let help = msg!("add `{}: [ … ]` under `model`", missing.action_id);
        return (why, Some(help));
    }
    match talk.status() {
        Some(SessionStatus::Completed) => (Message::word(": the conversation is over"), None),
        Some(SessionStatus::Failed) => (msg!(": the session failed{}", newest_error(talk)), None),
        Some(SessionStatus::Stopped) if is_spent(talk) => (
            Message::word(": the session stopped because its budget is used up"),
            Some(Message::word("`- restart: { budget: { … } }` resumes it with a larger budget")),
        ),
        Some(SessionStatus::Stopped) => (msg!(": the session stopped{}", newest_error(talk)), None),
        Some(SessionStatus::WaitingInput) => (Message::word(": it is waiting for the person"), None),
        _ => (Message::default(), None),
    }
}

fn newest_error(talk: &TestConversation<'_>) -> Message {
    talk.log.newest_error().map(|message| msg!(" ({message})")).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// With `strict`, fails when somebody speaks on though messages were not looked at.
pub(crate) fn overlooked(talk: &mut TestConversation<'_>, span: Span) -> Result<(), ConversationEnd> {
    if !talk.setting.test.strict {
        return Ok(());
    }
    let unlooked = talk.lines.iter().skip(talk.looked).find(|line| line.speaker == Speaker::Ai).cloned();
    match unlooked {
        Some(line) => {
            let message =
                Message::word("the AI sent a message that no `ai` of the test checks, and the test is `strict`");
            let help = Message::word("add an `ai` for it, or remove `strict`");
            Err(talk.failure(span, message, Message::default(), line.text, Some(help)))
        }
        None => Ok(()),
    }
}

/// Whether this `expect`, when it holds, says that the session failed or stopped, or that there was an error.
pub(crate) fn is_about_trouble(expect: &Expect) -> bool {
    let trouble =
        |kind: &Spanned<String>| ["session_failed", "session_stopped", "error"].contains(&kind.value.as_str());
    let counts = expect.event_counts.iter().flat_map(|counts| &counts.by);
    expect.status.as_ref().is_some_and(|status| matches!(status.value.as_str(), "failed" | "stopped"))
        || expect.errors.as_ref().is_some_and(|errors| !errors.codes.is_empty())
        || expect.events.iter().any(|event| trouble(&event.kind))
        || counts.into_iter().any(|(kind, count)| trouble(kind) && !count.fits(&Value::from(0)))
}

/// The dialogue is over: nothing must have gone wrong that the test does not speak of.
pub(crate) fn at_the_end(talk: &mut TestConversation<'_>) -> Result<(), ConversationEnd> {
    let test = talk.setting.test;
    let end = test.dialogue.last().map(|step| step.span());
    let end = end.or(test.name.as_ref().map(|name| name.node.span)).unwrap_or_default();
    overlooked(talk, end)?;
    let bad = match talk.status() {
        Some(SessionStatus::Failed) => Some("failed"),
        Some(SessionStatus::Stopped) if !is_short(talk) => Some("stopped"),
        _ => None,
    };
    if let Some(what) = bad.filter(|_| !talk.spoke_of_trouble) {
        let message = msg!("the session {what}{}", newest_error(talk), what = Message::word(what));
        let help = msg!("if the test expects this, write `expect: {{ status: {what} }}`");
        return Err(talk.failure(end, message, Message::default(), what.to_owned(), Some(help)));
    }
    let used = |count: usize| msg!("{} used", count);
    let left = talk.setting.models.scripted.as_ref().map(|scripted| scripted.left_over()).unwrap_or_default();
    for left in left {
        let Some(replies) = test.replies().nth(left.list) else { continue };
        let span = replies.span;
        let asker = match &replies.asker {
            Asker::Anyone => Message::word("`*`"),
            asker => msg!("`{}`", asker.written()),
        };
        let message = msg!("{} of the {} replies for {asker} were never used", left.of - left.used, left.of);
        if test.strict {
            return Err(talk.failure(span, message, used(left.of), used(left.used), None));
        }
        // Each case of a test takes a way of its own, and leaves what others need.
        if talk.setting.one_of_several {
            continue;
        }
        let line = talk.setting.file.line(span.start);
        talk.notes.push(msg!("line {line}: {message}"));
    }
    Ok(())
}
