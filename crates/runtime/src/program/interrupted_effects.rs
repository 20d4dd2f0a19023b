//! Handling of external effects that were announced before they started and may have been interrupted (docs/sessions.md), for
//! every action that has such effects.
//!
//! An action calls [`decide`] in the turn in which it would act:
//!
//! ```ignore
//! match decide(turn, || EffectAnnouncement { kind: "exec", summary: "cell c1".into() }) {
//!     Decision::First(flow) => return Ok(flow), // keep the state before: the same turn comes again
//!     Decision::Run => { /* act, then turn.close_effect("…") */ }
//!     Decision::Skip => { /* go on as though it had given nothing */ }
//!     Decision::Fail => return Err(given_up()),
//! }
//! ```

use crate::program::code_excerpt::code_excerpt;
use crate::program::flow::{ActionError, EffectAnnouncement, Flow, OpenEffect, WaitReason};
use crate::program::program::Program;
use crate::program::transcript::RecentTranscript;
use crate::program::turn::Turn;
use bcc_lang::message::language::Language;
use bcc_lang::script::interrupted::OnInterrupted;

/// What the turn of an action with an external effect must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Return this flow first: the effect is announced, or the person is asked. The action's next turn decides again.
    First(Flow),
    /// The effect was announced for this turn: run it, then close it with [`Turn::close_effect`].
    Run,
    /// The effect is closed and does not run: the action continues as if it had returned nothing.
    Skip,
    /// The effect is closed and the action must fail: with [`interrupted_error`], unless it has its own error.
    Fail,
}

/// Decides how to handle the external effect of this turn: announces it if it is not announced (`announced` describes it), runs it
/// if it is due, and follows `on_interrupted` if it was found open. Nothing runs twice unless the author or the person asked
/// for it. The effect is closed where necessary.
pub fn decide(turn: &Turn<'_>, announced: impl FnOnce() -> EffectAnnouncement) -> Decision {
    let Some(effect) = turn.effect else { return Decision::First(Flow::Effect(announced())) };
    if turn.effect_is_due {
        return Decision::Run;
    }
    let answered = effect.answer.as_deref().and_then(parse_answer);
    let answer = match turn.on_interrupted {
        // Whoever interrupted it was asked, and their answer counts.
        _ if answered.is_some() => answered,
        // Nothing has interrupted what the earlier session has done.
        _ if effect.is_earlier => None,
        OnInterrupted::Ask => None,
        OnInterrupted::Retry => Some(EffectAnswer::Again),
        OnInterrupted::Skip => Some(EffectAnswer::Skip),
        OnInterrupted::Fail => Some(EffectAnswer::Fail),
    };
    match answer {
        None => Decision::First(Flow::Wait(WaitReason::InterruptedEffect)),
        Some(EffectAnswer::Again) => {
            turn.close_effect("interrupted; it is run again");
            // EffectAnnouncement again, so that this answer counts once: if the process dies again, the person is asked again.
            Decision::First(Flow::Effect(announced()))
        }
        Some(EffectAnswer::Skip) => {
            turn.close_effect("interrupted; it is skipped");
            Decision::Skip
        }
        Some(EffectAnswer::Fail) => {
            turn.close_effect("interrupted; the action fails");
            Decision::Fail
        }
    }
}

/// The code of [`interrupted_error`].
pub(crate) const EFFECT_INTERRUPTED: &str = "effect-interrupted";

/// The error of an action that fails because its external effect was interrupted.
pub fn interrupted_error() -> ActionError {
    ActionError::Failed {
        code: EFFECT_INTERRUPTED,
        message: "the action was interrupted while it was doing something outside the session, and it is not known how far it got"
            .into(),
        help: Some("`on_interrupted: ask | retry | skip | fail` of the action sets what happens in this case".into()),
    }
}

/// The person's answer about an effect that was found open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EffectAnswer {
    Again,
    Skip,
    Fail,
}

/// The decisions about an effect that was found open, as a JSON list.
pub(crate) const EFFECT_DECISIONS: &str = r#"["again","skip","fail"]"#;

/// The accepted answers, in lower case.
const ANSWERS: [(&str, EffectAnswer); 10] = [
    ("again", EffectAnswer::Again),
    ("retry", EffectAnswer::Again),
    ("重试", EffectAnswer::Again),
    ("再试", EffectAnswer::Again),
    ("重做", EffectAnswer::Again),
    ("skip", EffectAnswer::Skip),
    ("跳过", EffectAnswer::Skip),
    ("fail", EffectAnswer::Fail),
    ("失败", EffectAnswer::Fail),
    ("放弃", EffectAnswer::Fail),
];

/// Reads the person's answer: one of [`ANSWERS`], in any case and with any punctuation around it. Several words count as no answer:
/// external effects are not decided by a guess.
fn parse_answer(input: &str) -> Option<EffectAnswer> {
    let input = input.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    ANSWERS.iter().find(|(text, _)| *text == input).map(|(_, answer)| *answer)
}

/// Whether an answer says what is to happen with an effect that was found open.
pub fn is_effect_decision(answer: &str) -> bool {
    parse_answer(answer).is_some()
}

/// The question to the person about an effect that was found open, in Chinese if the conversation or the script is.
pub fn question(program: &Program, recent: &RecentTranscript, effect: &OpenEffect) -> String {
    let OpenEffect { kind, summary, is_earlier, code, .. } = effect;
    let excerpt = |language| match code.as_deref().map(|code| code_excerpt(code, language)) {
        Some(excerpt) if !excerpt.is_empty() => format!("\n\n{excerpt}\n\n"),
        _ => String::new(),
    };
    if is_in_chinese(program, recent) {
        let code = excerpt(Language::Chinese);
        let summary = summary.render(Language::Chinese);
        if *is_earlier {
            return format!(
                "本会话重复另一个会话，该操作在那个会话中已经执行过：{summary}（{kind}）。{code}请回答“重试”（再执行一次）、“跳过”（不再执行，继续）或“失败”（让该动作失败）。"
            );
        }
        return format!(
            "这项操作中途被打断：{summary}（{kind}），无法确定完成了多少。{code}请回答“重试”（再执行一次）、“跳过”（不再执行，继续）或“失败”（让该动作失败）。"
        );
    }
    let code = Some(excerpt(Language::English)).filter(|code| !code.is_empty()).unwrap_or_else(|| " ".to_owned());
    if *is_earlier {
        return format!(
            "The session that this one repeats has already done this: {summary} ({kind}).{code}Answer `again` to do it again, `skip` to continue without it, or `fail` to let the action fail."
        );
    }
    format!(
        "This operation was interrupted: {summary} ({kind}). It is not known how far it got.{code}Answer `again` to run it again, `skip` to continue without it, or `fail` to let the action fail."
    )
}

/// Whether the person who is asked reads Chinese, as far as the conversation or the script shows.
pub(crate) fn is_in_chinese(program: &Program, recent: &RecentTranscript) -> bool {
    let sample = recent.last_user_message().unwrap_or_else(|| program.file.text());
    sample.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}
