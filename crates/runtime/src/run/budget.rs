//! The budget of a session: its use so far, and the stop when a limit is reached (docs/budgets.md).

use crate::program::event::{Event, Summary};
use crate::program::limits::Budget;
use crate::program::location::EventLocation;
use crate::program::resource::{Resource, ResourceUse};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::lineage;
use crate::run::head::{Head, SessionStatus};
use crate::run::insertion::Insertion;
use crate::run::session::Session;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

impl Head {
    /// The use of each limited resource, as of the newest commit.
    pub fn spent(&self) -> [ResourceUse; 4] {
        Resource::ALL.map(|resource| {
            let used = match resource {
                Resource::Turns => self.turns,
                Resource::ModelCalls => self.model_calls,
                Resource::Tokens => self.tokens_in.saturating_add(self.tokens_out),
                Resource::Minutes => self.ms,
            };
            ResourceUse { resource, used, limit: self.budget.limit(resource) }
        })
    }

    /// Applies a budget that was requested from outside, for this and all later resumes.
    /// Errors: A message with the resource that is already used up.
    pub(crate) fn apply_budget(&mut self, asked: Budget) -> Result<(), Message> {
        let budget = asked.or(self.budget);
        let wider = Self { budget, ..self.clone() };
        let used_up = |spent: &ResourceUse| asked.get(spent.resource).is_some() && spent.is_used_up();
        if let Some(spent) = wider.spent().into_iter().find(used_up) {
            return Err(spent.usage());
        }
        self.budget = budget;
        Ok(())
    }
}

impl Session {
    /// The use of each limited resource until now.
    pub fn resource_use(&self) -> [ResourceUse; 4] {
        Head { ms: self.active_ms(), ..self.head.clone() }.spent()
    }

    /// The value for `--budget` that lets a session continue that stopped because of its budget: `turns=400,tokens=9000`. `None` while
    /// no limit is reached.
    pub fn larger_budget(&self) -> Option<String> {
        let larger: Vec<String> =
            self.resource_use().iter().filter(|spent| spent.is_used_up()).filter_map(ResourceUse::larger).collect();
        if larger.is_empty() { None } else { Some(larger.join(",")) }
    }

    /// Whether a limit is reached, so that there is something to commit before (or instead of) the next turn. The session stops; a
    /// pending answer stays pending. Actions that a trigger inserted finish first: they exist for a person's safety, and their
    /// author limits them.
    pub(crate) fn budget_decides(&mut self, draft: &mut CommitDraft) -> bool {
        let spent = self.resource_use();
        let reached: Vec<&ResourceUse> = spent.iter().filter(|spent| spent.is_used_up()).collect();
        // What runs before the end of a session is finished in any case.
        if reached.is_empty() || self.head.ending.is_some() {
            return false;
        }
        let key = self.frames.leaf();
        let inserted = self.triggered(&key);
        if inserted.is_some() && self.head.overdrawn == inserted {
            return false;
        }
        let place = self.place_of(&key);
        for spent in &reached {
            let used_up = msg!("{} are used", spent.usage());
            let (route, why) = match inserted {
                None => ("stop", used_up),
                Some(_) => ("continue", msg!("{used_up}, but what a trigger inserted finishes first")),
            };
            let from = place.action_id.clone().unwrap_or_default();
            draft.event(&place, Event::BudgetReached { reason: spent.resource.name(), route: route.into(), from, why });
        }
        if inserted.is_some() {
            self.head.overdrawn = inserted;
            return true;
        }
        // An effect that was announced but not started is announced again by the turn that has a budget.
        let due =
            self.frames.get(&key).and_then(|frame| frame.effect.as_ref()).is_some_and(|open| self.is_due(&open.id));
        if due {
            self.close_effect_of(&key, &place, "not started", draft);
        }
        self.status = SessionStatus::Stopped;
        let usage = Message::list(Joint::Comma, reached.iter().map(|spent| spent.usage()));
        let larger = self.larger_budget().unwrap_or_default();
        let reason = msg!(
            "the budget is used up ({}); nothing is lost: resume the session with a larger one, such as `--budget {larger}`",
            usage
        );
        let summary = self.summary(Some(reason));
        draft.event(&EventLocation::default(), Event::SessionStopped { summary });
        true
    }

