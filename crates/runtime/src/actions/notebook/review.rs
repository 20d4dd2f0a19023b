//! `exec: approve`: code that a model or a server wants to run waits for a person, who lets it run, changes it or rejects it
//! (docs/kernel.md, "Review before running").

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_store::content_hash::hash;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::actions::notebook::debug::replace_code;
use crate::actions::notebook::perform::{
    ActionOrigin, CodeProposal, EXEC, PerformStep, PerformedAction, RunningAction, report,
};
use crate::notebook::cell::Cell;
use crate::notebook::effects::quoted;
use crate::notebook::kernel::contract::ExecPolicy;
use crate::program::decision::{DecisionKind, DecisionRequest, RequestKind};
use crate::program::flow::{ActionError, Flow};
use crate::program::interrupted_effects::is_in_chinese;
use crate::program::turn::Turn;

/// The name of the changed code in a decision.
pub const CODE: &str = "code";

/// The maximum size of code that a person is asked about, in bytes. All of it is shown: nobody can approve what they do not see.
const MAX_REVIEW_BYTES: usize = 128 * 1024;

/// The maximum size of the rejected code that is remembered for a comparison, in bytes.
const MAX_REJECTED_BYTES: usize = 16 * 1024;

/// Texts that have less than this in common are shown whole.
const MIN_RATIO: f32 = 0.4;

/// The decisions about code.
const DECISIONS: [DecisionKind; 3] = [DecisionKind::Approve, DecisionKind::Reject, DecisionKind::Edit];

/// Announces that the code of a cell will run, or first asks a person whether it may.
pub(crate) fn announce(turn: &Turn<'_>, cell: &Cell, running: RunningAction) -> PerformStep {
    let is_of_others = cell.written_by.is_some() || running.options.by != ActionOrigin::Script;
    if !is_wanted(turn) || is_approved(cell) || !is_of_others {
        return running.announce();
    }
    let rejected = turn.of_notebook_state(|state| state.rejected_code.clone());
    ask(turn, &cell.content, rejected.as_deref(), running)
}

/// Whether the code of this cell may run only when a person has approved it, wherever the cell comes from.
pub(crate) fn waits_for_approval(turn: &Turn<'_>, cell: &Cell) -> bool {
    cell.written_by.is_some() && !is_approved(cell) && is_wanted(turn)
}

fn is_approved(cell: &Cell) -> bool {
    cell.approved.as_ref() == Some(&hash(&cell.content))
}

/// Asks a person whether the code of a model may replace that of a cell, and run.
pub(crate) fn propose(turn: &Turn<'_>, cell: &Cell, proposal: CodeProposal, running: RunningAction) -> PerformStep {
    let code = proposal.code.clone();
    ask(turn, &code, Some(&cell.content), RunningAction { proposal: Some(proposal), ..running })
}

fn ask(turn: &Turn<'_>, code: &str, before: Option<&str>, running: RunningAction) -> PerformStep {
    if code.len() > MAX_REVIEW_BYTES {
        let error = msg!("the code has more than {MAX_REVIEW_BYTES} bytes: too much for a person to approve");
        return refuse(turn, running, error, vec![]);
    }
    let request = request(turn, code, before);
    let waiting = RunningAction { is_under_review: true, ..running };
    PerformStep::Continue(Flow::Request(Box::new(request)), Box::new(waiting))
}

/// Continues with what a person decided about the code.
pub(crate) async fn decided(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    let mut running = RunningAction { is_under_review: false, ..running };
    let Some(cell) = turn.cell(&running.cell_id).await? else {
        // The turn that would run it reports that it is not there.
        return Ok(running.announce());
    };
    let proposal = running.proposal.take();
    let given = turn.decision.and_then(|given| Some((given.decision?, given)));
    let code = given.and_then(|(_, given)| given.values.get(CODE)?.as_str()).filter(|code| !code.trim().is_empty());
    let approved = match (given, code) {
        (Some((DecisionKind::Approve, _)), _) => None,
        (Some((DecisionKind::Edit, _)), Some(code)) => Some(code.to_owned()),
        // A request that nobody answered is opened again, as after a return to an earlier state.
        (None | Some((DecisionKind::Edit, _)), _) => {
            return Ok(match proposal {
                Some(proposal) => propose(turn, &cell, proposal, running),
                None => announce(turn, &cell, running),
            });
        }
        // The request permits nothing else.
        (Some((_, given)), _) => {
            let code = proposal.map_or_else(|| cell.content.clone(), |proposal| proposal.code);
            return Ok(reject(turn, running, &code, given.comment.as_deref()));
        }
    };
    forget_rejected(turn);
    let cell = match &proposal {
        Some(proposal) => replace_code(turn, cell, proposal, running.fixes),
        None => cell,
    };
    let content = approved.unwrap_or_else(|| cell.content.clone());
    turn.put_cell(Cell { approved: Some(hash(&content)), content, ..cell });
    Ok(running.announce())
}

