//! Kinds that the project makes, where an action runs one.

use crate::checker::Checker;
use crate::collected::{CallBy, CallFact};
use bcc_lang::source::span::{Span, Spanned};
use bcc_runtime::program::custom::{CustomBody, CustomKind};
use bcc_runtime::program::kind::SkillArgument;

impl Checker<'_> {
    /// The innermost action runs a kind of the project. `given`: what its author gives to it and takes from it; none when
    /// nobody knows before it runs, and when it runs at all is not known either.
    pub(crate) fn runs_kind(&mut self, kind: &CustomKind, given: Option<(Vec<SkillArgument>, Vec<Spanned<String>>)>) {
        let at = self.here();
        // The id of the skill stands in the configuration; here it is the name of the kind that leads to it.
        let action = self.inside.last().and_then(|number| self.seen.actions.get(*number));
        let span = action.map_or(Span::default(), |action| action.kind.span);
        let (seen, mut given) = (given.is_some(), given);
        for does in kind.parts() {
            let CustomBody::Skill(skill) = does else { continue };
            let own = std::ptr::eq(does, &kind.does);
            let by = match (seen, own) {
                (true, true) => CallBy::Kind,
                (true, false) => CallBy::Hook,
                (false, _) => CallBy::Maybe,
            };
            let (inputs, outputs) = given.take_if(|_| own).unwrap_or_default();
            let skill = Spanned { value: skill.clone(), span };
            self.seen.calls.push(CallFact { by: by(kind.name.clone()), skill, inputs, outputs, at });
        }
    }
}