    /// Whether a limit is reached, and no turn of the action `key` may begin: not if it belongs to what a trigger inserted, which finishes
    /// once [`Session::budget_decides`] has reported that.
    pub(crate) fn is_budget_over(&self, key: &str) -> bool {
        let inserted = self.triggered(key);
        let finishes = inserted.is_some() && self.head.overdrawn == inserted;
        !finishes && self.resource_use().iter().any(ResourceUse::is_used_up)
    }

    /// The key of the outermost frame around `key` that a trigger inserted.
    fn triggered(&self, key: &str) -> Option<String> {
        let by_trigger = |key: &&str| {
            let insertion = self.frames.get(key).and_then(|frame| frame.insertion.as_ref());
            matches!(insertion, Some(Insertion::Triggered { .. }))
        };
        lineage(key).find(by_trigger).map(str::to_owned)
    }

    /// The totals of the session, including the time until now.
    pub(crate) fn summary(&mut self, reason: Option<Message>) -> Summary {
        self.count_time();
        self.head.summary(self.answers, reason)
    }

    /// Applies the budget that this session is started or resumed with.
    /// Errors: The budget is too small to continue.
    pub(crate) fn take_budget(&mut self, asked: Budget) -> Result<(), RunError> {
        self.head.budget = self.head.budget.or(self.program.budget);
        self.head.apply_budget(asked).map_err(|usage| RunError::BudgetTooSmall { id: self.id.clone(), what: usage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_a_server_reports_do_not_overflow() {
        let mut head = Head { tokens_in: 70, tokens_out: 30, ..Head::default() };
        head.count_tokens(u64::MAX, 1);
        head.count_tokens(1, u64::MAX);
        assert_eq!((head.tokens_in, head.tokens_out), (u64::MAX, u64::MAX));
        let tokens = head.spent().into_iter().find(|spent| spent.resource == Resource::Tokens).unwrap();
        assert_eq!(tokens.used, u64::MAX);
    }

    #[test]
    fn tokens_of_prompts_and_replies_count_together() {
        let head = Head { tokens_in: 70, tokens_out: 30, ms: 90_000, turns: 2, model_calls: 3, ..Head::default() };
        let usage = head.spent().map(|spent| spent.usage());
        assert_eq!(usage, ["2 turns", "3 model calls", "100 tokens", "1.5 minutes"]);
        let budget = Budget { tokens: Some(100), ..Budget::default() };
        assert!(
            Head { budget, ..head }
                .spent()
                .iter()
                .any(|spent| spent.resource == Resource::Tokens && spent.is_used_up())
        );
    }

    #[test]
    fn a_larger_budget_keeps_the_other_limits() {
        let budget = Budget { turns: Some(5), tokens: Some(9), ..Budget::default() };
        let mut head = Head { turns: 5, tokens_in: 20, budget, ..Head::default() };
        let asked = |turns| Budget { turns: Some(turns), ..Budget::default() };
        assert_eq!(head.apply_budget(asked(5)).unwrap_err(), "5 of 5 turns");
        assert_eq!(head.budget, budget);
        // That the tokens are used up too is reported by the stop, not by the requested budget.
        assert_eq!(head.apply_budget(asked(6)), Ok(()));
        assert_eq!(head.budget, Budget { turns: Some(6), ..budget });
    }

    #[test]
    fn the_head_of_an_earlier_release_has_no_budget_and_no_time() {
        let stored =
            r#"{"waiting":null,"pending":false,"messages":0,"turns":1,"model_calls":1,"tokens_in":0,"tokens_out":0}"#;
        let head: Head = serde_json::from_str(stored).unwrap();
        assert_eq!((head.ms, head.budget), (0, Budget::default()));
    }
}
