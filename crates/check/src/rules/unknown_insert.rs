//! `unknown-insert`: the target of an `insert` is neither a skill nor an action.

use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::iter::once;

use crate::callables::{Callables, can_insert};
use crate::collected::CalleeBody;
use crate::listing::and;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Spanned;

const SLUG: &str = "unknown-insert";

/// The maximum number of unknown names of a document for which a similar one is searched.
const MAX_SEARCHES: usize = 100;

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let inserts = model.inserts();
    if inserts.is_empty() {
        return;
    }
    let callables = model.callables();
    let mut names = Names::of(model);
    for (id, body) in inserts {
        let written = id.value.as_str();
        if callables.skill(written).is_some() {
            continue;
        }
        let action = callables.action(written).and_then(|number| model.collected.actions.get(number));
        match action {
            Some(action) if can_insert(body, action) => {}
            Some(action) => {
                let (message, help) = if matches!(body, CalleeBody::Skill(_)) {
                    let message = msg!("`{}` is outside this skill", shortened(written));
                    (message, "a skill can insert only its own actions and other skills; turn that action into a skill")
                } else {
                    let message = msg!("`{}` is an action inside a skill", shortened(written));
                    (message, "insert the skill itself; its actions are available only inside it")
                };
                let diagnostic = Diagnostic::error(SLUG, message, model.file, id.span).with_help(help);
                findings.report(diagnostic.with_related("the action", model.file, action.id.span));
            }
            None if !callables.is_complete() => {}
            None => findings.report(names.unknown(id, body, model)),
        }
    }
}

/// The valid targets, and ids that are mistaken for them.
struct Names<'f> {
    callables: &'f Callables<'f>,
    places: BTreeSet<&'f str>,
    /// The remaining number of searches for similar names: each search compares all names.
    searches: usize,
}

impl<'f> Names<'f> {
    fn of(model: &'f SemanticModel<'_>) -> Self {
        let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
        let ids = phases.iter().flat_map(|phase| once(&phase.id).chain(phase.topics.iter().map(|topic| &topic.id)));
        let in_skills = model.skills.iter().flat_map(|skill| skill.topics.iter().map(|topic| &topic.id));
        let ids = ids.chain(in_skills);
        Self { callables: model.callables(), places: ids.map(|id| id.value.as_str()).collect(), searches: MAX_SEARCHES }
    }

    fn unknown(&mut self, id: &Spanned<String>, body: CalleeBody, model: &SemanticModel<'_>) -> Diagnostic {
        let message = msg!("there is no skill or action `{}`", shortened(&id.value));
        let diagnostic = Diagnostic::error(SLUG, message, model.file, id.span);
        if self.places.contains(id.value.as_str()) {
            let help =
                "this is the id of a topic or a phase: use `goto` to go there, or write the id of a skill or an action";
            return diagnostic.with_help(help);
        }
        let callables = self.callables;
        let actions = model
            .collected
            .actions
            .iter()
            .filter(|action| can_insert(body, action))
            .map(|action| action.id.value.as_str());
        let advise = self.searches > 0;
        self.searches = self.searches.saturating_sub(1);
        match advise.then(|| near_miss(&id.value, callables.skills().chain(actions))).flatten() {
            Some(near) => diagnostic.with_suggestion(near),
            None if callables.skills().next().is_none() => diagnostic.with_help(
                "define the skill under `skills:` in the script or in a file in skills/, or write the id of an action of this script",
            ),
            None => diagnostic.with_help(msg!("available skills: {}", and(callables.skills()))),
        }
    }
}
