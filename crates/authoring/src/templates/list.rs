//! Lists the templates of a project in every scheme: the file that is used, the files that it overrides, and unused files.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::templates::catalog::{CatalogEntry, CatalogError, TemplateCatalog};
use crate::templates::includes::IncludeGraph;
use crate::templates::requests::TemplateRequests;
use crate::validate::templates::examine;
use bcc_check::templates::unused::name_and_version;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::error::EngineError;
use bcc_lang::template::front_matter::split_all;
use bcc_lang::template::layers::{DEFAULT_SCHEME, TemplateLayer, display_name};
use bcc_runtime::actions::KINDS;
use bcc_runtime::program::monitor::Monitor;
use bcc_runtime::program::orchestration::ORCHESTRATOR;
use bcc_runtime::program::persona::PERSONA;

#[derive(Clone, Debug)]
pub struct TemplateListing {
    /// The requested schemes, the default one first.
    pub schemes: Vec<SchemeEntry>,
    /// Unused files of the project, with the reason.
    pub unused: Vec<CatalogError>,
    pub errors: Vec<CatalogError>,
}

impl TemplateListing {
    /// One JSON document. `chosen` is the scheme of the project.
    pub fn as_value(&self, chosen: Option<&str>) -> Value {
        let template = |it: &TemplateEntry| {
            json!({
                "file": it.file, "name": it.name, "version": it.version, "layer": name_of(it.layer), "path": it.path,
                "overrides": it.overrides, "description": it.description, "pulls_in": it.includes, "pulled_in_by": it.included_by,
                "unused": it.unused, "fault": it.error,
            })
        };
        let scheme = |it: &SchemeEntry| {
            json!({
                "name": it.name, "of_project": it.of_project, "named": it.named,
                "templates": it.templates.iter().map(template).collect::<Vec<_>>(),
            })
        };
        let errors = |errors: &[CatalogError]| {
            errors.iter().map(|error| json!({ "path": error.path, "why": error.reason })).collect::<Vec<_>>()
        };
        json!({
            "version": 1,
            "project_scheme": chosen,
            "schemes": self.schemes.iter().map(scheme).collect::<Vec<_>>(),
            "unused": errors(&self.unused),
            "faults": errors(&self.errors),
        })
    }
}

const fn name_of(layer: TemplateLayer) -> &'static str {
    match layer {
        TemplateLayer::Scheme => "scheme",
        TemplateLayer::BuiltinScheme => "built_in_scheme",
        TemplateLayer::Default => "default",
        TemplateLayer::Builtin => "built_in_default",
    }
}

#[derive(Clone, Debug)]
pub struct SchemeEntry {
    pub name: String,
    pub of_project: bool,
    /// Whether `bcc-script.toml` or a script names it; `None` if some scripts could not be read. The default scheme is
    /// always used.
    pub named: Option<bool>,
    pub templates: Vec<TemplateEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateEntry {
    /// `ai_ask_v1.md`
    pub file: String,
    /// `ai_ask`; for an include file, its name without the extension.
    pub name: String,
    /// Its version; `None` for an include file.
    pub version: Option<u32>,
    pub layer: TemplateLayer,
    /// The displayed path of the file.
    pub path: String,
    /// The files that it overrides, in lookup order.
    pub overrides: Vec<String>,
    pub description: Option<String>,
    pub includes: Vec<String>,
    pub included_by: Vec<String>,
    /// Why nothing in this scheme uses it.
    pub unused: Option<Message>,
    pub error: Option<Message>,
}

/// The base names of the templates that this release uses.
pub fn kinds() -> Vec<&'static str> {
    let own = KINDS.iter().filter(|kind| kind.prompt().is_some()).map(|kind| kind.name());
    let other = KINDS.iter().flat_map(|kind| kind.prompts()).map(|(name, _)| *name);
    let watching = KINDS.iter().filter_map(|kind| kind.monitor().map(Monitor::name));
    own.chain(other).chain(watching).chain([ORCHESTRATOR, PERSONA]).collect()
}

