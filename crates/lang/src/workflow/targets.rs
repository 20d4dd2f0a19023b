//! Checks the steps that `current_step`, `next`, `cases`, `else` and `on_failure` name.

use std::collections::HashSet;

use crate::message::msg;

use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::Spanned;
use crate::workflow::fields::report_unknown;
use crate::workflow::state_file::{END, OnStepFailure, StateFile, StateStep};
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
    for step in &state.steps {
        if let OnStepFailure::Goto(target) = &step.on_failure {
            check("on_failure", target, false);
        }
        for task in &step.sub_tasks {
            let OnStepFailure::Goto(target) = &task.on_failure else { continue };
            let message = msg!("a sub task cannot go on at another step");
            let help = "write `on_failure` in the step, which fails when a sub task fails";
            findings.report(Diagnostic::error("conflicting-fields", message, &state.file, target.span).with_help(help));
        }
    }
}

/// Removes what was reported, so that the check of the script does not report it again.
pub(crate) fn drop_unknown(state: &mut StateFile) {
    let known: HashSet<String> = state.steps.iter().map(|step| step.id.value.clone()).collect();
    let is_known = |target: &Spanned<String>| target.value == END || known.contains(&target.value);
    for step in &mut state.steps {
        step.next.take_if(|next| !is_known(next));
        step.otherwise.take_if(|otherwise| !is_known(otherwise));
        for case in step.cases.iter_mut().filter(|case| !is_known(&case.target)) {
            END.clone_into(&mut case.target.value);
        }
        for task in &mut step.sub_tasks {
            task.next = None;
            drop_failure_target(task, |_| false);
        }
        drop_failure_target(step, |target| target.value != END && is_known(target));
    }
}

fn drop_failure_target(step: &mut StateStep, is_valid: impl Fn(&Spanned<String>) -> bool) {
    if matches!(&step.on_failure, OnStepFailure::Goto(target) if !is_valid(target)) {
        step.on_failure = OnStepFailure::Stop;
    }
}
