//! Checks the files below `_system/`: assigns them to layers as sessions do, and runs each rule.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::rules::full_width_pattern;
use crate::rules::unknown_model::unknown_model;
use crate::secrets::secrets;
use crate::templates::layout::Layout;
use crate::templates::schemas::Schemas;
use crate::templates::template_set::{SystemFile, TemplateConsumer, TemplateSet};
use crate::templates::{fields, fixed_texts, full_width_braces, markers, mistakes, names, quotes, unused};
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::MAX_FILE_BYTES;
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::templates::Templates;
use bcc_lang::template::uses::Target;
use bcc_runtime::program::kind::Kind;
use bcc_runtime::program::orchestration::ORCHESTRATOR;
use bcc_runtime::program::orchestration::plan_prompt::ORCHESTRATOR_NAMES;
use bcc_runtime::program::persona::{PERSONA, PERSONA_NAMES};
use bcc_runtime::program::prompt::PromptNames;

/// The replacement for guarded role markers: nothing is rendered here.
const NONCE: &str = "00000000000000000000000000000000";

/// The data of a project that the check of its templates needs.
pub struct TemplateProject<'a> {
    pub files: &'a [SystemFile],
    pub kinds: &'a [&'a dyn Kind],
    /// The project's own reply schemas by name (`summary` of `schemas/replies/summary.json`), with their display names.
    pub schemas: &'a BTreeMap<String, Arc<SourceFile>>,
    /// All names that the scripts of the project declare, extract or set; `None` if the scripts were not read, so that an
    /// unknown name may be a variable of one of them.
    pub variables: Option<&'a BTreeSet<String>>,
    /// The models of its configuration, if it could be read.
    pub models: Option<&'a [String]>,
}

/// All problems in the templates and reply schemas of a project, without duplicates, in the order of the files.
///
/// Of a file that no kind uses and no template includes, such as a README.md, only the name is checked.
pub fn examine(project: &TemplateProject<'_>) -> Vec<Diagnostic> {
    let layout = Layout::of(project.files);
    let own = |kind: &dyn Kind| Some(TemplateConsumer { kind: kind.name(), prompt: kind.prompt()? });
    let monitor_consumer =
        |kind: &dyn Kind| kind.monitor().map(|by| TemplateConsumer { kind: by.name(), prompt: by.prompt() });
    let mut consumers: Vec<TemplateConsumer> = project.kinds.iter().filter_map(|kind| own(*kind)).collect();
    let other = project.kinds.iter().flat_map(|kind| kind.prompts());
    consumers.extend(other.map(|(name, prompt)| TemplateConsumer { kind: name, prompt: *prompt }));
    consumers.extend(project.kinds.iter().filter_map(|kind| monitor_consumer(*kind)));
    let orchestrator_prompt = PromptNames { common: &ORCHESTRATOR_NAMES, names: &[], outputs: false };
    consumers.push(TemplateConsumer { kind: ORCHESTRATOR, prompt: orchestrator_prompt });
    let persona_prompt = PromptNames { common: &PERSONA_NAMES, names: &[], outputs: false };
    consumers.push(TemplateConsumer { kind: PERSONA, prompt: persona_prompt });
    let schemas = Schemas::read(project.schemas, &consumers);
    let mut found: Vec<Diagnostic> = schemas.errors().to_vec();
    found.extend(project.files.iter().filter(|file| file.readable).filter_map(too_large));
    found.extend(project.files.iter().filter(|file| file.readable).flat_map(|file| secrets(&file.source)));
    let mut used: HashSet<String> = HashSet::new();
    let mut computed = false;
    for scheme in layout.schemes() {
        let (files, sources) = layout.set(scheme);
        let Ok(templates) = Templates::new(&files, NONCE) else { continue };
        let set = TemplateSet { templates: &templates, sources: &sources };
        let roots = roots(&set, &consumers);
        let reached = reached(&set, roots.iter().map(|(number, _)| *number));
        for number in &reached {
            let Some(loaded) = templates.files().get(*number) else { continue };
            used.insert(format!("{}/{}", loaded.place(), loaded.name()));
            let is_computed = |target: &Target| target.name.is_none() && quotes::unquoted(loaded, target).is_none();
            computed |= loaded.uses().targets.iter().any(is_computed);
            let Some(source) = set.own(*number) else { continue };
            found.extend(
                templates.mistakes(*number).iter().filter_map(|error| mistakes::diagnostic(loaded, error, source)),
            );
            found.extend(quotes::check(loaded, source));
            found.extend(markers::check(loaded, source));
            found.extend(fixed_texts::check(loaded, source));
            found.extend(full_width_braces::check(source, loaded.split().body));
            found.extend(full_width_pattern::of_template(source, loaded.split().body));
            found.extend(project.models.and_then(|models| model_of_template(loaded, models, source)));
        }
        names::check(&set, &roots, &consumers, project.variables, &mut found);
        for (root, consumer) in &roots {
            let (Some(consumer), Some(loaded)) = (consumer, templates.files().get(*root)) else { continue };
            if let Some(source) = set.own(*root) {
                if let Some(error) = loaded.blank() {
                    // A file that cannot be parsed has other errors.
                    if templates.mistakes(*root).is_empty() {
                        found.extend(mistakes::diagnostic(loaded, error, source));
                    }
                    continue;
                }
                found.extend(schemas.of_template(loaded, consumer, source));
            }
            found.extend(fields::check(&set, *root, consumer, schemas.reply(loaded, consumer)));
        }
    }
    found.extend(unused::check(&layout, &consumers, &used, computed));
    without_duplicates(found)
}

