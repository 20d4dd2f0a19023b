//! What is said in place of a reply that cannot be used: never the instruction of the author, and never the same words twice in a
//! row (docs/language.md, "Replies that cannot be read").

use crate::actions::conversation::config::ModelConfig;
use crate::program::exchange::Exchange;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;
use bcc_lang::message::msg;

/// Why a reply cannot be used, as far as it decides what is said instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnusableReply {
    /// An opening without a text that can be sent.
    Opening,
    /// A later reply without a text that can be sent.
    Later,
    /// A reply without a text that can be sent, after operations that the person must know of.
    AfterOperations,
    /// A reply that marked itself as unsafe.
    HeldBack,
    /// A reply without a text that can be sent, which reported that the person is in danger, or one before it did.
    InCrisis,
}

impl UnusableReply {
    pub(crate) fn of(exchange: &Exchange, opening: bool) -> Self {
        match () {
            () if exchange.in_crisis => Self::InCrisis,
            () if exchange.held_back.is_some() => Self::HeldBack,
            () if opening => Self::Opening,
            () => Self::Later,
        }
    }
}

/// How many openings of one action may be unusable: the last one stops the session.
const MAX_UNUSABLE_OPENINGS: u32 = 3;

/// The number of unusable openings with another one after `earlier` ones.
/// Errors: It is the last one.
pub(crate) fn count_unusable_opening(turn: &Turn<'_>, earlier: u32) -> Result<u32, ActionError> {
    let unusable_openings = earlier + 1;
    if unusable_openings < MAX_UNUSABLE_OPENINGS {
        return Ok(unusable_openings);
    }
    let action = turn.place.action_id.as_deref().unwrap_or_default();
    let message = msg!("the model gave no usable reply to open `{action}`, {MAX_UNUSABLE_OPENINGS} times");
    let help = "resume the session to ask again, or with another model: `sessions resume ID --model M`";
    Err(ActionError::Unusable { message, help: Some(help.into()) })
}

impl ModelConfig {
    /// The text to send. `asked` is the last question or message, and `earlier` the number of texts that the action sent in place of
    /// replies before.
    pub(crate) fn substitute(
        &self,
        turn: &Turn<'_>,
        max_rounds: u32,
        reason: UnusableReply,
        (asked, earlier): (&str, u32),
    ) -> Result<String, ActionError> {
        let names = turn.names(max_rounds);
        let own = self.fallback.iter().map(|text| turn.text(text, &names)).collect::<Result<Vec<_>, _>>()?;
        let texts = &self.fallbacks;
        let repeated = |apology: &String| format!("{apology}\n{asked}").trim_end().to_owned();
        let groups = match reason {
            // The numbers of hotlines must reach the person, whatever the author wrote for other cases.
            UnusableReply::InCrisis => [texts.crisis.clone(), texts.safety.clone(), own],
            UnusableReply::HeldBack => [own, texts.safety.clone(), texts.later.clone()],
            UnusableReply::Opening => [own, texts.opening.clone(), texts.later.clone()],
            // What an author says in other cases may be that nothing was done.
            UnusableReply::AfterOperations => [texts.partial.clone(), vec![], vec![]],
            UnusableReply::Later => [own, texts.later.iter().map(repeated).collect(), vec![asked.to_owned()]],
        };
        let last = turn.recent.last_ai_message().map(str::trim);
        Ok(choose(&groups, last, earlier).unwrap_or_default().to_owned())
    }
}

/// The first text that is not `last`, group by group. Each group is used in turn, beginning with the text number `earlier`. If there
/// is no other text, it is `last` again.
fn choose<'t>(groups: &'t [Vec<String>], last: Option<&str>, earlier: u32) -> Option<&'t str> {
    let earlier = usize::try_from(earlier).unwrap_or_default();
    let in_turn = |group: &'t Vec<String>| {
        let start = earlier.checked_rem(group.len()).unwrap_or_default();
        group.iter().skip(start).chain(group.iter().take(start)).map(String::as_str)
    };
    let texts = || groups.iter().flat_map(in_turn).filter(|text| !text.trim().is_empty());
    texts().find(|text| Some(text.trim()) != last).or_else(|| texts().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_used_in_turn_and_none_follows_itself() {
        let groups = |own: &[&str], scheme: &[&str]| {
            [own, scheme].map(|group| group.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        let table: [(&[&str], &[&str], &[&str]); 5] = [
            (&["a"], &["x", "y"], &["a", "y", "a", "y", "a"]),
            (&["a", "b"], &["x"], &["a", "b", "a", "b", "a"]),
            (&[], &["x", "y", "z"], &["x", "y", "z", "x", "y"]),
            (&[" "], &["x"], &["x", "x", "x", "x", "x"]),
            (&[], &[], &["", "", "", "", ""]),
        ];
        for (own, scheme, expected) in table {
            let groups = groups(own, scheme);
            let mut last: Option<&str> = None;
            for (earlier, expected) in (0..).zip(expected) {
                let chosen = choose(&groups, last, earlier);
                assert_eq!(chosen.unwrap_or_default(), *expected, "{own:?} {scheme:?} {earlier}");
                last = chosen;
            }
        }
    }
}
