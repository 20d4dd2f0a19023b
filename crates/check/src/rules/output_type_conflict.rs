//! `output-type-conflict`: an output has a type or values that its variable does not allow, so it would never be written.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use crate::collected::CollectedOutput;
use crate::listing::values;
use crate::name_table::NearestDeclarations;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::value::declared::DeclaredType;

pub static RULE: Rule = Rule { slugs: &["output-type-conflict"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let mut declarations = NearestDeclarations::of(model.names(), &model.collected);
    for entry in &model.collected.outputs {
        let Some((message, help)) = conflict(entry) else { continue };
        let mut diagnostic = Diagnostic::error("output-type-conflict", message, model.file, entry.span).with_help(help);
        if let Some(declaration) = declarations.nearest(&entry.output.get, entry.at.body) {
            diagnostic = diagnostic.with_related("declared here", model.file, declaration.span);
        }
        findings.report(diagnostic);
    }
}

/// The conflict of an output with its declaration: the message and the help.
fn conflict(entry: &CollectedOutput) -> Option<(Message, Message)> {
    let (declared, choices) = entry.declared.as_ref()?;
    let (output, name) = (&entry.output, shortened(&entry.output.get));
    if output.append {
        let declared = declared.filter(|declared| *declared != DeclaredType::List)?;
        let message =
            msg!("`append` adds to a list, but `{name}` is declared as {}: nothing would be written", declared.name());
        return Some((message, msg!("declare it with `type: list`, or remove `append`")));
    }
    if let (Some(asked), Some(declared)) = (output.declared, declared)
        && !can_coerce(asked, *declared)
    {
        let (asked, declared) = (asked.name(), declared.name());
        let message =
            msg!("this output has type {asked}, but `{name}` is declared as {declared}: nothing would be written");
        let help =
            msg!("omit `type` here, so that the output takes {declared} from the declaration; or change one of them");
        return Some((message, help));
    }
    if choices.is_empty() {
        return None;
    }
    let is_allowed = |choice: &&Value| {
        let value = declared.map_or_else(|| Some((*choice).clone()), |declared| declared.coerce(choice));
        choice.is_null() || value.is_some_and(|value| choices.contains(&value))
    };
    let rejected: Vec<Value> = output.choices.iter().filter(|choice| !is_allowed(choice)).cloned().collect();
    if rejected.is_empty() {
        return None;
    }
    let message = msg!(
        "the declared `enum` of `{name}` does not contain {}: such a value would never be written",
        values(&rejected)
    );
    let help = "omit `enum` here, so that the output uses the one in the declaration; or add the missing values there";
    Some((message, Message::word(help)))
}

/// Whether some value of the type `output` can be coerced to `declared` without loss (docs/replies.md).
fn can_coerce(output: DeclaredType, declared: DeclaredType) -> bool {
    use DeclaredType::{Boolean, Date, Integer, List, Number, Object, String};
    match declared {
        String => !matches!(output, List | Object),
        Number | Integer => matches!(output, Number | Integer | String),
        Boolean => matches!(output, Boolean | String),
        Date => matches!(output, Date | String),
        List => output == List,
        Object => output == Object,
    }
}
