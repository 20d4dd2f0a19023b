//! `unused-variable`: what is declared, or set, and never used.
//!
//! What an action extracts is the yield of an interview, whether or not the script reads it again, and so is what the author
//! declares and a `set` fills: they are in the export. Nobody gets to see what is only declared, what is set under a name that
//! is declared nowhere (most often a misspelt one), and what a topic or phase holds unread until it ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::facts::{Body, Definition, Facts, How};
use crate::check::rules::hidden_variable::is_prompt_name;
use crate::check::rules::rule::Rule;
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::Span;
use crate::value::scopes::Scope;

/// Near names are looked for at most this often: each look goes through all of them.
const MOST_LOOKS: usize = 100;

/// The rule.
pub struct UnusedVariable;

impl Rule for UnusedVariable {
    fn slugs(&self) -> &'static [&'static str] {
        &["unused-variable"]
    }

    fn check(&self, facts: &Facts<'_>, findings: &Findings) {
        if !facts.whole() {
            return;
        }
        let seen = &facts.seen;
        let shown = shown_by_templates(facts);
        let set: BTreeSet<Span> = seen.sets.iter().map(|set| set.name.span).collect();
        let undeclared: Vec<&str> = facts
            .names()
            .iter()
            .filter(|(_, places)| places.defined(seen).all(Definition::writes))
            .filter(|(_, places)| places.defined(seen).next().is_some())
            .map(|(name, _)| name)
            .collect();
        let mut looks = 0;
        // What a template shows under such a name is not the variable: that is a finding of its own.
        for (name, places) in facts.names().iter().filter(|(name, _)| !is_prompt_name(name)) {
            let mut areas: BTreeMap<Option<usize>, Vec<&Definition>> = BTreeMap::new();
            for definition in places.defined(seen) {
                areas.entry(skill_of(definition.at.body)).or_default().push(definition);
            }
            for (skill, definitions) in areas {
                let used = shown.contains(name)
                    || places.used(seen).any(|used| skill_of(used.at.body) == skill)
                    || gives_out(facts, skill, name);
                if used {
                    continue;
                }
                let Some((definition, message)) = unused(facts, &definitions, &set) else { continue };
                looks += 1;
                let near = if looks <= MOST_LOOKS { near_miss(name, undeclared.iter().copied()) } else { None };
                let near = near.filter(|_| definition.how == How::Declared);
                let help = match (near, definition.how) {
                    (Some(near), _) => format!("did you mean it where `{}` gets its value?", shortened(near)),
                    (None, How::Written) if definition.to == Scope::Session => format!(
                        "use it in a text or a condition; if it is meant for the export, declare `{}`; or remove it",
                        shortened(name)
                    ),
                    (None, _) if definition.how != How::Input && has_writer(&definitions) => {
                        "use it before then, or hold it in the session, where the export finds it".to_owned()
                    }
                    (None, _) => "use it in a text or a condition, or remove it".to_owned(),
                };
                let diagnostic = Diagnostic::warning("unused-variable", message, facts.file, definition.span);
                findings.report(diagnostic.with_help(help));
            }
        }
    }
}

/// Which of the definitions of one name in one area to speak of, and what to say.
fn unused<'s>(
    facts: &Facts<'_>,
    definitions: &[&'s Definition],
    set: &BTreeSet<Span>,
) -> Option<(&'s Definition, String)> {
    // What a later session may read is never unused.
    if definitions.iter().any(|definition| definition.to == Scope::Global) {
        return None;
    }
    let name = shortened(&definitions.first()?.name);
    let written = has_writer(definitions);
    let declared = definitions.iter().copied().find(|definition| !definition.writes());
    if let Some(declared) = declared {
        return match (declared.how, written, declared.to) {
            (How::Input, false, _) => Some((declared, format!("the input `{name}` of this skill is never used in it"))),
            (How::Declared, false, _) => Some((declared, format!("`{name}` is declared and never used"))),
            (How::Declared, true, Scope::Phase | Scope::Topic) => Some((declared, lost(facts, declared))),
            _ => None,
        };
    }
    let first = definitions.first()?;
    let ends = |definition: &&Definition| {
        definition.how == How::Written && matches!(definition.holder(), Body::Phase(_) | Body::Topic(..))
    };
    if definitions.iter().all(ends) {
        return Some((first, lost(facts, first)));
    }
    let only_set = definitions.iter().all(|definition| set.contains(&definition.span));
    only_set.then(|| (*first, format!("`{name}` is set, but nothing uses it, and it is declared nowhere")))
}

fn lost(facts: &Facts<'_>, definition: &Definition) -> String {
    let holder = facts.part_name(definition.holder());
    format!("`{}` gets a value, but nothing uses it before {holder} ends and forgets it", shortened(&definition.name))
}

fn has_writer(definitions: &[&Definition]) -> bool {
    definitions.iter().any(|definition| definition.writes())
}

fn skill_of(body: Body) -> Option<usize> {
    match body {
        Body::Skill(number) => Some(number),
        Body::Session | Body::Phase(_) | Body::Topic(..) => None,
    }
}

/// Whether a skill gives the name to its callers.
fn gives_out(facts: &Facts<'_>, skill: Option<usize>, name: &str) -> bool {
    let skill = skill.and_then(|number| facts.skills.get(number));
    skill.is_some_and(|skill| skill.outputs.iter().any(|output| output.value == name))
}

/// Every name that a template of the document mentions, also where it was not known yet.
fn shown_by_templates<'f>(facts: &'f Facts<'_>) -> BTreeSet<&'f str> {
    let prompts: BTreeSet<(&str, u32)> =
        facts.seen.prompts.iter().map(|prompt| (prompt.name, prompt.version)).collect();
    let templates = prompts.into_iter().filter_map(|(name, version)| facts.templates.get(name, version).ok());
    templates.flat_map(|template| template.mentioned().map(|(name, _)| name).collect::<Vec<_>>()).collect()
}
