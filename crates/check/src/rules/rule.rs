//! What a rule is.

use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;

/// One rule: it looks at what the walk over a document saw and reports what it finds wrong, each under its own slug.
///
/// A rule speaks only where it is sure, and is silent about what was reported already: [`SemanticModel::whole`] says whether
/// something is missing from the facts, [`crate::collected::ActionFact::sound`] whether an action was read to its end.
pub struct Rule {
    /// What it reports under.
    pub slugs: &'static [&'static str],
    /// Whether `run` asks it too. Such a rule reports errors that leave nothing to run: a name, an id or a skill that is nowhere. What can
    /// begin, and then surely fails where it gets to, is an error of `validate` alone: whoever runs a script in parts can go on.
    pub essential: bool,
    pub check: fn(&SemanticModel<'_>, &Findings),
}
