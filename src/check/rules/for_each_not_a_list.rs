//! `for-each-not-a-list`: what `for_each` goes through is declared as something else.

use crate::check::facts::{Facts, Role};
use crate::check::rules::rule::Rule;
use crate::prompt::expr::tree::Kind;
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::value::declared::DeclaredType;

/// The rule.
pub struct ForEachNotAList;

const SLUG: &str = "for-each-not-a-list";

impl Rule for ForEachNotAList {
    fn slugs(&self) -> &'static [&'static str] {
        &[SLUG]
    }

    fn check(&self, facts: &Facts<'_>, findings: &Findings) {
        for list in facts.seen.expressions.iter().filter(|expression| expression.role == Role::List) {
            let root = list.expression.root();
            let span = || list.span(facts.file, &root.range);
            match &root.kind {
                Kind::Name(name) => {
                    let declared = list.declared.get(name).and_then(|(declared, _)| *declared);
                    let Some(declared) = declared.filter(|declared| *declared != DeclaredType::List) else { continue };
                    let message = format!(
                        "`for_each` goes through a list, but `{}` is declared as {}",
                        shortened(name),
                        declared.name()
                    );
                    let help = "declare it with `type: list`, or name the variable that holds the list";
                    findings.report(Diagnostic::error(SLUG, message, facts.file, span()).with_help(help));
                }
                Kind::Constant(value) if value.kind() != minijinja::value::ValueKind::Seq => {
                    let message = "`for_each` goes through a list, but this is a single value";
                    let help = "name a variable that holds a list, as in `in: caregivers`";
                    findings.report(Diagnostic::error(SLUG, message, facts.file, span()).with_help(help));
                }
                _ => {}
            }
        }
    }
}
