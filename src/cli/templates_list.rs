//! `templates list`: a table of one scheme or of all schemes, or one JSON document.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::language::translated;
use crate::cli::print::{print, print_json, print_translated};
use crate::cli::report;
use crate::cli::table::table;
use bcc_authoring::templates::catalog::CatalogError;
use bcc_authoring::templates::list::{SchemeEntry, TemplateEntry, TemplateListing, list as listing};
use bcc_authoring::templates::project::{directory, scheme_of_project};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::template::layers::{DEFAULT_SCHEME, TemplateLayer};

/// An empty cell.
const EMPTY_CELL: &str = "–";

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show only this scheme, in more detail
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Runs the subcommand. If something cannot be read, the exit code is 1, and everything else is listed.
pub fn list(options: &ListArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = directory(options.project.as_deref(), environment)?;
    let (chosen, broken) = match scheme_of_project(&directory, environment) {
        Ok(chosen) => (chosen, None),
        Err(error) => (None, Some(error)),
    };
    let found = listing(&directory, options.scheme.as_deref(), chosen.as_deref())?;
    if options.json {
        print_json(&found.as_value(chosen.as_deref()))?;
    } else {
        match (found.schemes.as_slice(), options.scheme.is_some()) {
            ([scheme], true) => print(&scheme_table(scheme))?,
            (schemes, _) => print_schemes(schemes)?,
        }
        print_unused(&found, options.scheme.is_some())?;
    }
    if let Some(error) = &broken {
        report::error(error);
    } else if let Some(chosen) = chosen.filter(|chosen| options.scheme.is_none() && !has_scheme(&found, chosen)) {
        report::note(&msg!("bcc-script.toml specifies the scheme `{chosen}`, which does not exist"));
    }
    for CatalogError { path, reason, .. } in &found.errors {
        report::note(&Message::list(Joint::Colon, [Message::text(on_one_line(path)), reason.clone()]));
    }
    let failed = broken.is_some() || found.errors.iter().any(|error| error.fatal);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn has_scheme(listing: &TemplateListing, scheme: &str) -> bool {
    listing.schemes.iter().any(|listed| listed.name == scheme)
}

/// Prints the layer of each template in each scheme, then the files of the project.
fn print_schemes(schemes: &[SchemeEntry]) -> Result<(), EngineError> {
    let mut by_name: BTreeMap<(bool, &str, Option<u32>), BTreeMap<&str, &TemplateEntry>> = BTreeMap::new();
    for scheme in schemes {
        for template in &scheme.templates {
            let key = (template.version.is_none(), template.name.as_str(), template.version);
            by_name.entry(key).or_default().insert(&scheme.name, template);
        }
    }
    let head = ["TEMPLATE", "VERSION"]
        .into_iter()
        .map(translated_cell)
        .chain(schemes.iter().map(|scheme| scheme.name.clone()));
    let mut rows = vec![head.collect::<Vec<_>>()];
    for ((_, name, version), in_schemes) in &by_name {
        let mut row = vec![on_one_line(name), number(*version)];
        let cell =
            |scheme: &SchemeEntry| in_schemes.get(scheme.name.as_str()).map_or(EMPTY_CELL, |it| layer(it, scheme));
        row.extend(schemes.iter().map(|scheme| cell(scheme).to_owned()));
        rows.push(row);
    }
    print(&table(&rows))?;
    print("")?;
    print_translated(
        "own: a file of the project for this scheme; built-in: a template in the binary; default: the template of the scheme `default`",
    )?;
    print("")?;
    let own = schemes.iter().flat_map(|scheme| scheme.templates.iter().filter(|it| layer(it, scheme) == OWN));
    let head = ["FILE", "OVERRIDES", "DESCRIPTION"].map(translated_cell).to_vec();
    let row = |it: &TemplateEntry| vec![on_one_line(&it.path), overrides(it), description(it)];
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(own.map(row)).collect();
    if rows.len() > 1 {
        print(&table(&rows))
    } else {
        print_translated(
            "The project has no templates of its own. `bcc-script templates new SCHEME` copies the built-in templates into it.",
        )
    }
}

const OWN: &str = "own";

/// The name of the layer of a template.
fn layer(template: &TemplateEntry, scheme: &SchemeEntry) -> &'static str {
    match (template.layer, scheme.name == DEFAULT_SCHEME) {
        (TemplateLayer::Scheme, _) | (TemplateLayer::Default, true) => OWN,
        (TemplateLayer::BuiltinScheme, _) | (TemplateLayer::Builtin, true) => "built-in",
        (TemplateLayer::Default | TemplateLayer::Builtin, false) => "default",
    }
}

