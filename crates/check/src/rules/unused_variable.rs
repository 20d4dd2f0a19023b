//! `unused-variable`: what is declared, or set, and never used.
//!
//! What an action extracts is the yield of an interview, whether or not the script reads it again, and so is what the author
//! declares and a `set` fills: the export holds them, those of a topic or phase that is over too. What is only declared tells
//! nobody anything, and what is set under a name that is declared nowhere is most often a misspelt one.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{AssignmentKind, CalleeBody, Definition};
use crate::rules::hidden_variable::is_prompt_name;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::value::scopes::Scope;

/// Near names are looked for at most this often: each look goes through all of them.
const MOST_LOOKS: usize = 100;

pub static RULE: Rule = Rule { slugs: &["unused-variable"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
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
            let Some((definition, message)) = unused(&definitions, &set) else { continue };
            looks += 1;
            let set_only = definition.how == AssignmentKind::Written && definition.to == Scope::Session;
            let near = match () {
                () if looks > MOST_LOOKS => None,
                () if set_only => near_miss(name, facts.names().iter().map(|(name, _)| name)),
                () if definition.how == AssignmentKind::Declared => near_miss(name, undeclared.iter().copied()),
                () => None,
            };
            let help = match near {
                Some(near) if set_only => msg!("did you mean `{}`?", shortened(near)),
                Some(near) => msg!("did you mean this variable where `{}` is set?", shortened(near)),
                None if set_only && skill.is_some() => {
                    msg!("use it in a text or a condition; if callers need it, list it under `outputs`; or remove it")
                }
                None if set_only => msg!(
                    "use it in a text or a condition; if it is meant for the export, declare `{}`; or remove it",
                    shortened(name)
                ),
                None => msg!("use it in a text or a condition, or remove it"),
            };
            let diagnostic = Diagnostic::warning("unused-variable", message, facts.file, definition.span);
            findings.report(diagnostic.with_help(help));
        }
    }
}

/// Which of the definitions of one name in one area to speak of, and what to say.
fn unused<'s>(definitions: &[&'s Definition], set: &BTreeSet<Span>) -> Option<(&'s Definition, Message)> {
    // What a later session may read is never unused.
    if definitions.iter().any(|definition| definition.to == Scope::Global) {
        return None;
    }
    let first = *definitions.first()?;
    let name = shortened(&first.name);
    if let Some(declared) = definitions.iter().copied().find(|definition| !definition.writes()) {
        // What is declared and written is meant for the export.
        return match declared.how {
            _ if has_writer(definitions) => None,
            AssignmentKind::Input => Some((declared, msg!("the input `{name}` of this skill is never used"))),
            _ => Some((declared, msg!("`{name}` is declared but never used"))),
        };
    }
    let only_set = definitions.iter().all(|definition| set.contains(&definition.span));
    let besides = match first.at.body {
        CalleeBody::Skill(_) => "and it is not an output of the skill",
        CalleeBody::Session | CalleeBody::Phase(_) | CalleeBody::Topic(..) => "and it is not declared anywhere",
    };
    let besides = Message::word(besides);
    only_set.then(|| (first, msg!("`{name}` is set but never used, {besides}")))
}

fn has_writer(definitions: &[&Definition]) -> bool {
    definitions.iter().any(|definition| definition.writes())
}

fn skill_of(body: CalleeBody) -> Option<usize> {
    match body {
        CalleeBody::Skill(number) => Some(number),
        CalleeBody::Session | CalleeBody::Phase(_) | CalleeBody::Topic(..) => None,
    }
}

/// Whether a skill gives the name to its callers.
fn gives_out(facts: &SemanticModel<'_>, skill: Option<usize>, name: &str) -> bool {
    let skill = skill.and_then(|number| facts.skills.get(number));
    skill.is_some_and(|skill| skill.outputs.iter().any(|output| output.value == name))
}

/// Every name that a template of the document mentions, also where it was not known yet.
fn shown_by_templates<'f>(facts: &'f SemanticModel<'_>) -> BTreeSet<&'f str> {
    let prompts: BTreeSet<(&str, u32)> =
        facts.seen.prompts.iter().map(|prompt| (prompt.name, prompt.version)).collect();
    let templates = prompts.into_iter().filter_map(|(name, version)| facts.templates.get(name, version).ok());
    templates.flat_map(|template| template.mentioned().map(|(name, _)| name).collect::<Vec<_>>()).collect()
}
