//! `unused-variable`: a variable that is declared or set but never used.
//!
//! Extracted values are the result of an interview, even if the script never reads them, and so are declared variables that
//! a `set` fills: the export contains them, including those of completed topics and phases. A variable that is only declared
//! is useless, and a variable that is set without a declaration is usually misspelled.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{AssignmentKind, CalleeBody, Definition};
use crate::rules::hidden_variable::is_prompt_name;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::templates::legacy_engine::current_name;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::turn::ENGINE_NAMES;

/// The maximum number of searches for similar names: each search compares all names.
const MAX_SEARCHES: usize = 100;

pub static RULE: Rule = Rule { slugs: &["unused-variable"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if !model.is_complete() {
        return;
    }
    let collected = &model.collected;
    let shown = shown_by_templates(model);
    let set: BTreeSet<Span> = collected.sets.iter().map(|set| set.name.span).collect();
    let undeclared: Vec<&str> = model
        .names()
        .iter()
        .filter(|(_, places)| places.defined(collected).all(Definition::writes))
        .filter(|(_, places)| places.defined(collected).next().is_some())
        .map(|(name, _)| name)
        .collect();
    let mut searches = 0;
    // In templates, such a name is not the variable: another rule reports that.
    for (name, places) in model.names().iter().filter(|(name, _)| !is_prompt_name(name)) {
        let mut areas: BTreeMap<Option<usize>, Vec<&Definition>> = BTreeMap::new();
        for definition in places.defined(collected) {
            areas.entry(skill_of(definition.at.body)).or_default().push(definition);
        }
        for (skill, definitions) in areas {
            let used = shown.contains(name)
                || places.used(collected).any(|used| skill_of(used.at.body) == skill)
                || is_output(model, skill, name);
            if used {
                continue;
            }
            let Some((definition, message)) = unused(&definitions, &set) else { continue };
            searches += 1;
            let set_only = definition.how == AssignmentKind::Written && definition.to == Scope::Session;
            let near = match () {
                () if searches > MAX_SEARCHES => None,
                () if set_only => near_miss(name, model.names().iter().map(|(name, _)| name)),
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
                None => match current_name(name, ENGINE_NAMES.into_iter()) {
                    Some(current) => msg!(
                        "use it in a text or a condition, or remove it; an older engine took it for the name in prompts, which is `{current}` of the session here"
                    ),
                    None => msg!("use it in a text or a condition, or remove it"),
                },
            };
            let diagnostic = Diagnostic::warning("unused-variable", message, model.file, definition.span);
            findings.report(diagnostic.with_help(help));
        }
    }
}

/// The definition to report among those of one name in one area, and the message.
fn unused<'s>(definitions: &[&'s Definition], set: &BTreeSet<Span>) -> Option<(&'s Definition, Message)> {
    // A later session may read a global variable.
    if definitions.iter().any(|definition| definition.to == Scope::Global) {
        return None;
    }
    let first = *definitions.first()?;
    let name = shortened(&first.name);
    if let Some(declared) = definitions.iter().copied().find(|definition| !definition.writes()) {
        // A variable that is declared and written is meant for the export.
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

/// Whether the name is an output of a skill.
fn is_output(model: &SemanticModel<'_>, skill: Option<usize>, name: &str) -> bool {
    let skill = skill.and_then(|number| model.skills.get(number));
    skill.is_some_and(|skill| skill.outputs.iter().any(|output| output.value == name))
}

/// All names that the templates of the document mention, even where they were not known yet.
fn shown_by_templates<'f>(model: &'f SemanticModel<'_>) -> BTreeSet<&'f str> {
    let prompts: BTreeSet<(&str, u32)> =
        model.collected.prompts.iter().map(|prompt| (prompt.name, prompt.version)).collect();
    let templates = prompts.into_iter().filter_map(|(name, version)| model.templates.get(name, version).ok());
    templates.flat_map(|template| template.mentioned().map(|(name, _)| name).collect::<Vec<_>>()).collect()
}
