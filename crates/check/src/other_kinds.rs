//! Records the skill calls of actions whose kinds the project defines.

use crate::checker::Checker;
use crate::collected::{CallBy, CollectedCall};
use bcc_lang::source::span::{Span, Spanned};
use bcc_runtime::program::custom::{CustomBody, CustomKind};
use bcc_runtime::program::kind::SkillArgument;

impl Checker<'_> {
    /// Records that the innermost action runs a kind of the project. `given`: the inputs and outputs that its author wrote;
    /// `None` if they, and whether the kind runs, are only known at run time.
    pub(crate) fn runs_kind(&mut self, kind: &CustomKind, given: Option<(Vec<SkillArgument>, Vec<Spanned<String>>)>) {
        let at = self.position();
        // The id of the skill is in the configuration; report at the name of the kind.
        let action = self.enclosing.last().and_then(|number| self.collected.actions.get(*number));
        let span = action.map_or(Span::default(), |action| action.kind.span);
        let (is_known, mut given) = (given.is_some(), given);
        for body in kind.parts() {
            let CustomBody::Skill(skill) = body else { continue };
            let own = std::ptr::eq(body, &kind.body);
            let by = match (is_known, own) {
                (true, true) => CallBy::Kind,
                (true, false) => CallBy::Hook,
                (false, _) => CallBy::Maybe,
            };
            let (inputs, outputs) = given.take_if(|_| own).unwrap_or_default();
            let skill = Spanned { value: skill.clone(), span };
            self.collected.calls.push(CollectedCall { by: by(kind.name.clone()), skill, inputs, outputs, at });
        }
    }
}