/// Lists the templates of the project in this directory: of one scheme, or of all. `chosen` is the scheme that its
/// configuration names.
/// Errors: `Usage` if there is no such scheme, or it has more files than a session can have.
pub fn list(directory: &Path, only: Option<&str>, chosen: Option<&str>) -> Result<TemplateListing, EngineError> {
    let catalog = TemplateCatalog::of(directory);
    if let Some(only) = only {
        catalog.check_scheme(only)?;
    }
    let requests = TemplateRequests::of_project(directory);
    let all = catalog.schemes();
    let mut graphs: BTreeMap<&str, IncludeGraph> = BTreeMap::new();
    for scheme in &all {
        graphs.insert(scheme, IncludeGraph::of(&catalog, scheme)?);
    }
    let named = |scheme: &str| match scheme {
        DEFAULT_SCHEME => Some(true),
        _ if requests.schemes.contains(scheme) || chosen == Some(scheme) => Some(true),
        _ => requests.complete.then_some(false),
    };
    let listed = |scheme: &String| SchemeEntry {
        name: scheme.clone(),
        of_project: catalog.is_of_project(scheme),
        named: named(scheme),
        templates: match graphs.get(scheme.as_str()) {
            Some(graph) => {
                catalog.served(scheme).values().filter_map(|files| template(files, graph, &requests)).collect()
            }
            None => Vec::new(),
        },
    };
    let schemes = all.iter().map(listed).collect::<Vec<_>>();
    let unused = unused(directory, &catalog, &schemes, graphs.values());
    let mut faults = catalog.errors().to_vec();
    let mistakes = graphs.values().flat_map(|graph| &graph.errors);
    faults.extend(mistakes.filter(|((place, _), _)| !place.starts_with("builtin/")).map(|((place, name), mistake)| {
        let reason = msg!("{mistake} (run `bcc-script templates check` for details)");
        CatalogError { path: display_name(place, name), reason, fatal: false }
    }));
    faults.sort();
    faults.dedup();
    let schemes = schemes.into_iter().filter(|scheme| only.is_none_or(|only| only == scheme.name)).collect();
    Ok(TemplateListing { schemes, unused, errors: faults })
}

fn template(files: &[&CatalogEntry], includes: &IncludeGraph, requests: &TemplateRequests) -> Option<TemplateEntry> {
    let (file, overrides) = files.split_first()?;
    let parsed = name_and_version(&file.name);
    let stem = file.name.strip_suffix(".md").unwrap_or(&file.name);
    let (name, version) = parsed.map_or((stem, None), |(name, version)| (name, Some(version)));
    let by = includes.included_by.get(&(file.place.clone(), file.name.clone()));
    let text = file.text.as_deref().unwrap_or_default();
    let description = split_all(text).0.front.description;
    Some(TemplateEntry {
        file: file.name.clone(),
        name: name.to_owned(),
        version,
        layer: TemplateLayer::of(&file.place)?,
        path: file.shown(),
        overrides: overrides.iter().map(|file| file.shown()).collect(),
        description: description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
        includes: includes.includes.get(&file.name).into_iter().flatten().cloned().collect(),
        included_by: by.into_iter().flatten().cloned().collect(),
        unused: unused_reason(&file.name, requests)
            .filter(|_| by.is_none() && !(version.is_none() && includes.incomplete)),
        error: file.text.as_ref().err().cloned(),
    })
}

/// Why a file with this name is unused if no other template includes it.
fn unused_reason(file: &str, requests: &TemplateRequests) -> Option<Message> {
    let Some((name, version)) = name_and_version(file) else {
        return Some(msg!("no other template includes it"));
    };
    if !kinds().contains(&name) {
        return Some(msg!("nothing uses a template `{name}`, and no other template includes it"));
    }
    // Actions without `version` use version 1; only action types can request another one.
    let never = version > 1 && requests.asks(name, version) == Some(false);
    never.then(|| msg!("no script of this project uses version {version} of `{name}`"))
}

/// The files of the project that no scheme uses, and those that no lookup finds.
fn unused<'p>(
    directory: &Path,
    catalog: &TemplateCatalog,
    schemes: &[SchemeEntry],
    graphs: impl Iterator<Item = &'p IncludeGraph>,
) -> Vec<CatalogError> {
    // A file that one scheme includes is used, even if others do not include it.
    let mut needed: BTreeSet<String> =
        graphs.flat_map(|graph| graph.included_by.keys()).map(|(place, name)| display_name(place, name)).collect();
    let mut reasons: BTreeMap<&str, &Message> = BTreeMap::new();
    for template in schemes.iter().flat_map(|scheme| &scheme.templates) {
        match &template.unused {
            Some(reason) => drop(reasons.insert(&template.path, reason)),
            None => drop(needed.insert(template.path.clone())),
        }
    }
    let own: BTreeSet<String> =
        catalog.files().iter().filter(|file| !file.is_built_in()).map(CatalogEntry::shown).collect();
    let unused_error = |(path, reason): (&str, &Message)| {
        let error = || CatalogError { path: path.to_owned(), reason: Message::clone(reason), fatal: false };
        (own.contains(path) && !needed.contains(path)).then(error)
    };
    let mut unused: Vec<CatalogError> = reasons.into_iter().filter_map(unused_error).collect();
    // Files that only look like templates are reported by a rule of `validate`, which suggests the intended name.
    for found in examine(directory, &PathNames::relative_to(directory.to_path_buf()), None, None, &|_| None) {
        if found.rule != "unused-template" {
            continue;
        }
        let path = found.file.name().to_owned();
        let reason = match found.help {
            Some(help) => Message::list(Joint::Semicolon, [found.message, help]),
            None => found.message,
        };
        unused.retain(|error| error.path != path);
        unused.push(CatalogError { path, reason, fatal: false });
    }
    unused.sort();
    unused
}
