//! `confusable-names`: two variables whose names differ only in case, full-width letters or an underscore.

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

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let collected = &model.collected;
    // The first name with each skeleton in each part, with the place of its first definition there.
    let mut first: BTreeMap<(String, CalleeBody), (&str, Span)> = BTreeMap::new();
    let mut in_order: Vec<&Definition> = collected.definitions.iter().collect();
    // Names of the session are visible everywhere, so they come first.
    in_order.sort_by_key(|definition| (definition.holder(), definition.order));
    let mut reported: std::collections::BTreeSet<(&str, &str)> = std::collections::BTreeSet::new();
    for definition in in_order {
        let skeleton = skeleton(&definition.name);
        let holder = definition.holder();
        let wider = match holder {
            CalleeBody::Topic(phase, _) => [Some(CalleeBody::Session), Some(CalleeBody::Phase(phase)), Some(holder)],
            CalleeBody::Phase(_) => [Some(CalleeBody::Session), Some(holder), None],
            CalleeBody::Session | CalleeBody::Skill(_) => [Some(holder), None, None],
        };
        let known = wider.into_iter().flatten().find_map(|body| first.get(&(skeleton.clone(), body)).copied());
        match known {
            Some((other, at)) if other != definition.name => {
                if reported.insert((other, &definition.name)) {
                    findings.report(report(model, definition, other, at));
                }
            }
            Some(_) => {}
            None => {
                first.insert((skeleton, holder), (&definition.name, definition.span));
            }
        }
    }
}

fn report(model: &SemanticModel<'_>, definition: &Definition, other: &str, at: Span) -> Diagnostic {
    let (name, other) = (shortened(&definition.name), shortened(other));
    let message = msg!("`{name}` and `{other}` are two different variables, although their names look alike");
    let help = "if you mean a single variable, spell its name the same way everywhere; otherwise, rename one of them";
    let diagnostic = Diagnostic::warning("confusable-names", message, model.file, definition.span).with_help(help);
    diagnostic.with_related(msg!("`{other}` is here"), model.file, at)
}

/// The name without easily overlooked differences. An underscore next to a digit is kept: `q1_1` and `q11` are two questions.
fn skeleton(name: &str) -> String {
    let narrow = |c: char| match u32::from(c) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let characters: Vec<char> = name.chars().map(narrow).collect();
    let mut skeleton = String::with_capacity(name.len());
    for (number, c) in characters.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| characters.get(before));
        let neighbors = [before, characters.get(number + 1)];
        let separates = neighbors.iter().all(|neighbor| neighbor.is_some_and(|neighbor| neighbor.is_alphabetic()));
        if !(*c == '_' && separates) {
            skeleton.extend(c.to_lowercase());
        }
    }
    skeleton
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
            assert_eq!(skeleton(one) == skeleton(other), alike, "{one} {other}");
        }
    }
}
