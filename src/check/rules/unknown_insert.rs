//! `unknown-insert`: what is to be inserted is neither a skill nor an action.

use crate::check::callables::{Callables, can_insert};
use crate::check::facts::{Body, Facts};
use crate::check::rules::rule::Rule;
use crate::check::rules::unknown_target::and;
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::near::near_miss;
use crate::source::span::Spanned;

/// The rule.
pub struct UnknownInsert;

const SLUG: &str = "unknown-insert";

impl Rule for UnknownInsert {
    fn slugs(&self) -> &'static [&'static str] {
        &[SLUG]
    }

    fn essential(&self) -> bool {
        true
    }

    fn check(&self, facts: &Facts<'_>, findings: &Findings) {
        let inserts = inserts(facts);
        if inserts.is_empty() {
            return;
        }
        let callables = Callables::of(facts);
        for (id, body) in inserts {
            let written = id.value.as_str();
            if callables.skill(written).is_some() {
                continue;
            }
            let action = callables.action(written).and_then(|number| facts.seen.actions.get(number));
            match action {
                Some(action) if can_insert(body, action) => {}
                Some(action) => {
                    let (message, help) = if matches!(body, Body::Skill(_)) {
                        let message = format!("`{}` stands outside of this skill", shortened(written));
                        (message, "a skill can insert its own actions and other skills; make a skill of that action")
                    } else {
                        let message = format!("`{}` is an action inside of a skill", shortened(written));
                        (message, "insert the skill itself; its actions are known only inside of it")
                    };
                    let diagnostic = Diagnostic::error(SLUG, message, facts.file, id.span).with_help(help);
                    findings.report(diagnostic.with_related("the action", facts.file, action.id.span));
                }
                None if !callables.whole() => {}
                None => findings.report(unknown(id, body, facts, &callables, findings.may_advise())),
            }
        }
    }
}

/// Every `insert`, with the part of the document in which it stands.
pub fn inserts<'f>(facts: &'f Facts<'_>) -> Vec<(&'f Spanned<String>, Body)> {
    let routes =
        facts.seen.routes.iter().flat_map(|table| table.on_exit.routes.iter().map(move |route| (route, table.at)));
    let routes = routes.filter_map(|(route, at)| Some((route.insert.as_ref()?, at.body)));
    let triggers = facts.seen.triggers.iter().filter_map(|trigger| Some((trigger.insert.as_ref()?, Body::Session)));
    routes.chain(triggers).collect()
}

fn unknown(id: &Spanned<String>, body: Body, facts: &Facts<'_>, callables: &Callables<'_>, advise: bool) -> Diagnostic {
    let message = format!("there is no skill and no action `{}`", shortened(&id.value));
    let diagnostic = Diagnostic::error(SLUG, message, facts.file, id.span);
    let targets = facts.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    let is_place = targets
        .iter()
        .any(|phase| phase.id.value == id.value || phase.topics.iter().any(|topic| topic.id.value == id.value));
    if is_place {
        let help = "that is the id of a topic or a phase: go there with `goto`, or name a skill or an action";
        return diagnostic.with_help(help);
    }
    let actions =
        facts.seen.actions.iter().filter(|action| can_insert(body, action)).map(|action| action.id.value.as_str());
    match advise.then(|| near_miss(&id.value, callables.skills().chain(actions))).flatten() {
        Some(near) => diagnostic
            .with_help(format!("did you mean `{near}`?"))
            .with_fix(format!("write `{near}`"), vec![Edit::replace(id.span, near)]),
        None if callables.skills().next().is_none() => diagnostic.with_help(
            "write the skill under `skills:` of the script or as a file in skills/, or name an action of this script",
        ),
        None => diagnostic.with_help(format!("there are the skills {}", and(callables.skills()))),
    }
}
