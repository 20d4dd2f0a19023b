//! `unknown-filter`, `unknown-test` and `filter-arguments`: what a filter is called with. `map` and `select` are given the names of other
//! filters and tests; other filters take a number of arguments.

use std::ops::Range;
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};

use crate::expressions::unknown_feature;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::expr::tree::{Argument, ExprKind, ExprNode};
use bcc_lang::message::msg;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::span::Span;
use bcc_lang::template::environment::{environment, has};
use bcc_lang::template::features::{FUNCTIONS, FeatureKind};
use bcc_lang::template::unknown::unknown;

const SLUG: &str = "filter-arguments";

pub static RULE: Rule = Rule { slugs: &["unknown-filter", "unknown-test", SLUG], essential: false, check };

static FEATURES: LazyLock<Environment<'static>> = LazyLock::new(|| environment(UndefinedBehavior::Chainable));

/// The filters whose number of arguments is checked, each with the least and the most.
const ARGUMENTS: &[(&str, usize, usize)] = &[
    ("abs", 0, 0),
    ("batch", 1, 2),
    ("bool", 0, 0),
    ("capitalize", 0, 0),
    ("count", 0, 0),
    ("first", 0, 0),
    ("items", 0, 0),
    ("last", 0, 0),
    ("length", 0, 0),
    ("lines", 0, 0),
    ("list", 0, 0),
    ("lower", 0, 0),
    ("replace", 2, 2),
    ("slice", 1, 2),
    ("string", 0, 0),
    ("title", 0, 0),
    ("upper", 0, 0),
];

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for entry in &model.collected.expressions {
        let mut walk = Walk { found: Vec::new() };
        walk.visit(entry.expression.root());
        for (range, mistake) in walk.found {
            findings.report(mistake.diagnostic(model, entry.span(model.file, &range)));
        }
    }
    for (entry, operations) in model.text_operations() {
        for (root, place) in operations {
            let mut walk = Walk { found: Vec::new() };
            walk.visit(root);
            for (range, mistake) in walk.found {
                let range = range.start + place.start..range.end + place.start;
                findings.report(mistake.diagnostic(model, locate_bytes(model.file, &entry.node, range)));
            }
        }
    }
}

enum Mistake {
    Unknown(FeatureKind, String),
    Count { filter: String, given: usize, least: usize, most: usize },
}

impl Mistake {
    fn diagnostic(self, model: &SemanticModel<'_>, span: Span) -> Diagnostic {
        match self {
            Self::Unknown(kind, name) => {
                let found = unknown(kind, &name, FUNCTIONS);
                unknown_feature(kind, found.message, model.file, span).with_help(found.help)
            }
            Self::Count { filter, given, least: 0, most: 0 } => {
                let message = msg!("the filter `{filter}` takes no arguments, but this gives it {given}");
                Diagnostic::error(SLUG, message, model.file, span).with_help("remove the brackets")
            }
            Self::Count { filter, given, least, most } if least == most => {
                let message = msg!("the filter `{filter}` takes {least} arguments, but this gives it {given}");
                let help = "as in `x | replace('old', 'new')`";
                Diagnostic::error(SLUG, message, model.file, span).with_help(help)
            }
            Self::Count { filter, given, least, most } => {
                let message =
                    msg!("the filter `{filter}` takes {least} to {most} arguments, but this gives it {given}");
                let help = "write the number of items of a group, as in `x | batch(3)`";
                Diagnostic::error(SLUG, message, model.file, span).with_help(help)
            }
        }
    }
}

struct Walk {
    /// The mistakes, each with its place in the expression.
    found: Vec<(Range<usize>, Mistake)>,
}

impl Walk {
    fn visit(&mut self, node: &ExprNode) {
        if let ExprKind::Filter(name, _, arguments) = &node.kind {
            self.filter(name, arguments, &node.range);
        }
        node.each_part(&mut |part| self.visit(part));
    }

    fn filter(&mut self, name: &str, arguments: &[Argument], range: &Range<usize>) {
        let named = match name {
            "map" => arguments.first().map(|first| (FeatureKind::Filter, first)),
            "select" | "reject" => arguments.first().map(|first| (FeatureKind::Test, first)),
            "selectattr" | "rejectattr" => arguments.get(1).map(|second| (FeatureKind::Test, second)),
            _ => None,
        };
        if let Some((kind, Argument::Plain(node))) = named
            && let ExprKind::Constant(value) = &node.kind
            && let Some(other) = value.as_str()
            && !has(&FEATURES, kind, other)
        {
            self.found.push((node.range.clone(), Mistake::Unknown(kind, other.to_owned())));
        }
        let all_plain = arguments.iter().all(|argument| matches!(argument, Argument::Plain(_)));
        let given = arguments.len();
        if let Some((_, least, most)) = ARGUMENTS.iter().find(|(filter, ..)| *filter == name)
            && all_plain
            && !(*least..=*most).contains(&given)
        {
            let mistake = Mistake::Count { filter: name.to_owned(), given, least: *least, most: *most };
            self.found.push((range.clone(), mistake));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::expr::parse::Expr;
    use bcc_lang::template::names::TemplateNames;
    use bcc_lang::value::scopes::Scopes;

    /// Whether minijinja rejects the number of arguments of a filter on any value to which it applies.
    fn rejects(filter: &str, count: usize) -> bool {
        let arguments = ["2", "'x'", "3"].get(..count).unwrap().join(", ");
        let fails = |on: &str, arguments: &str| {
            let expression = Expr::parse(&format!("{on} | {filter}({arguments})")).unwrap();
            let error = expression.eval(&TemplateNames::new(Scopes::default())).err().map(|error| error.to_string());
            error.is_some_and(|error| error.contains("arguments") || error.contains("missing argument"))
        };
        ["'a b'", "[1, 2]", "{'a': 1}", "3"].iter().all(|on| fails(on, &arguments))
    }

    #[test]
    fn the_numbers_of_arguments_are_those_of_the_filters() {
        for (filter, least, most) in ARGUMENTS {
            assert!(least.checked_sub(1).is_none_or(|fewer| rejects(filter, fewer)), "{filter} with fewer");
            assert!(rejects(filter, most + 1), "{filter} with more");
            assert!(!rejects(filter, *least) && !rejects(filter, *most), "{filter}");
        }
    }
}