fn scheme_table(scheme: &SchemeEntry) -> String {
    let head = ["TEMPLATE", "VERSION", "FILE", "OVERRIDES", "DESCRIPTION"].map(translated_cell).to_vec();
    let row = |it: &TemplateEntry| {
        vec![on_one_line(&it.name), number(it.version), on_one_line(&it.path), overrides(it), description(it)]
    };
    let mut templates: Vec<&TemplateEntry> = scheme.templates.iter().collect();
    templates.sort_by_key(|it| (it.version.is_none(), it.name.as_str(), it.version));
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(templates.into_iter().map(row)).collect();
    table(&rows)
}

fn translated_cell(text: &str) -> String {
    translated(text).into_owned()
}

fn number(version: Option<u32>) -> String {
    version.map_or_else(|| EMPTY_CELL.to_owned(), |version| version.to_string())
}

/// The overridden files, without the common parts of their paths.
fn overrides(template: &TemplateEntry) -> String {
    let end = format!("/{}", template.file);
    let short = |path: &String| path.replace("_system/config/", "").trim_end_matches(end.as_str()).to_owned();
    match template.overrides.as_slice() {
        [] => EMPTY_CELL.to_owned(),
        files => translated(&Message::values(files.iter().map(short))).into_owned(),
    }
}

fn description(template: &TemplateEntry) -> String {
    let unreadable = template.error.as_ref().map(|_| translated_cell("cannot be read"));
    let part = (!template.included_by.is_empty()).then(|| {
        translated(&msg!("part of {}", Message::values(template.included_by.iter().map(|name| on_one_line(name)))))
            .into_owned()
    });
    let parts: Vec<String> = [unreadable, template.description.clone(), part].into_iter().flatten().collect();
    if parts.is_empty() { EMPTY_CELL.to_owned() } else { parts.join("; ") }
}

/// Prints unused schemes and files. With `single_scheme`, without files of other schemes.
fn print_unused(listing: &TemplateListing, single_scheme: bool) -> Result<(), EngineError> {
    let is_unused = |scheme: &&SchemeEntry| scheme.of_project && scheme.named == Some(false);
    let schemes: Vec<Message> = listing
        .schemes
        .iter()
        .filter(is_unused)
        .map(|scheme| msg!("scheme `{}`: not used by any script of this project or by bcc-script.toml", scheme.name))
        .collect();
    let of_other_schemes = |file: &&CatalogError| {
        let scheme = file.path.strip_prefix("_system/config/custom/").and_then(|path| path.split_once('/'));
        single_scheme && scheme.is_some_and(|(scheme, _)| !has_scheme(listing, scheme))
    };
    let files = listing.unused.iter().filter(|file| !of_other_schemes(file));
    let lines: Vec<Message> = schemes
        .into_iter()
        .chain(files.map(|file| Message::list(Joint::Colon, [Message::text(&file.path), file.reason.clone()])))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    print("")?;
    print_translated("UNUSED")?;
    lines.iter().try_for_each(|line| print(&on_one_line(&translated(line))))
}

/// A name on one line, with escaped control characters.
fn on_one_line(name: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(shown).collect()
}