/// The finding about `model` of a front matter that names no model of the project.
fn model_of_template(loaded: &LoadedTemplate, models: &[String], source: &Arc<SourceFile>) -> Option<Diagnostic> {
    let split = loaded.split();
    let name = split.front.model.as_deref()?;
    let written = split.written.iter().find(|written| written.key == "model")?;
    unknown_model(name, models, source, loaded.span(&written.value))
}

/// The templates that kinds use, each with its kind; without one for kinds of later releases.
fn roots(set: &TemplateSet<'_>, consumers: &[TemplateConsumer]) -> Vec<(usize, Option<TemplateConsumer>)> {
    let root = |(number, loaded): (usize, &LoadedTemplate)| {
        let (name, _) = unused::name_and_version(loaded.name())?;
        let is_looked_up = set.templates.number(loaded.name()) == Some(number);
        let kind = consumers.iter().find(|consumer| consumer.kind == name).copied();
        (is_looked_up && kind.is_some()).then_some((number, kind))
    };
    set.templates.files().iter().enumerate().filter_map(root).collect()
}

/// The roots and the templates that they include, directly or indirectly.
fn reached(set: &TemplateSet<'_>, roots: impl Iterator<Item = usize>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<usize> = roots.collect();
    while let Some(number) = next.pop() {
        if !reached.insert(number) {
            continue;
        }
        let targets = set.templates.files().get(number).map(|loaded| loaded.uses().targets.as_slice());
        let names = targets.unwrap_or_default().iter().filter_map(|target| target.name.as_deref());
        next.extend(names.filter_map(|name| set.templates.number(name)));
    }
    reached
}

fn too_large(file: &SystemFile) -> Option<Diagnostic> {
    (file.path.ends_with(".md") && file.source.text().len() > MAX_FILE_BYTES).then(|| {
        let message = msg!("a template can be at most {} KiB long, but this one is longer", MAX_FILE_BYTES / 1024);
        Diagnostic::error("file-too-large", message, &file.source, Span::default()).with_help(
            "no model can process such a long prompt: shorten it; the data that a script works on belongs in its variables",
        )
    })
}

/// Sorts the findings and removes duplicates: a file may belong to several schemes.
fn without_duplicates(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    sort(&mut found);
    let mut seen: HashMap<(String, Span, &'static str), HashSet<Message>> = HashMap::new();
    found.retain(|finding| {
        let place = (finding.file.name().to_owned(), finding.span, finding.rule);
        seen.entry(place).or_default().insert(finding.message.clone())
    });
    found
}
