//! `unknown-template-name` in the file of a template: names that neither the engine nor the kind nor a script provides.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::templates::quotes;
use crate::templates::template_set::{TemplateConsumer, TemplateSet};
use bcc_lang::script::fields::shortened;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::{near, single, suggestion};
use bcc_lang::template::features::FUNCTIONS;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::uses::NameUse;
use bcc_runtime::program::turn::ENGINE_NAMES;

pub fn check(
    set: &TemplateSet<'_>,
    roots: &[(usize, Option<TemplateConsumer>)],
    consumers: &[TemplateConsumer],
    variables: Option<&BTreeSet<String>>,
    found: &mut Vec<Diagnostic>,
) {
    // A part may belong to prompts of several kinds: each use of a name is reported once.
    let mut unknown: BTreeMap<(usize, usize), BTreeSet<&'static str>> = BTreeMap::new();
    for (root, consumer) in roots.iter().filter_map(|(root, consumer)| Some((*root, (*consumer)?))) {
        visit(set.templates, root, &mut HashSet::new(), &mut |member| {
            for (number, used) in member.names().filter(|(_, used)| !used.optional) {
                let name = used.name.as_str();
                let of_scripts = variables.is_some_and(|variables| variables.contains(name));
                if !(of_scripts || FUNCTIONS.contains(&name) || given(&consumer).any(|given| given == name)) {
                    unknown.entry((member.template, number)).or_default().insert(consumer.kind);
                }
            }
        });
    }
    for ((template, number), kinds) in unknown {
        let loaded = set.templates.files().get(template);
        let used = loaded.and_then(|loaded| loaded.names().get(number));
        let (Some(source), Some(loaded), Some(used)) = (set.own(template), loaded, used) else { continue };
        if quotes::is_part(loaded, loaded.span(&used.range)) {
            continue;
        }
        let of_kinds: Vec<&TemplateConsumer> =
            consumers.iter().filter(|consumer| kinds.contains(consumer.kind)).collect();
        let Some(diagnostic) = describe(used, &of_kinds, consumers, variables) else { continue };
        let span = loaded.span(&used.range);
        let mut finding = if variables.is_some() {
            Diagnostic::error("unknown-template-name", diagnostic.message, source, span)
        } else {
            Diagnostic::warning("unknown-template-name", diagnostic.message, source, span)
        };
        finding = finding.with_help(diagnostic.help);
        if let Some(instead) = diagnostic.instead {
            finding = finding.with_fix(msg!("use `{instead}`"), vec![Edit::replace(span, instead)]);
        }
        found.push(finding);
    }
}

struct UnknownName {
    message: Message,
    help: Message,
    instead: Option<String>,
}

/// Without scripts, reports only names similar to a provided one: others may be variables.
fn describe(
    used: &NameUse,
    kinds: &[&TemplateConsumer],
    all: &[TemplateConsumer],
    variables: Option<&BTreeSet<String>>,
) -> Option<UnknownName> {
    let name = used.name.as_str();
    let prompts = Message::all_of(kinds.iter().map(|consumer| Message::text(format!("`{}`", consumer.kind))));
    let shown = shortened(name);
    let elsewhere: Vec<&str> = all
        .iter()
        .filter(|consumer| consumer.prompt.given().any(|given| given == name))
        .map(|consumer| consumer.kind)
        .collect();
    if !elsewhere.is_empty() {
        let message = msg!(
            "`{shown}` is available in prompts of {}, but not in prompts of {prompts}",
            Message::names(&elsewhere)
        );
        let help = msg!(
            "make the template work without it: `{{{{ {shown} | default('') }}}}`, `{{% if {shown} is defined %}}`"
        );
        return Some(UnknownName { message, help, instead: None });
    }
    let candidates: BTreeSet<&str> = kinds.iter().flat_map(|consumer| given(consumer)).collect();
    let mut nearest = near(name, candidates.iter().copied());
    if variables.is_none() && nearest.is_empty() {
        return None;
    }
    if nearest.is_empty() {
        nearest = near(name, variables.into_iter().flatten().map(String::as_str));
    }
    let message = match variables {
        Some(_) => msg!("`{shown}` is not available in prompts of {prompts}, and no script of this project sets it"),
        None => {
            msg!("`{shown}` is not available in prompts of {prompts}, unless a script has a variable with that name")
        }
    };
    let help = suggestion(&nearest).unwrap_or_else(|| {
        msg!("declare it in the scripts, or make the template work without it: `{{{{ {shown} | default('') }}}}`")
    });
    Some(UnknownName { message, help, instead: single(&nearest).map(str::to_owned) })
}

/// The names that are available in prompts of a kind, except variables.
fn given(consumer: &TemplateConsumer) -> impl Iterator<Item = &'static str> {
    ENGINE_NAMES.into_iter().chain(consumer.prompt.given())
}
