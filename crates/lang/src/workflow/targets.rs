//! Checks the steps that `current_step`, `next`, `cases`, `else` and `on_failure` name.

use std::collections::HashSet;

use crate::message::msg;

use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::Spanned;
use crate::workflow::read::report_unknown;
use crate::workflow::state_file::{END, OnStepFailure, StateFile};
use crate::workflow::status::StepType;

pub(crate) fn check_targets(state: &StateFile, findings: &Findings) {
    let ids: Vec<&str> = state.steps.iter().map(|step| step.id.value.as_str()).collect();
    let known: HashSet<&str> = ids.iter().copied().collect();
    let check = |field: &'static str, target: &Spanned<String>, may_end: bool| {
        if !(known.contains(target.value.as_str()) || may_end && target.value == END) {
            report_unknown(&state.file, findings, (field, target), &ids);
        }
    };
    if let Some(current) = &state.current_step {
        check("current_step", current, false);
    }
    for step in &state.steps {
        if let Some(next) = &step.next {
            check("next", next, true);
        }
        step.cases.iter().for_each(|case| check("next", &case.target, true));
        if let Some(otherwise) = &step.otherwise {
            check("else", otherwise, true);
        }
        if let (Some(_), Some(next), StepType::Condition) = (&step.otherwise, &step.next, step.kind) {
            let message = msg!("`next` has no effect: `else` already says where the workflow goes on");
            let diagnostic = Diagnostic::error("conflicting-fields", message, &state.file, next.span);
            findings.report(diagnostic.with_help("remove `next` or `else`"));
        }
    }
    for step in state.all() {
        if let OnStepFailure::Goto(target) = &step.on_failure {
            check("on_failure", target, false);
        }
    }
}
