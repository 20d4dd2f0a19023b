//! `parallel`: runs lists of actions, its branches, at the same time.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::read::id;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::yaml::YamlNode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::action::{Action, Branch};
use crate::program::flow::{ActionError, BranchBlock, BranchLimits, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::ProgramSteps;
use crate::program::turn::Turn;
use crate::run::branch_state::BranchEnd;

pub struct ParallelKind;

/// The maximum of `max_parallel`.
const MAX_AT_ONCE: u32 = 100;

/// How many branches run at the same time if the author does not say.
const DEFAULT_AT_ONCE: u32 = 16;

/// The prefix of the names of blocks.
const BLOCK: &str = "branch.";

struct Parallel {
    /// Each comes after those that it depends on.
    branches: Vec<ParallelBranch>,
    limits: BranchLimits,
}

struct ParallelBranch {
    id: String,
    span: Span,
    after: Vec<String>,
    steps: ProgramSteps,
}

/// A branch as written.
struct WrittenBranch<'a> {
    id: Spanned<String>,
    span: Span,
    after: Vec<Spanned<String>>,
    /// Its actions, once they are compiled.
    steps: Option<ProgramSteps>,
    fields: Fields<'a>,
}

/// Whether the branches were started, so that the next turn does not start them again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Started {
    started: bool,
}

impl Kind for ParallelKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "parallel",
            schema: include_str!("../../../../schemas/actions/parallel.json"),
            page: include_str!("../../../../docs/actions/parallel.md"),
            exits: &["exit_criteria_met", "branch_failed"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let items = fields.required_list("branches").unwrap_or_default();
        let mut written: Vec<WrittenBranch<'_>> = items.iter().filter_map(|item| branch(item, fields)).collect();
        let order = order(&written, fields);
        // What a branch sets is known in those that come after it.
        for number in order.clone().unwrap_or_else(|| (0..written.len()).collect()) {
            let Some(branch) = written.get_mut(number) else { continue };
            branch.steps = branch.fields.required_list("actions").map(|nodes| checker.steps(nodes));
        }
        let fail = fields.choice("fail", &["wait", "fast"]);
        let at_once = fields.integer("max_parallel", 1..=MAX_AT_ONCE).unwrap_or(DEFAULT_AT_ONCE);
        let order = order.filter(|_| written.len() == items.len());
        let sorted: Vec<&WrittenBranch<'_>> =
            order.iter().flatten().filter_map(|number| written.get(*number)).collect();
        let number = |id: &str| sorted.iter().position(|branch| branch.id.value == id);
        let before =
            |branch: &&WrittenBranch<'_>| branch.after.iter().filter_map(|after| number(&after.value)).collect();
        let concurrent = sorted.iter().map(before).collect();
        checker.describe(ActionProperties { max_rounds: 1, concurrent, ..ActionProperties::default() });
        let compiled = |branch: &WrittenBranch<'_>| {
            let after = branch.after.iter().map(|after| after.value.clone()).collect();
            let steps = branch.steps.clone()?;
            Some(ParallelBranch { id: branch.id.value.clone(), span: branch.span, after, steps })
        };
        let branches: Option<Vec<ParallelBranch>> = sorted.into_iter().map(compiled).collect();
        written.into_iter().for_each(|branch| branch.fields.finish());
        let branches = branches?;
        let limits =
            BranchLimits { fail_fast: fail == Some("fast"), at_once: usize::try_from(at_once).unwrap_or(usize::MAX) };
        (!branches.is_empty()).then(|| Box::new(Parallel { branches, limits }) as Box<dyn Action>)
    }
}

fn branch<'a>(item: &'a YamlNode, fields: &Fields<'a>) -> Option<WrittenBranch<'a>> {
    let inner = Fields::of(item, "a branch", fields.file(), fields.findings())?;
    let id = id(&inner, "id");
    let after = inner.texts("depends_on").into_iter();
    let after = after.map(|field| Spanned { value: field.text, span: field.node.span }).collect();
    Some(WrittenBranch { id, span: item.span, after, steps: None, fields: inner })
}

