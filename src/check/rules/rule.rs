//! What a rule is.

use crate::check::facts::Facts;
use crate::script::findings::Findings;

/// One rule: it looks at what the walk over a document saw and reports what it finds wrong, each under its own slug.
///
/// A rule speaks only where it is sure, and is silent about what was reported already: [`Facts::whole`] says whether
/// something is missing from the facts, [`crate::check::facts::ActionFact::sound`] whether an action was read to its end.
pub trait Rule: Sync {
    /// The slugs that it reports.
    fn slugs(&self) -> &'static [&'static str];

    /// Whether a script that breaks it cannot be run, so that `run` asks it too. Such a rule reports errors.
    fn essential(&self) -> bool {
        false
    }

    /// Looks.
    fn check(&self, facts: &Facts<'_>, findings: &Findings);
}
