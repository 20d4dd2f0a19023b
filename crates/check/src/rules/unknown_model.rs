//! `unknown-model`: a script specifies a model that the project's configuration does not have.

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use std::collections::BTreeSet;

const SLUG: &str = "unknown-model";

/// The models that exist without a configuration.
const BUILT_IN: [&str; 2] = ["default", "offline"];

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let (Some(models), Some(requested)) = (model.models, model.script.and_then(|script| script.model.as_ref())) else {
        return;
    };
    let name = requested.value.as_str();
    if BUILT_IN.contains(&name) || models.iter().any(|known| known == name) {
        return;
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
    let diagnostic = Diagnostic::warning(SLUG, message, model.file, requested.span).with_help(help);
    findings.report(diagnostic.with_replacement(near));
}
