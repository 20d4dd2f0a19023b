//! `unknown-template-name` in the file of a template: names that neither the engine nor the kind nor a script provides.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::templates::legacy_engine::{self, lines};
use crate::templates::quotes;
use crate::templates::template_set::{TemplateConsumer, TemplateSet};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::legacy::engine::SLUG;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::{near, single, suggestion};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
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
    // A name that is used several times is one problem.
    let mut causes: BTreeMap<(usize, &str, BTreeSet<&'static str>), Vec<&NameUse>> = BTreeMap::new();
    for ((template, number), kinds) in unknown {
        let loaded = set.templates.files().get(template);
        let used = loaded.and_then(|loaded| loaded.names().get(number));
        let (Some(loaded), Some(used)) = (loaded, used) else { continue };
        if !quotes::is_part(loaded, loaded.span(&used.range)) {
            causes.entry((template, &used.name, kinds)).or_default().push(used);
        }
    }
    for ((template, name, kinds), uses) in causes {
        let (Some(source), Some(loaded)) = (set.own(template), set.templates.files().get(template)) else { continue };
        let spans: Vec<Span> = uses.iter().map(|used| loaded.span(&used.range)).collect();
        let (Some(first), Some(span)) = (uses.first(), spans.first().copied()) else { continue };
        let of_kinds: Vec<&TemplateConsumer> =
            consumers.iter().filter(|consumer| kinds.contains(consumer.kind)).collect();
        let replaced = |current: &str| spans.iter().map(|span| Edit::replace(*span, current)).collect();
        let all_kinds = |name: &'static str| of_kinds.iter().all(|consumer| given(consumer).any(|given| given == name));
        let older = legacy_engine::current_name(
            name,
            of_kinds.iter().flat_map(|consumer| given(consumer)).filter(|given| all_kinds(given)),
        );
        // Without the scripts, another name may be a variable of one of them.
        if let Some(current) = older.filter(|current| variables.is_some() || current.contains('.')) {
            let message = msg!("`{}` is a name of an older engine; here it is `{current}`", shortened(name));
            let message = with_places(message, source, &spans);
            let diagnostic = Diagnostic::error(SLUG, message, source, span).with_help(msg!("write `{current}`"));
            found.push(diagnostic.with_sure_fix(msg!("write `{current}`"), replaced(current)));
            continue;
        }
        let Some(diagnostic) = describe(first, &of_kinds, consumers, variables) else { continue };
        let message = with_places(diagnostic.message, source, &spans);
        let mut finding = if variables.is_some() {
            Diagnostic::error("unknown-template-name", message, source, span)
        } else {
            Diagnostic::warning("unknown-template-name", message, source, span)
        };
        finding = finding.with_help(diagnostic.help);
        if let Some(instead) = diagnostic.instead {
            finding = finding.with_fix(msg!("use `{instead}`"), replaced(&instead));
        }
        found.push(finding);
    }
}

/// The message, with the number of places if there are several.
fn with_places(message: Message, source: &SourceFile, spans: &[Span]) -> Message {
    if spans.len() < 2 {
        return message;
    }
    let (count, lines) = (spans.len(), lines(source, spans.iter().copied()));
    msg!("{message} ({count} places, on lines {lines})")
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
