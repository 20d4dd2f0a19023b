//! The resources that a budget limits: turns, model calls, tokens and active minutes (docs/language.md).

use crate::program::limits::Budget;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

pub(crate) const MINUTE_MS: u64 = 60_000;

/// A resource that a session uses. Amounts are whole numbers; those of [`Resource::Minutes`] are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Turns,
    /// Model calls, including those of monitors.
    ModelCalls,
    /// Tokens of prompts and replies together, as far as providers count them.
    Tokens,
    /// The time during which a process runs the session.
    Minutes,
}

impl Resource {
    /// All resources, in the order in which they are reported.
    pub const ALL: [Self; 4] = [Self::Turns, Self::ModelCalls, Self::Tokens, Self::Minutes];

    /// The name in scripts, on the command line, and as the reason of a `budget_reached`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::ModelCalls => "model_calls",
            Self::Tokens => "tokens",
            Self::Minutes => "minutes",
        }
    }

    /// The amount of one unit as authors write it.
    pub const fn unit(self) -> u64 {
        match self {
            Self::Minutes => MINUTE_MS,
            Self::Turns | Self::ModelCalls | Self::Tokens => 1,
        }
    }

    /// Formats an amount for people; minutes with one decimal place, never rounded up.
    pub fn number(self, amount: u64) -> String {
        let (units, tenths) = (amount / self.unit(), amount % self.unit() * 10 / self.unit());
        if tenths == 0 { units.to_string() } else { format!("{units}.{tenths}") }
    }
}

/// The use of a resource and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUse {
    pub resource: Resource,
    pub used: u64,
    /// The limit, if there is one.
    pub limit: Option<u64>,
}

impl ResourceUse {
    /// Whether the limit is reached.
    pub(crate) fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.used >= limit)
    }

    /// The remaining amount, if there is a limit.
    pub fn left(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.used))
    }

    /// `12 of 200 turns`, or `12 turns` where nothing limits them.
    pub fn usage(&self) -> Message {
        let used = self.resource.number(self.used);
        let limit = self.limit.map(|limit| self.resource.number(limit));
        match (self.resource, limit) {
            (Resource::Turns, None) if used == "1" => msg!("1 turn"),
            (Resource::ModelCalls, None) if used == "1" => msg!("1 model call"),
            (Resource::Tokens, None) if used == "1" => msg!("1 token"),
            (Resource::Minutes, None) if used == "1" => msg!("1 minute"),
            (Resource::Turns, Some(limit)) => msg!("{used} of {limit} turns"),
            (Resource::Turns, None) => msg!("{used} turns"),
            (Resource::ModelCalls, Some(limit)) => msg!("{used} of {limit} model calls"),
            (Resource::ModelCalls, None) => msg!("{used} model calls"),
            (Resource::Tokens, Some(limit)) => msg!("{used} of {limit} tokens"),
            (Resource::Tokens, None) => msg!("{used} tokens"),
            (Resource::Minutes, Some(limit)) => msg!("{used} of {limit} minutes"),
            (Resource::Minutes, None) => msg!("{used} minutes"),
        }
    }

    /// The value for `--budget` that adds the same limit again: `turns=400`.
    pub fn larger(&self) -> Option<String> {
        let limit = self.limit?;
        let more = self.used.max(limit).saturating_add(limit).div_ceil(self.resource.unit());
        Some(format!("{}={more}", self.resource.name()))
    }
}

