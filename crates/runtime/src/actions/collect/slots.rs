//! The slots of a `collect`: what each of them asks for, when, and whether its value must be confirmed (docs/actions/collect.md).

use crate::program::kind::KindChecker;
use crate::program::output::OutputVariable;
use bcc_lang::expr::parse::Expr;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::template::text::Text;

/// When the person confirms the value of a slot before it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenToConfirm {
    Never,
    /// When it replaces another value.
    Changed,
    Always,
}

/// One thing to collect.
pub(crate) struct CollectSlot {
    pub(crate) output: OutputVariable,
    /// How to ask for it.
    pub(crate) ask: Option<Text>,
    pub(crate) confirm: WhenToConfirm,
    /// It is asked only while this holds.
    pub(crate) when: Option<Expr>,
}

impl CollectSlot {
    pub(crate) fn name(&self) -> &str {
        &self.output.get
    }

    /// Whether a new value must be confirmed, if the slot has or has not got one.
    pub(crate) fn must_be_confirmed(&self, has_value: bool) -> bool {
        match self.confirm {
            WhenToConfirm::Never => false,
            WhenToConfirm::Changed => has_value,
            WhenToConfirm::Always => true,
        }
    }
}

/// What a slot has beyond the output that it is.
pub(crate) struct SlotFields {
    ask: Option<Text>,
    confirm: WhenToConfirm,
    when: Option<Expr>,
}

impl SlotFields {
    pub(crate) fn with_output(self, output: OutputVariable) -> CollectSlot {
        let Self { ask, confirm, when } = self;
        CollectSlot { output, ask, confirm, when }
    }
}

/// Reads what `slots` has beyond outputs, whose names are known already. `None`, with a report, if something is wrong.
pub(crate) fn slot_fields(
    fields: &Fields<'_>,
    verbatim: bool,
    checker: &mut dyn KindChecker,
) -> Option<Vec<SlotFields>> {
    let list = "slots";
    let mut slots = Vec::new();
    let mut is_valid = true;
    for item in fields.list(list)? {
        // An item that is no mapping was reported with the outputs.
        if item.as_mapping().is_none() {
            is_valid = false;
            continue;
        }
        let inner = Fields::of(item, msg!("an item of `{list}`"), fields.file(), fields.findings())?;
        let asked = inner.text("ask");
        if verbatim && asked.is_none() {
            let name = inner.text("get").map(|field| field.text).unwrap_or_default();
            let message = msg!("the slot `{name}` has no `ask`, which `delivery: verbatim` says word for word");
            inner.error("missing-key", message, inner.span(), "add `ask:` with the question");
            is_valid = false;
        }
        let ask = asked.as_ref().map(|field| checker.text(field));
        let when = inner.text("when").map(|field| checker.expression(&field));
        is_valid &= !matches!(ask, Some(None)) && !matches!(when, Some(None));
        let confirm = match inner.choice("confirm", &["never", "changed", "always"]) {
            Some("changed") => WhenToConfirm::Changed,
            Some("always") => WhenToConfirm::Always,
            _ => WhenToConfirm::Never,
        };
        slots.push(SlotFields { ask: ask.flatten(), confirm, when: when.flatten() });
    }
    is_valid.then_some(slots)
}
