//! `output-type-conflict`: an output asks for what its variable cannot hold, so that it would never be written.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use crate::collected::OutputFact;
use crate::listing::values;
use crate::name_table::NearestDeclarations;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::value::declared::DeclaredType;

pub static RULE: Rule = Rule { slugs: &["output-type-conflict"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let mut declarations = NearestDeclarations::of(facts.names(), &facts.seen);
    for fact in &facts.seen.outputs {
        let Some((message, help)) = conflict(fact) else { continue };
        let mut diagnostic = Diagnostic::error("output-type-conflict", message, facts.file, fact.span).with_help(help);
        if let Some(declaration) = declarations.nearest(&fact.output.get, fact.at.body) {
            diagnostic = diagnostic.with_related("declared here", facts.file, declaration.span);
        }
        findings.report(diagnostic);
    }
}

/// What is wrong with an output, and what to do.
fn conflict(fact: &OutputFact) -> Option<(Message, Message)> {
    let (declared, choices) = fact.declared.as_ref()?;
    let (output, name) = (&fact.output, shortened(&fact.output.get));
    if output.append {
        let declared = declared.filter(|declared| *declared != DeclaredType::List)?;
        let message =
            msg!("`append` adds to a list, but `{name}` is declared as {}: nothing would be written", declared.name());
        return Some((message, msg!("declare it with `type: list`, or remove `append`")));
    }
    if let (Some(asked), Some(declared)) = (output.declared, declared)
        && !may_become(asked, *declared)
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
    let held = |choice: &&Value| {
        let value = declared.map_or_else(|| Some((*choice).clone()), |declared| declared.coerce(choice));
        choice.is_null() || value.is_some_and(|value| choices.contains(&value))
    };
    let lost: Vec<Value> = output.choices.iter().filter(|choice| !held(choice)).cloned().collect();
    if lost.is_empty() {
        return None;
    }
    let message =
        msg!("the declared `enum` of `{name}` does not contain {}: such a value would never be written", values(&lost));
    let help = "omit `enum` here, so that the output uses the one in the declaration; or add the missing values there";
    Some((message, Message::word(help)))
}

/// Whether some value of the one type can be held as the other without a loss (docs/replies.md).
fn may_become(asked: DeclaredType, declared: DeclaredType) -> bool {
    use DeclaredType::{Boolean, Date, Integer, List, Number, Object, String};
    match declared {
        String => !matches!(asked, List | Object),
        Number | Integer => matches!(asked, Number | Integer | String),
        Boolean => matches!(asked, Boolean | String),
        Date => matches!(asked, Date | String),
        List => asked == List,
        Object => asked == Object,
    }
}
