//! `unknown-model`: a script or a template specifies a model that the project's configuration does not have.

use std::sync::Arc;

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use std::collections::BTreeSet;

const SLUG: &str = "unknown-model";

/// The models that exist without a configuration.
const BUILT_IN: [&str; 2] = ["default", "offline"];

/// The start of the name of a recording, which replaces a model.
const REPLAY: &str = "replay:";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let (Some(models), Some(requested)) = (model.models, model.script.and_then(|script| script.model.as_ref())) else {
        return;
    };
    findings.extend(unknown_model(&requested.value, models, model.file, requested.span));
}

/// The finding about the name of a model at `span`, if the project has no model of that name.
pub(crate) fn unknown_model(name: &str, models: &[String], file: &Arc<SourceFile>, span: Span) -> Option<Diagnostic> {
    if BUILT_IN.contains(&name) || name.starts_with(REPLAY) || models.iter().any(|known| known == name) {
        return None;
    }
    let known = || models.iter().map(String::as_str).chain(BUILT_IN);
    let near = near_miss(name, known());
    let help = match near {
        Some(near) => msg!("did you mean `{near}`?"),
        None => {
            let listed = Message::names(known().collect::<BTreeSet<_>>());
            msg!("configure it in bcc-script.toml under `[models.{name}]`, or use an available one: {listed}")
        }
    };
    let message = msg!("there is no model `{}` in this project", shortened(name));
    Some(Diagnostic::warning(SLUG, message, file, span).with_help(help).with_replacement(near))
}
