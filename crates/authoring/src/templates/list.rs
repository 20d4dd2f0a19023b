//! Every template of a project in every scheme: which file serves it, what that overrides, and what is of no use.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::templates::catalog::{CatalogEntry, CatalogError, TemplateCatalog};
use crate::templates::includes::IncludeGraph;
use crate::templates::requests::TemplateRequests;
use crate::validate::templates::examine;
use bcc_check::templates::template_set::LATER_TEMPLATES;
use bcc_check::templates::unused::name_and_version;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::error::EngineError;
use bcc_lang::template::front_matter::cut_all;
use bcc_lang::template::layers::{DEFAULT_SCHEME, TemplateLayer, shown};
use bcc_runtime::actions::KINDS;
use bcc_runtime::program::monitor::Monitor;
use bcc_runtime::program::orchestration::ORCHESTRATOR;
use bcc_runtime::program::persona::PERSONA;

#[derive(Clone, Debug)]
pub struct TemplateListing {
    /// The schemes that were asked for, the default one first.
    pub schemes: Vec<SchemeEntry>,
    /// Files of the project that are of no use, with the reason.
    pub unused: Vec<CatalogError>,
    pub faults: Vec<CatalogError>,
}

#[derive(Clone, Debug)]
pub struct SchemeEntry {
    pub name: String,
    pub of_project: bool,
    /// Whether `bcc-script.toml` or a script names it; none where not every script could be read. The default one is named by
    /// whoever names none.
    pub named: Option<bool>,
    pub templates: Vec<TemplateEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateEntry {
    /// `ai_ask_v1.md`
    pub file: String,
    /// `ai_ask`; the name of the file without its end where it is a part of others.
    pub name: String,
    /// Its version; none for a part of others.
    pub version: Option<u32>,
    pub layer: TemplateLayer,
    /// The file, as people are shown it.
    pub path: String,
    /// The files that it stands before, the nearest first.
    pub overrides: Vec<String>,
    pub description: Option<String>,
    pub pulls: Vec<String>,
    pub pulled_by: Vec<String>,
    /// Why nothing in this scheme needs it.
    pub unused: Option<Message>,
    pub fault: Option<Message>,
}

/// The names with which the names of templates begin that this release asks for.
pub fn kinds() -> Vec<&'static str> {
    let own = KINDS.iter().filter(|kind| kind.prompt().is_some()).map(|kind| kind.name());
    let other = KINDS.iter().flat_map(|kind| kind.prompts()).map(|(name, _)| *name);
    let watching = KINDS.iter().filter_map(|kind| kind.monitor().map(Monitor::name));
    own.chain(other).chain(watching).chain([ORCHESTRATOR, PERSONA]).collect()
}

/// Lists the templates of the project in this directory: of one scheme, or of all. `chosen` is the scheme that its
/// configuration names.
/// Errors: `Usage` when there is no such scheme, or its files are more than a session can have.
pub fn list(directory: &Path, only: Option<&str>, chosen: Option<&str>) -> Result<TemplateListing, EngineError> {
    let shelf = TemplateCatalog::of(directory);
    if let Some(only) = only {
        shelf.known(only)?;
    }
    let asked = TemplateRequests::by(directory);
    let all = shelf.schemes();
    let mut pulls: BTreeMap<&str, IncludeGraph> = BTreeMap::new();
    for scheme in &all {
        pulls.insert(scheme, IncludeGraph::of(&shelf, scheme)?);
    }
    let named = |scheme: &str| match scheme {
        DEFAULT_SCHEME => Some(true),
        _ if asked.schemes.contains(scheme) || chosen == Some(scheme) => Some(true),
        _ => asked.whole.then_some(false),
    };
    let listed = |scheme: &String| SchemeEntry {
        name: scheme.clone(),
        of_project: shelf.is_of_project(scheme),
        named: named(scheme),
        templates: match pulls.get(scheme.as_str()) {
            Some(pulls) => shelf.served(scheme).values().filter_map(|files| template(files, pulls, &asked)).collect(),
            None => Vec::new(),
        },
    };
    let schemes = all.iter().map(listed).collect::<Vec<_>>();
    let unused = unused(directory, &shelf, &schemes, pulls.values());
    let mut faults = shelf.faults().to_vec();
    let mistakes = pulls.values().flat_map(|pulls| &pulls.mistakes);
    faults.extend(mistakes.filter(|((place, _), _)| !place.starts_with("builtin/")).map(|((place, name), mistake)| {
        let why = msg!("{mistake} (run `bcc-script templates check` for details)");
        CatalogError { path: shown(place, name), why, fatal: false }
    }));
    faults.sort();
    faults.dedup();
    let schemes = schemes.into_iter().filter(|scheme| only.is_none_or(|only| only == scheme.name)).collect();
    Ok(TemplateListing { schemes, unused, faults })
}

