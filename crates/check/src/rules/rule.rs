//! The type of rules.

use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;

/// A rule checks the semantic model of a document and reports problems, each under its own slug.
///
/// A rule reports only what is certain and was not reported before: [`SemanticModel::is_complete`] tells whether the model
/// is complete, [`crate::collected::CollectedAction::sound`] whether an action could be read completely.
pub struct Rule {
    /// The slugs of its findings.
    pub slugs: &'static [&'static str],
    /// Whether `run` applies it too. Such a rule reports errors that prevent a start: a name, an id or a skill that does not
    /// exist. A script that can start but certainly fails later is an error only for `validate`, so that parts of it can run.
    pub essential: bool,
    pub check: fn(&SemanticModel<'_>, &Findings),
}
