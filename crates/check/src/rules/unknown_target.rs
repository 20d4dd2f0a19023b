//! `unknown-target`: the target of a `goto` is not a topic or phase of the session, or that of a `rewind_to` is not an earlier action
//! of the same list.

use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::{CalleeBody, CollectedAction};
use crate::listing::or;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;

const SLUG: &str = "unknown-target";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    check_rewinds(model, findings);
    let gotos = model.gotos();
    if gotos.is_empty() {
        return;
    }
    let places = Places::of(model);
    for (id, span, at) in gotos {
        if matches!(at.body, CalleeBody::Skill(_)) {
            let message = msg!("`goto` jumps out of the skill, to `{}`", shortened(id));
            let help = "a skill can be called from anywhere and does not know the script around it: let the skill end, and write the `goto` in the script that calls it";
            findings.report(Diagnostic::error(SLUG, message, model.file, span).with_help(help));
        } else if !places.targets.contains_key(id) {
            findings.report(places.unknown(id, span, model, findings.may_suggest()));
        }
    }
}

fn check_rewinds(model: &SemanticModel<'_>, findings: &Findings) {
    for (id, at) in &model.collected.rewinds {
        let Some(number) = at.action else { continue };
        let actions = &model.collected.actions;
        let Some(here) = actions.get(number) else { continue };
        let same_list = |action: &&CollectedAction| {
            action.body == here.body && action.parent == here.parent && action.block == here.block
        };
        let earlier = || actions.iter().filter(same_list).filter(|action| action.span.start < here.span.start);
        if earlier().any(|action| action.id.value == id.value) {
            continue;
        }
        let message =
            msg!("`rewind_to` must name an earlier action of the same list, but `{}` is none", shortened(&id.value));
        let known = || earlier().map(|action| action.id.value.as_str()).filter(|id| !id.is_empty());
        let diagnostic = Diagnostic::error(SLUG, message, model.file, id.span);
        let near = findings.may_suggest().then(|| near_miss(&id.value, known())).flatten();
        findings.report(if known().next().is_none() {
            diagnostic
                .with_help("no action stands before this one in its list: put the steps to repeat before the approval")
        } else {
            diagnostic.with_suggestion_or(near, || msg!("it can be {}", or(known())))
        });
    }
}

struct Places<'f> {
    /// Topics and phases, each with its place.
    targets: BTreeMap<&'f str, Span>,
    /// Actions, each with its topic and its place.
    actions: BTreeMap<&'f str, (&'f str, Span)>,
}

impl<'f> Places<'f> {
    fn of(model: &'f SemanticModel<'_>) -> Self {
        let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
        let ids = phases
            .iter()
            .flat_map(|phase| std::iter::once(&phase.id).chain(phase.topics.iter().map(|topic| &topic.id)));
        let targets = ids.map(|id| (id.value.as_str(), id.span)).collect();
        let topic = |body| match body {
            CalleeBody::Topic(phase, topic) => {
                phases.get(phase).and_then(|phase| phase.topics.get(topic)).map_or("", |topic| topic.id.value.as_str())
            }
            _ => "",
        };
        let actions = model
            .collected
            .actions
            .iter()
            .map(|action| (action.id.value.as_str(), (topic(action.body), action.id.span)));
        Self { targets, actions: actions.collect() }
    }

    fn unknown(&self, id: &str, span: Span, model: &SemanticModel<'_>, advise: bool) -> Diagnostic {
        if let Some((topic, place)) = self.actions.get(id) {
            let message = msg!("`{}` is an action, but `goto` can jump only to topics and phases", shortened(id));
            let help = match *topic {
                "" => msg!("write the id of a topic or a phase"),
                topic => msg!("write `{topic}`, the topic that contains it, or move it to a topic of its own"),
            };
            let diagnostic = Diagnostic::error(SLUG, message, model.file, span).with_help(help);
            return diagnostic.with_related("the action", model.file, *place);
        }
        let message = msg!("there is no topic or phase `{}`", shortened(id));
        let known = || self.targets.keys().copied().filter(|id| !id.is_empty());
        let diagnostic = Diagnostic::error(SLUG, message, model.file, span);
        let near = advise.then(|| near_miss(id, known())).flatten();
        diagnostic.with_suggestion_or(near, || msg!("`goto` can jump to {}", or(known())))
    }
}