impl Budget {
    /// The limit of `resource`, in the unit that authors write.
    pub const fn get(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::Turns => self.turns,
            Resource::ModelCalls => self.model_calls,
            Resource::Tokens => self.tokens,
            Resource::Minutes => self.minutes,
        }
    }

    /// The limit of `resource` as an amount.
    pub fn limit(&self, resource: Resource) -> Option<u64> {
        Some(self.get(resource)?.saturating_mul(resource.unit()))
    }

    /// These limits, with missing ones taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            turns: self.turns.or(other.turns),
            model_calls: self.model_calls.or(other.model_calls),
            tokens: self.tokens.or(other.tokens),
            minutes: self.minutes.or(other.minutes),
        }
    }

    /// Parses the values of `--budget`, which may be given several times: `turns=400`, `tokens=90000,minutes=30`.
    /// Errors: A message with the part that cannot be read and the accepted form.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, Message> {
        let mut budget = Self::default();
        for part in texts.into_iter().flat_map(|text| text.split([',', '，'])) {
            let names = || Message::list(Joint::Item, Resource::ALL.map(|resource| Message::text(resource.name())));
            let (name, number) = part.split_once('=').ok_or_else(|| {
                msg!("`--budget {part}` has no `=`: write NAME=NUMBER, where NAME is one of {names}", names = names())
            })?;
            let (name, number) = (name.trim(), number.trim());
            let limit = number.parse::<u64>().ok().filter(|limit| *limit > 0);
            let limit =
                limit.ok_or_else(|| msg!("`{number}` in `--budget {part}` is not a whole number greater than 0"))?;
            let place = match name {
                "turns" => &mut budget.turns,
                "model_calls" => &mut budget.model_calls,
                "tokens" => &mut budget.tokens,
                "minutes" => &mut budget.minutes,
                _ => {
                    return Err(msg!(
                        "`{name}` in `--budget {part}` is not something a budget can limit: it must be one of {names}",
                        names = names()
                    ));
                }
            };
            if place.replace(limit).is_some() {
                return Err(msg!("`--budget` sets `{name}` twice"));
            }
        }
        Ok(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_read_from_the_command_line() {
        let budget = Budget::parse(["turns=400", "model_calls = 7,tokens=90000，minutes=30"]).unwrap();
        let expected = Budget { turns: Some(400), model_calls: Some(7), tokens: Some(90_000), minutes: Some(30) };
        assert_eq!(budget, expected);
        assert_eq!(Budget::parse([]).unwrap(), Budget::default());
        let wrong = [
            ("turns", "has no `=`: write NAME=NUMBER, where NAME is one of turns, model_calls, tokens, minutes"),
            ("turns=many", "`many` in `--budget turns=many` is not a whole number greater than 0"),
            ("turns=0", "greater than 0"),
            ("turns=-1", "greater than 0"),
            ("turn=4", "`turn` in `--budget turn=4` is not something a budget can limit: it must be one of turns"),
            ("turns=4,turns=5", "`--budget` sets `turns` twice"),
            ("turns=4,", "no `=`"),
        ];
        for (text, expected) in wrong {
            let error = Budget::parse([text]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn the_remaining_amount_is_reported_in_the_units_of_authors() {
        let spent = |resource, used, limit| ResourceUse { resource, used, limit };
        let table = [
            (spent(Resource::Turns, 12, Some(200)), "12 of 200 turns", Some(188), false, Some("turns=400")),
            (spent(Resource::Turns, 200, Some(200)), "200 of 200 turns", Some(0), true, Some("turns=400")),
            (spent(Resource::ModelCalls, 3, None), "3 model calls", None, false, None),
            (spent(Resource::ModelCalls, 1, None), "1 model call", None, false, None),
            (spent(Resource::Tokens, 950, Some(500)), "950 of 500 tokens", Some(0), true, Some("tokens=1450")),
            (
                spent(Resource::Minutes, 89_999, Some(120_000)),
                "1.4 of 2 minutes",
                Some(30_001),
                false,
                Some("minutes=4"),
            ),
            (spent(Resource::Minutes, 150_001, Some(120_000)), "2.5 of 2 minutes", Some(0), true, Some("minutes=5")),
        ];
        for (spent, text, left, used_up, larger) in table {
            assert_eq!(spent.usage(), text);
            assert_eq!(
                (spent.left(), spent.is_used_up(), spent.larger().as_deref()),
                (left, used_up, larger),
                "{text}"
            );
        }
    }

    #[test]
    fn a_limit_that_overflows_is_no_limit_and_does_not_panic() {
        let budget = Budget { minutes: Some(u64::MAX), ..Budget::default() };
        assert_eq!(budget.limit(Resource::Minutes), Some(u64::MAX));
        let spent = ResourceUse { resource: Resource::Turns, used: u64::MAX, limit: Some(u64::MAX) };
        assert!(spent.larger().is_some());
    }
}
