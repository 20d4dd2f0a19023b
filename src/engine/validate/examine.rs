//! The check of one document. This is the one place of `validate` that calls it.

use std::sync::Arc;

use crate::check::check::{Against, check};
use crate::source::diagnostic::Diagnostic;
use crate::source::text::SourceFile;

/// Everything that is wrong with a document. `named`: somebody asked for this very file.
pub fn examine(file: &Arc<SourceFile>, against: &Against<'_>, named: bool) -> Vec<Diagnostic> {
    let (_, mut diagnostics) = check(file, against);
    if !named {
        // Skills, tests and workflow files are sound where they lie; they are only no scripts.
        diagnostics.retain(|diagnostic| diagnostic.rule != "not-a-session");
    }
    diagnostics
}