/// The numbers of the branches, each after those that it depends on, else as written; `None` if that is not possible. Unknown, repeated
/// and circular ids are reported.
fn order(written: &[WrittenBranch<'_>], fields: &Fields<'_>) -> Option<Vec<usize>> {
    let ids: Vec<&str> = written.iter().map(|branch| branch.id.value.as_str()).collect();
    let mut sound = true;
    for (number, branch) in written.iter().enumerate() {
        let id = &branch.id;
        if ids.iter().take(number).any(|other| *other == id.value) {
            let message = msg!("two branches are called `{}`", id.value);
            fields.error("duplicate-id", message, id.span, "give each branch an id of its own");
            sound = false;
        }
        for after in &branch.after {
            if ids.contains(&after.value.as_str()) && after.value != id.value {
                continue;
            }
            let message = match after.value == id.value {
                true => msg!("the branch `{}` depends on itself", id.value),
                false => msg!("there is no branch `{}` here", after.value),
            };
            let near = near_miss(&after.value, ids.iter().copied().filter(|other| **other != id.value));
            let help = match near {
                Some(near) => msg!("did you mean `{near}`?"),
                None => Message::word("`depends_on` lists ids of other branches of the same action"),
            };
            fields.error("invalid-dependency", message, after.span, help);
            sound = false;
        }
    }
    if !sound {
        return None;
    }
    let mut order: Vec<usize> = Vec::with_capacity(written.len());
    while order.len() < written.len() {
        let is_done = |after: &Spanned<String>| order.iter().any(|done| ids.get(*done) == Some(&after.value.as_str()));
        let mut left = written.iter().enumerate().filter(|(number, _)| !order.contains(number));
        let next = left.clone().find(|(_, branch)| branch.after.iter().all(is_done)).map(|(number, _)| number);
        let Some(next) = next else {
            let circle = Message::names(left.clone().map(|(_, branch)| branch.id.value.as_str()));
            let span = left.find_map(|(_, branch)| branch.after.first()).map_or(fields.span(), |after| after.span);
            let message = msg!("these branches depend on each other: {}", circle);
            fields.error("invalid-dependency", message, span, "remove one of the `depends_on` between them");
            return None;
        };
        order.push(next);
    }
    Some(order)
}

impl ParallelBranch {
    fn block(&self) -> String {
        format!("{BLOCK}{}", self.id)
    }
}

impl Parallel {
    /// The outcome, from what the loop reports about the branches.
    fn outcome(&self, ends: &Outcome) -> Outcome {
        let reported = ends.metadata.get("branches").and_then(Value::as_object);
        let field = |id: &str, name: &str| reported?.get(id)?.get(name)?.as_str().map(str::to_owned);
        let mut names = Map::new();
        let mut failed = None;
        for branch in &self.branches {
            let end = field(&branch.id, "end").and_then(|end| BranchEnd::parse(&end)).unwrap_or(BranchEnd::Failed);
            names.insert(branch.id.clone(), end.name().into());
            if failed.is_none() && end == BranchEnd::Failed {
                let pointer = format!("/metadata/branches/{}/error_message", branch.id);
                let error = ends.messages.get(&pointer).map(|message| message.0.clone());
                let error = error.or_else(|| field(&branch.id, "error_message").map(Message::text));
                failed = Some(match error {
                    Some(error) => msg!("the branch `{}` failed: {error}", branch.id),
                    None => msg!("the branch `{}` failed", branch.id),
                });
            }
        }
        let mut outcome = match &failed {
            None => Outcome::done(ExitReason::ExitCriteriaMet),
            Some(message) => {
                let reason = ExitReason::BranchFailed;
                let mut outcome = Outcome { exit_reason: Some(reason), ..Outcome::failed(message) };
                outcome.metadata.insert("exit_reason".into(), reason.name().into());
                outcome
            }
        };
        outcome.metadata.insert("branches".into(), names.into());
        outcome
    }
}

#[async_trait]
impl Action for Parallel {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let before: Started = turn.state()?;
        if let Some(ends) = turn.entered.filter(|_| before.started) {
            return Ok(Flow::done(self.outcome(ends)));
        }
        turn.store_state(&Started { started: true })?;
        let blocks = self.branches.iter().map(|branch| BranchBlock {
            id: branch.id.clone(),
            block: branch.block(),
            after: branch.after.clone(),
        });
        Ok(Flow::Branch(blocks.collect(), self.limits))
    }

    fn branches(&self) -> Vec<Branch<'_>> {
        let branches = self.branches.iter().map(|branch| Branch {
            name: branch.id.clone(),
            when: None,
            span: branch.span,
            steps: Some(&branch.steps),
            goto: None,
            sets: false,
            after: &branch.after,
        });
        branches.collect()
    }

    fn runs_all_branches(&self) -> bool {
        true
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }

    fn blocks(&self) -> Vec<&ProgramSteps> {
        self.branches.iter().map(|branch| &branch.steps).collect()
    }

    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        let id = block.strip_prefix(BLOCK)?;
        self.branches.iter().find(|branch| branch.id == id).map(|branch| &branch.steps)
    }
}
