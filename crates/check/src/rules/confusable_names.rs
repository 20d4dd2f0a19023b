//! `confusable-names`: two variables whose names differ in nothing but case, full-width letters or an underscore.

use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::{CalleeBody, Definition};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;

pub static RULE: Rule = Rule { slugs: &["confusable-names"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let seen = &facts.seen;
    // The first name of each look in each part that holds names, with where it is first defined there.
    let mut first: BTreeMap<(String, CalleeBody), (&str, Span)> = BTreeMap::new();
    let mut in_order: Vec<&Definition> = seen.definitions.iter().collect();
    // What the session holds can be seen from everywhere, so it comes first.
    in_order.sort_by_key(|definition| (definition.holder(), definition.order));
    let mut told: std::collections::BTreeSet<(&str, &str)> = std::collections::BTreeSet::new();
    for definition in in_order {
        let look = look(&definition.name);
        let holder = definition.holder();
        let wider = match holder {
            CalleeBody::Topic(phase, _) => [Some(CalleeBody::Session), Some(CalleeBody::Phase(phase)), Some(holder)],
            CalleeBody::Phase(_) => [Some(CalleeBody::Session), Some(holder), None],
            CalleeBody::Session | CalleeBody::Skill(_) => [Some(holder), None, None],
        };
        let known = wider.into_iter().flatten().find_map(|body| first.get(&(look.clone(), body)).copied());
        match known {
            Some((other, at)) if other != definition.name => {
                if told.insert((other, &definition.name)) {
                    findings.report(report(facts, definition, other, at));
                }
            }
            Some(_) => {}
            None => {
                first.insert((look, holder), (&definition.name, definition.span));
            }
        }
    }
}

fn report(facts: &SemanticModel<'_>, definition: &Definition, other: &str, at: Span) -> Diagnostic {
    let (name, other) = (shortened(&definition.name), shortened(other));
    let message = msg!("`{name}` and `{other}` are two different variables, although their names look alike");
    let help = "if you mean a single variable, spell its name the same way everywhere; otherwise, rename one of them";
    let diagnostic = Diagnostic::warning("confusable-names", message, facts.file, definition.span).with_help(help);
    diagnostic.with_related(msg!("`{other}` is here"), facts.file, at)
}

/// The name without what is easily overlooked. An underscore beside a digit is not: `q1_1` and `q11` are two questions.
fn look(name: &str) -> String {
    let narrow = |c: char| match u32::from(c) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let characters: Vec<char> = name.chars().map(narrow).collect();
    let mut look = String::with_capacity(name.len());
    for (number, c) in characters.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| characters.get(before));
        let beside = [before, characters.get(number + 1)];
        let separates = beside.iter().all(|beside| beside.is_some_and(|beside| beside.is_alphabetic()));
        if !(*c == '_' && separates) {
            look.extend(c.to_lowercase());
        }
    }
    look
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_look_alike_that_differ_in_case_width_or_an_underscore() {
        for (one, other, alike) in [
            ("userName", "user_name", true),
            ("Mood", "mood", true),
            ("ａｇｅ", "age", true),
            ("用户_名", "用户名", true),
            ("q1_1", "q11", false),
            ("_x", "x", false),
            ("mood", "moods", false),
            ("年龄", "年纪", false),
        ] {
            assert_eq!(look(one) == look(other), alike, "{one} {other}");
        }
    }
}
