//! `unknown-template-name` in a template's own file: names that neither the engine, nor the kind, nor any script gives.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::templates::quotes;
use crate::templates::template_set::{TemplateConsumer, TemplateSet};
use bcc_lang::script::fields::shortened;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::{asked, near, only};
use bcc_lang::template::features::FUNCTIONS;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::uses::NameUse;
use bcc_runtime::program::turn::ENGINE_NAMES;

pub fn check(
    set: &TemplateSet<'_>,
    roots: &[(usize, Option<TemplateConsumer>)],
    asking: &[TemplateConsumer],
    variables: Option<&BTreeSet<String>>,
    found: &mut Vec<Diagnostic>,
) {
    // A part may belong to prompts of several kinds: what is wrong with a use of a name is said once.
    let mut unknown: BTreeMap<(usize, usize), BTreeSet<&'static str>> = BTreeMap::new();
    for (root, asking) in roots.iter().filter_map(|(root, asking)| Some((*root, (*asking)?))) {
        visit(set.templates, root, &mut HashSet::new(), &mut |member| {
            for (number, used) in member.names().filter(|(_, used)| !used.optional) {
                let name = used.name.as_str();
                let of_scripts = variables.is_some_and(|variables| variables.contains(name));
                if !(of_scripts || FUNCTIONS.contains(&name) || given(&asking).any(|given| given == name)) {
                    unknown.entry((member.template, number)).or_default().insert(asking.kind);
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
        let of_kinds: Vec<&TemplateConsumer> = asking.iter().filter(|asking| kinds.contains(asking.kind)).collect();
        let Some(diagnostic) = tell(used, &of_kinds, asking, variables) else { continue };
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

struct Told {
    message: Message,
    help: Message,
    instead: Option<String>,
}

/// Without scripts, only what is near to a name that is given: another may be a variable.
fn tell(
    used: &NameUse,
    kinds: &[&TemplateConsumer],
    all: &[TemplateConsumer],
    variables: Option<&BTreeSet<String>>,
) -> Option<Told> {
    let name = used.name.as_str();
    let prompts = kinds.iter().map(|asking| format!("`{}`", asking.kind)).collect::<Vec<_>>().join(" and ");
    let shown = shortened(name);
    let elsewhere: Vec<&str> = all
        .iter()
        .filter(|asking| asking.prompt.given().any(|given| given == name))
        .map(|asking| asking.kind)
        .collect();
    if !elsewhere.is_empty() {
        let message =
            msg!("`{shown}` is available in prompts of {}, but not in prompts of {prompts}", elsewhere.join(", "));
        let help = msg!(
            "make the template work without it: `{{{{ {shown} | default('') }}}}`, `{{% if {shown} is defined %}}`"
        );
        return Some(Told { message, help, instead: None });
    }
    let candidates: BTreeSet<&str> = kinds.iter().flat_map(|asking| given(asking)).collect();
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
    let help = asked(&nearest).unwrap_or_else(|| {
        msg!("declare it in the scripts, or make the template work without it: `{{{{ {shown} | default('') }}}}`")
    });
    Some(Told { message, help, instead: only(&nearest).map(str::to_owned) })
}

/// The names that prompts of a kind get, without the variables.
fn given(asking: &TemplateConsumer) -> impl Iterator<Item = &'static str> {
    ENGINE_NAMES.into_iter().chain(asking.prompt.given())
}
