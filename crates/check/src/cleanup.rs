//! `finally`, `compensate` and `on_failure`: walks the actions that clean up, and turns `on_failure` into routes (docs/failures.md).

use std::sync::Arc;

use bcc_lang::message::msg;

use crate::checker::Checker;
use bcc_lang::script::route_parser::{OnExit, WrittenRoute};
use bcc_lang::script::script::RawAction;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_runtime::program::kind::Kind;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::program::ProgramSteps;

/// The two fields whose actions clean up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    Finally,
    Compensate,
}

impl Cleanup {
    /// The name of the field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finally => "finally",
            Self::Compensate => "compensate",
        }
    }
}

/// The reasons among `exits` that fail the session without a route, and `error`.
fn failing_reasons(exits: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    let fails = |name: &&'static str| ExitReason::parse(name).is_some_and(ExitReason::fails);
    exits.iter().copied().filter(fails).chain([ExitReason::Error.name()])
}

/// Whether actions of this kind can have the option `name` next to `config`. `on_failure` is for those that can fail by themselves.
pub(crate) fn has_option(kind: &dyn Kind, name: &str) -> bool {
    let can_fail = || failing_reasons(kind.exits()).count() > 1;
    kind.step_options().contains(&name) || name == "on_failure" && can_fail()
}

impl Checker<'_> {
    /// Walks the actions of a `finally` or a `compensate`, which are a list of their own.
    pub(crate) fn cleanup(&mut self, actions: &[RawAction], cleanup: Cleanup) -> Option<ProgramSteps> {
        if actions.is_empty() {
            return Some(Arc::default());
        }
        self.blocks += 1;
        let list = std::mem::replace(&mut self.block, self.blocks);
        self.collected.cleanup_blocks.insert(self.block, cleanup);
        let outer = self.cleanup.replace(cleanup);
        let steps: Vec<_> = actions.iter().map(|raw| self.step(raw)).collect();
        self.cleanup = outer;
        self.block = list;
        steps.into_iter().collect::<Option<Vec<_>>>().map(Arc::new)
    }

    /// The routes of an action: those of its `on_exit`, and those that its `on_failure` is short for.
    pub(crate) fn with_failure_routes(&mut self, raw: &RawAction, number: usize) -> Option<OnExit> {
        let kind = self.kinds.iter().copied().find(|kind| kind.name() == raw.kind.value);
        let Some((target, kind)) =
            raw.options.on_failure.as_ref().zip(kind).filter(|(_, kind)| has_option(*kind, "on_failure"))
        else {
            return raw.on_exit.clone();
        };
        let described = self.collected.actions.get(number).and_then(|action| action.described.as_ref());
        let exits = described.and_then(|described| described.exits).unwrap_or(kind.exits());
        let mut routes = raw.on_exit.as_ref().map(|table| table.routes.clone()).unwrap_or_default();
        for reason in failing_reasons(exits) {
            let Some(written) = routes.iter().find(|route| route.reason.value == reason) else {
                routes.push(WrittenRoute {
                    reason: Spanned { value: reason.to_owned(), span: target.span },
                    set: None,
                    insert: None,
                    then: Some(target.clone()),
                    span: target.span,
                });
                continue;
            };
            let is_same = written.set.is_none()
                && written.insert.is_none()
                && written.then.as_ref().is_some_and(|then| then.value == target.value);
            if !is_same {
                let message = msg!("`on_failure` and the route for `{reason}` in `on_exit` say different things");
                let help = "keep one of them: `on_failure` is short for the routes of all reasons for which the action can fail";
                let diagnostic = Diagnostic::error("conflicting-fields", message, self.file, target.span);
                let diagnostic = diagnostic.with_help(help).with_related("the route", self.file, written.span);
                self.findings.report(diagnostic);
            }
        }
        Some(OnExit { routes })
    }
}
