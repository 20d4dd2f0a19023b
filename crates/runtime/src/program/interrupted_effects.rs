//! Outside effects that are announced before they begin, and what becomes of one that nobody saw come to its end
//! (docs/sessions.md): the one place where that is decided, for every action that has such effects.
//!
//! An action calls [`decide`] in the turn in which it would act:
//!
//! ```ignore
//! match decide(turn, || Announced { kind: "exec", summary: "cell c1".into() }) {
//!     Decision::First(flow) => return Ok(flow), // keep the state before: the same turn comes again
//!     Decision::Carry => { /* act, then turn.close_effect("…") */ }
//!     Decision::Skip => { /* go on as though it had given nothing */ }
//!     Decision::Fail => return Err(given_up()),
//! }
//! ```

use crate::program::flow::{ActionError, Announced, Flow, OpenEffect, WaitReason};
use crate::program::program::Program;
use crate::program::transcript::RecentTranscript;
use crate::program::turn::Turn;
use bcc_lang::message::language::Language;
use bcc_lang::script::interrupted::OnInterrupted;

/// What the turn of an action that has an outside effect is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// This flow comes first: the effect is announced, or a person is asked. The action's next turn decides again.
    First(Flow),
    /// The effect was announced for this turn: it is to be carried out, and closed with [`Turn::close_effect`].
    Carry,
    /// The effect is closed, and is not carried out: the action goes on as though it had given nothing.
    Skip,
    /// The effect is closed, and the action is to fail: with [`given_up`], where it has no words of its own.
    Fail,
}

/// Decides about the outside effect of this turn: one that is not announced is announced (`announced` says as what), one that
/// is due is carried out, and one that was found open is decided about as `on_interrupted` says: nothing is ever done twice
/// without somebody having said so. What this gives is what the turn must do; the effect is closed where it has to be.
pub fn decide(turn: &Turn<'_>, announced: impl FnOnce() -> Announced) -> Decision {
    let Some(effect) = turn.effect else { return Decision::First(Flow::Effect(announced())) };
    if turn.effect_is_due {
        return Decision::Carry;
    }
    let word = match turn.on_interrupted {
        OnInterrupted::Ask => effect.word.as_deref().and_then(read_word),
        OnInterrupted::Retry => Some(Word::Again),
        OnInterrupted::Skip => Some(Word::Skip),
        OnInterrupted::Fail => Some(Word::Fail),
    };
    match word {
        None => Decision::First(Flow::Wait(WaitReason::InterruptedEffect)),
        Some(Word::Again) => {
            turn.close_effect("interrupted; it is run again");
            // Announced anew, so that this word counts once: should the process die again, it is asked for again.
            Decision::First(Flow::Effect(announced()))
        }
        Some(Word::Skip) => {
            turn.close_effect("interrupted; it is skipped");
            Decision::Skip
        }
        Some(Word::Fail) => {
            turn.close_effect("interrupted; the action fails");
            Decision::Fail
        }
    }
}

/// The error of an action that fails because its outside effect was interrupted.
pub fn given_up() -> ActionError {
    ActionError::Failed {
        code: "effect-interrupted",
        message: "the action was interrupted while it was doing something outside the session, and it is not known how far it got"
            .into(),
        help: Some("`on_interrupted: ask | retry | skip | fail` of the action sets what happens in this case".into()),
    }
}

/// What a person says of an effect that was found open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Again,
    Skip,
    Fail,
}

/// The words that are understood, in lower case.
const WORDS: [(&str, Word); 10] = [
    ("again", Word::Again),
    ("retry", Word::Again),
    ("重试", Word::Again),
    ("再试", Word::Again),
    ("重做", Word::Again),
    ("skip", Word::Skip),
    ("跳过", Word::Skip),
    ("fail", Word::Fail),
    ("失败", Word::Fail),
    ("放弃", Word::Fail),
];

/// Reads a person's word: one of [`WORDS`], however it is written and whatever stands around it that is no letter. More than
/// one word is none: what is done outside is not decided by a guess.
fn read_word(said: &str) -> Option<Word> {
    let said = said.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    WORDS.iter().find(|(word, _)| *word == said).map(|(_, word)| *word)
}

/// What a person is asked about an effect that was found open, in Chinese where the conversation or the script is. `again`:
/// whether they were asked before and said something that was not understood.
pub fn question(program: &Program, recent: &RecentTranscript, effect: &OpenEffect) -> String {
    let OpenEffect { kind, summary, word, .. } = effect;
    let again = word.is_some();
    let said = recent.last_user_message().unwrap_or_else(|| program.file.text());
    if said.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)) {
        let first = if again { "无法理解您的回答。" } else { "" };
        let summary = summary.render(Language::Chinese);
        return format!(
            "{first}程序中断时正在执行：{summary}（{kind}），无法确定完成了多少。请回答“重试”（再执行一次）、“跳过”（不再执行，继续）或“失败”（让该动作失败）。"
        );
    }
    let first = if again { "That was not one of the expected answers. " } else { "" };
    format!(
        "{first}The program was stopped during this operation: {summary} ({kind}). It is not known how far it got. Answer `again` to run it again, `skip` to continue without it, or `fail` to let the action fail."
    )
}
