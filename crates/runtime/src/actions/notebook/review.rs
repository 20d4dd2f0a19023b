//! `exec: approve`: code that a model or a server wants to run waits for a person, who lets it run, changes it or rejects it
//! (docs/kernel.md, "Review before running").

use serde_json::{Value, json};
use similar::TextDiff;

use crate::actions::notebook::perform::{ActionOrigin, EXEC, PerformStep, PerformedAction, RunningAction, report};
use crate::notebook::cell::Cell;
use crate::notebook::effects::quoted;
use crate::notebook::kernel::contract::ExecPolicy;
use crate::program::decision::{DecisionKind, DecisionRequest, RequestKind};
use crate::program::flow::{ActionError, Flow};
use crate::program::interrupted_effects::is_in_chinese;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;

/// The name of the changed code in a decision.
pub const CODE: &str = "code";

/// The maximum number of characters of the code in the text for those who decide.
const MAX_CODE_CHARS: usize = 64 * 1024;

/// The maximum size of the rejected code that is remembered for a comparison, in bytes.
const MAX_REJECTED_BYTES: usize = 16 * 1024;

/// Texts that have less than this in common are shown whole.
const MIN_RATIO: f32 = 0.4;

/// The decisions about code.
const DECISIONS: [DecisionKind; 3] = [DecisionKind::Approve, DecisionKind::Reject, DecisionKind::Edit];

/// Announces that the code of a cell will run, or first asks a person whether it may. `before` is the code that it replaces.
pub(crate) fn announce(turn: &Turn<'_>, cell: &Cell, running: RunningAction, before: Option<&str>) -> PerformStep {
    if !is_needed(turn, &running) {
        return running.announce();
    }
    let rejected = turn.notebook_state().rejected_code;
    let request = request(turn, &cell.content, before.or(rejected.as_deref()));
    let waiting = RunningAction { is_under_review: true, ..running };
    PerformStep::Continue(Flow::Request(Box::new(request)), Box::new(waiting))
}

/// Continues with what a person decided about the code.
pub(crate) async fn decided(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    let Some(cell) = turn.cell(&running.cell_id).await? else {
        return Ok(running.announce());
    };
    // A request that nobody answered is opened again, as after a return to an earlier state.
    let Some(given) = turn.decision else { return Ok(announce(turn, &cell, running, None)) };
    let code = given.values.get(CODE).and_then(|code| code.as_str()).filter(|code| !code.trim().is_empty());
    let running = RunningAction { is_under_review: false, ..running };
    match (given.decision, code) {
        (Some(DecisionKind::Approve), _) => {
            forget_rejected(turn);
            Ok(running.announce())
        }
        (Some(DecisionKind::Edit), Some(code)) => {
            forget_rejected(turn);
            turn.put_cell(Cell { content: code.to_owned(), ..cell });
            Ok(running.announce())
        }
        (Some(DecisionKind::Edit), None) => Ok(announce(turn, &cell, running, None)),
        // The request permits nothing else.
        _ => Ok(reject(turn, running, &cell, given.comment.as_deref())),
    }
}

fn forget_rejected(turn: &Turn<'_>) {
    let mut state = turn.notebook_state();
    if state.rejected_code.take().is_some() {
        turn.set_notebook_state(state);
    }
}

fn reject(turn: &Turn<'_>, running: RunningAction, cell: &Cell, comment: Option<&str>) -> PerformStep {
    let mut state = turn.notebook_state();
    let reason = comment.map(str::trim).filter(|comment| !comment.is_empty());
    let effect = match reason {
        Some(reason) => format!("Rejected code: {}; {}", quoted(&cell.content), quoted(reason)),
        None => format!("Rejected code: {}", quoted(&cell.content)),
    };
    state.effects.set_current(vec![effect]);
    state.rejected_code = Some(cell.content.clone()).filter(|code| code.len() <= MAX_REJECTED_BYTES);
    let effects = state.effects.current.clone();
    turn.set_notebook_state(state);
    let done = PerformedAction { rejected: Some("code-rejected"), cell_id: Some(running.cell_id), ..running.so_far };
    let done = done.failed(turn, &running.options, "a person rejected the code, and it did not run");
    report(turn, EXEC, running.options.by, &done, effects);
    PerformStep::Done(Box::new(done))
}

fn is_needed(turn: &Turn<'_>, running: &RunningAction) -> bool {
    let is_written_by_model = running.options.by != ActionOrigin::Script || running.fixes > 0;
    let policies = [turn.program.kernel.exec, turn.services.host.kernel.exec_policy()];
    is_written_by_model && policies.contains(&ExecPolicy::Approve)
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
    let shown = changes.unwrap_or_else(|| code.to_owned());
    let schema =
        json!({ "type": "object", "properties": { CODE: { "type": "string" } }, "additionalProperties": false });
    DecisionRequest {
        kind: RequestKind::Approval,
        prompt: format!("{question}\n{}", cut_in_the_middle(&shown, MAX_CODE_CHARS)),
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