fn template(files: &[&CatalogEntry], pulls: &IncludeGraph, asked: &TemplateRequests) -> Option<TemplateEntry> {
    let (file, overrides) = files.split_first()?;
    let parsed = name_and_version(&file.name);
    let stem = file.name.strip_suffix(".md").unwrap_or(&file.name);
    let (name, version) = parsed.map_or((stem, None), |(name, version)| (name, Some(version)));
    let by = pulls.into.get(&(file.place.clone(), file.name.clone()));
    let text = file.text.as_deref().unwrap_or_default();
    let description = cut_all(text).0.front.description;
    Some(TemplateEntry {
        file: file.name.clone(),
        name: name.to_owned(),
        version,
        layer: TemplateLayer::of(&file.place)?,
        path: file.shown(),
        overrides: overrides.iter().map(|file| file.shown()).collect(),
        description: description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
        pulls: pulls.by.get(&file.name).into_iter().flatten().cloned().collect(),
        pulled_by: by.into_iter().flatten().cloned().collect(),
        unused: needless(&file.name, asked).filter(|_| by.is_none() && !(version.is_none() && pulls.unsure)),
        fault: file.text.as_ref().err().cloned(),
    })
}

/// Why nothing needs a file of this name that no other pulls in.
fn needless(file: &str, asked: &TemplateRequests) -> Option<Message> {
    let Some((name, version)) = name_and_version(file) else {
        return Some(msg!("no other template includes it"));
    };
    if LATER_TEMPLATES.contains(&name) {
        return Some(msg!("`{name}` is planned for a later release"));
    }
    if !kinds().contains(&name) {
        return Some(msg!("nothing uses a template `{name}`, and no other template includes it"));
    }
    // Version 1 is what every action without `version` gets; only the kinds themselves can ask for another.
    let never = version > 1 && asked.asks(name, version) == Some(false);
    never.then(|| msg!("no script of this project uses version {version} of `{name}`"))
}

/// The files of the project that no scheme needs, and those that no look-up finds.
fn unused<'p>(
    directory: &Path,
    shelf: &TemplateCatalog,
    schemes: &[SchemeEntry],
    pulls: impl Iterator<Item = &'p IncludeGraph>,
) -> Vec<CatalogError> {
    // What some scheme pulls in is needed, though in another nothing does.
    let mut needed: BTreeSet<String> =
        pulls.flat_map(|pulls| pulls.into.keys()).map(|(place, name)| shown(place, name)).collect();
    let mut reasons: BTreeMap<&str, &Message> = BTreeMap::new();
    for template in schemes.iter().flat_map(|scheme| &scheme.templates) {
        match &template.unused {
            Some(why) => drop(reasons.insert(&template.path, why)),
            None => drop(needed.insert(template.path.clone())),
        }
    }
    let own: BTreeSet<String> =
        shelf.files().iter().filter(|file| !file.is_built_in()).map(CatalogEntry::shown).collect();
    let idle = |(path, why): (&str, &Message)| {
        let fault = || CatalogError { path: path.to_owned(), why: Message::clone(why), fatal: false };
        (own.contains(path) && !needed.contains(path)).then(fault)
    };
    let mut unused: Vec<CatalogError> = reasons.into_iter().filter_map(idle).collect();
    // What only looks like a template is told by the rule of `validate`, which knows what was meant.
    for found in examine(directory, &PathNames::seen_from(directory.to_path_buf()), None, &|_| None) {
        if found.rule != "unused-template" {
            continue;
        }
        let path = found.file.name().to_owned();
        let why = match found.help {
            Some(help) => Message::list(Joint::Semicolon, [found.message, help]),
            None => found.message,
        };
        unused.retain(|fault| fault.path != path);
        unused.push(CatalogError { path, why, fatal: false });
    }
    unused.sort();
    unused
}