fn forget_rejected(turn: &Turn<'_>) {
    let mut state = turn.notebook_state();
    if state.rejected_code.take().is_some() {
        turn.set_notebook_state(state);
    }
}

fn reject(turn: &Turn<'_>, running: RunningAction, code: &str, comment: Option<&str>) -> PerformStep {
    let mut state = turn.notebook_state();
    let reason = comment.map(str::trim).filter(|comment| !comment.is_empty());
    let effect = match reason {
        Some(reason) => format!("Rejected code: {}; {}", quoted(code), quoted(reason)),
        None => format!("Rejected code: {}", quoted(code)),
    };
    state.effects.set_current(vec![effect]);
    state.rejected_code = Some(code.to_owned()).filter(|code| code.len() <= MAX_REJECTED_BYTES);
    let effects = state.effects.current.clone();
    turn.set_notebook_state(state);
    refuse(turn, running, Message::word("a person rejected the code, and it did not run"), effects)
}

fn refuse(turn: &Turn<'_>, running: RunningAction, error: Message, effects: Vec<String>) -> PerformStep {
    let done = PerformedAction { rejected: Some("code-rejected"), cell_id: Some(running.cell_id), ..running.so_far };
    let done = done.failed(turn, &running.options, error);
    report(turn, EXEC, running.options.by, &done, effects);
    PerformStep::Done(Box::new(done))
}

/// Whether the project or the script wants people to approve code of models and servers.
pub(crate) fn is_wanted(turn: &Turn<'_>) -> bool {
    let policies = [turn.program.kernel.exec, turn.services.host.kernel.exec_policy()];
    policies.contains(&ExecPolicy::Approve)
}

/// The request for a decision about this code, compared with what it replaces, or with what was rejected before.
fn request(turn: &Turn<'_>, code: &str, before: Option<&str>) -> DecisionRequest {
    let is_chinese = is_in_chinese(turn.program, turn.recent);
    let changes = before.and_then(|before| changes(before, code));
    let question = match (is_chinese, changes.is_some()) {
        (true, false) => "是否运行这段代码？",
        (true, true) => "代码已改写，是否运行？改动如下：",
        (false, false) => "Run this code?",
        (false, true) => "The code was written again. Run it? The changes:",
    };
    // The changes alone would hide what a person who decides now may never have seen.
    let whole = if is_chinese { "全部代码：" } else { "All of the code:" };
    let shown = match changes {
        Some(changes) => format!("{changes}\n\n{whole}\n{code}"),
        None => code.to_owned(),
    };
    let schema =
        json!({ "type": "object", "properties": { CODE: { "type": "string" } }, "additionalProperties": false });
    DecisionRequest {
        kind: RequestKind::Approval,
        prompt: format!("{question}\n{shown}"),
        schema: Some(schema),
        decisions: DECISIONS.to_vec(),
        approvers: vec![],
        due_at: None,
    }
}

/// The changes between two codes; none if they have little in common.
fn changes(before: &str, code: &str) -> Option<String> {
    let difference = TextDiff::from_lines(before, code);
    if before == code || difference.ratio() < MIN_RATIO {
        return None;
    }
    Some(difference.unified_diff().context_radius(3).missing_newline_hint(false).to_string().trim_end().to_owned())
}

/// Whether the values of a decision with this schema are changed code.
pub fn is_about_code(schema: &Value) -> bool {
    schema.pointer("/properties/code").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_with_little_in_common_are_not_compared() {
        let shown = changes("import os\nx = 1\nprint(x)\n", "import os\nx = 2\nprint(x)\n").unwrap();
        assert_eq!(shown, "@@ -1,3 +1,3 @@\n import os\n-x = 1\n+x = 2\n print(x)");
        assert_eq!(changes("a\nb\nc\n", "x\ny\nz\n"), None);
        assert_eq!(changes("a\n", "a\n"), None);
    }
}
