//! `unknown-target`: the target of a `goto` is no topic or phase of the session and no action of a list around it, or that of a
//! `rewind_to` is not an earlier action of the same list.

use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::{ActionPosition, CalleeBody, CollectedAction};
use crate::jump_targets::{ActionIds, can_jump};
use crate::listing::or;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::skill_topics::is_skill_topic;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::script::WrittenPhase;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::workflow::state_file::END;

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
        if places.reaches(model, id, at) {
            continue;
        }
        let leads_out = || places.actions.get(at.body, id).is_none() && places.near_in_skill(model, id, at).is_none();
        if matches!(at.body, CalleeBody::Skill(_)) && (places.targets.contains_key(id) || leads_out()) {
            let message = msg!("`goto` jumps out of the skill, to `{}`", shortened(id));
            let help = "a skill can be called from anywhere and does not know the script around it: let the skill end, and write the `goto` in the script that calls it";
            findings.report(Diagnostic::error(SLUG, message, model.file, span).with_help(help));
        } else {
            findings.report(places.unknown((id, span, at), model, findings.may_suggest()));
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
    actions: ActionIds<'f>,
    phases: &'f [WrittenPhase],
}

impl<'f> Places<'f> {
    fn of(model: &'f SemanticModel<'_>) -> Self {
        let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
        let ids = phases
            .iter()
            .flat_map(|phase| std::iter::once(&phase.id).chain(phase.topics.iter().map(|topic| &topic.id)));
        let targets = ids.map(|id| (id.value.as_str(), id.span)).collect();
        let actions = ActionIds::of(&model.collected);
        Self { targets, actions, phases }
    }

    /// Whether a `goto` at this position can jump to `id`.
    fn reaches(&self, model: &SemanticModel<'_>, id: &str, at: ActionPosition) -> bool {
        let is_part = !matches!(at.body, CalleeBody::Skill(_)) && self.targets.contains_key(id);
        // A case of a `condition` may end the session.
        let ends = id == END && model.collected.gotos.iter().any(|(goto, from)| goto.value == END && *from == at);
        is_part || ends || self.actions.get(at.body, id).is_some_and(|action| can_jump(&model.collected, at, action))
    }

    /// The actions that a `goto` at this position can jump to.
    fn reached(&self, model: &SemanticModel<'_>, at: ActionPosition) -> impl Iterator<Item = &'f str> {
        let reached = self.actions.all(at.body).filter(move |(_, number)| can_jump(&model.collected, at, *number));
        reached.map(|(id, _)| id).filter(|id| !id.is_empty())
    }

    /// The similar id that a `goto` in a skill probably means.
    fn near_in_skill(&self, model: &SemanticModel<'_>, id: &str, at: ActionPosition) -> Option<&'f str> {
        matches!(at.body, CalleeBody::Skill(_)).then(|| near_miss(id, self.reached(model, at))).flatten()
    }

    fn unknown(
        &self,
        (id, span, at): (&str, Span, ActionPosition),
        model: &SemanticModel<'_>,
        advise: bool,
    ) -> Diagnostic {
        let action = self.actions.get(at.body, id).or_else(|| self.actions.anywhere(id));
        let action = action.and_then(|number| model.collected.actions.get(number));
        let outside = action.filter(|action| action.body != at.body);
        if let Some((action, skill)) = outside.and_then(|action| Some((action, model.skill_of(action.body)?))) {
            let message = msg!("`{}` is inside the skill `{skill}`, and no `goto` jumps into a skill", shortened(id));
            let help =
                "a skill runs from its start, with its inputs: call it with `use_skill`, or insert it by a route";
            let diagnostic = Diagnostic::error(SLUG, message, model.file, span).with_help(help);
            return diagnostic.with_related("the target", model.file, action.id.span);
        }
        if let Some(action) = action {
            let message = msg!(
                "`{}` is an action, but `goto` can jump only to topics, phases, and actions of its own list or of a list around it",
                shortened(id)
            );
            let actions = &model.collected.actions;
            let mut around = std::iter::successors(action.parent, |number| actions.get(*number)?.parent);
            let outer = around.find(|number| can_jump(&model.collected, at, *number));
            let outer = outer.and_then(|number| actions.get(number));
            let topic = match action.body {
                CalleeBody::Topic(phase, topic) => self.phases.get(phase).and_then(|phase| phase.topics.get(topic)),
                _ => None,
            };
            let topic = topic.map(|topic| topic.id.value.as_str());
            let topic =
                topic.or_else(|| outer.filter(|outer| is_skill_topic(outer)).map(|outer| outer.id.value.as_str()));
            let outer = outer.filter(|outer| !is_skill_topic(outer));
            let topic = topic.unwrap_or_default();
            let help = match (outer, topic) {
                (Some(outer), _) => msg!("write `{}`, the action that contains it", outer.id.value),
                (_, "") => msg!("write the id of a topic or a phase"),
                (_, topic) => msg!("write `{topic}`, the topic that contains it, or move it to a topic of its own"),
            };
            let diagnostic = Diagnostic::error(SLUG, message, model.file, span).with_help(help);
            return diagnostic.with_related("the action", model.file, action.id.span);
        }
        let message = msg!("there is no topic, phase or action `{}` to jump to", shortened(id));
        let known = || self.targets.keys().copied().filter(|id| !id.is_empty());
        let diagnostic = Diagnostic::error(SLUG, message, model.file, span);
        if let Some(near) = self.near_in_skill(model, id, at) {
            return diagnostic.with_suggestion(near);
        }
        let near = advise.then(|| near_miss(id, known().chain(self.reached(model, at)))).flatten();
        diagnostic
            .with_suggestion_or(near, || msg!("`goto` can jump to {}", or(known().chain(self.reached(model, at)))))
    }
}
