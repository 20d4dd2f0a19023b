//! `templates`: lists, shows, renders, compares, copies and checks the prompt templates of a project.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::exit::Exit;
use crate::cli::findings::Reporting;
use crate::cli::language::chosen;
use crate::cli::print::{print, write_out};
use crate::cli::render::{RenderArgs, render};
use crate::cli::report;
use crate::cli::templates_diff::{DiffArgs, diff};
use crate::cli::templates_list::{ListArgs, list};
use bcc_authoring::templates::catalog::{CatalogEntry, TemplateCatalog};
use bcc_authoring::templates::check::check;
use bcc_authoring::templates::find::find;
use bcc_authoring::templates::new::{MadeScheme, NewScheme, new_scheme};
use bcc_authoring::templates::project::{directory, scheme_of_project};
use bcc_authoring::templates::source::{default_source, is_built_in};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::source::render::visible::visible;
use bcc_lang::template::layers::DEFAULT_SCHEME;

#[derive(Debug, Subcommand)]
pub enum TemplatesCommand {
    /// List the templates: the layer of each, what it overrides, and which are unused
    List(ListArgs),
    /// Print a template unchanged, and on standard error where it comes from
    Show(ShowArgs),
    /// Show the messages that would be sent to the model, without sending them
    Render(RenderArgs),
    /// Compare a scheme with another one
    #[command(alias = "compare")]
    Diff(DiffArgs),
    /// Copy templates into a scheme of the project for editing; no file is overwritten
    New(NewTemplatesArgs),
    /// Check only the templates of the project, as `validate` does
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Template: `ai_ask`, `ai_ask_v2`, `ai_ask_v2.md` or an included file such as `safety.md`
    pub name: String,
    /// Scheme [default: that of bcc-script.toml, otherwise `default`]
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Version, if NAME does not specify one [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=999))]
    pub version: Option<u32>,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct NewTemplatesArgs {
    /// Name of the scheme: letters, digits, `_` and `-`
    pub scheme: String,
    /// Templates to copy [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Scheme to copy from: `english`, `chinese`, `default` or one of the project [default: the built-in one of the same
    /// name, otherwise that of bcc-script.toml, otherwise the one for the language of the project's scripts]
    #[arg(long, value_name = "SCHEME")]
    pub from: Option<String>,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Scheme to check [default: all schemes of the project]
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    #[command(flatten)]
    pub reporting: Reporting,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

pub fn templates(options: &TemplatesCommand, environment: &Environment) -> Result<Exit, EngineError> {
    match options {
        TemplatesCommand::List(options) => list(options, environment),
        TemplatesCommand::Show(options) => show(options, environment),
        TemplatesCommand::Render(options) => render(options, environment),
        TemplatesCommand::Diff(options) => diff(options, environment),
        TemplatesCommand::New(options) => new(options, environment),
        TemplatesCommand::Check(options) => {
            let directory = directory(options.project.as_deref(), environment)?;
            let report = check(&directory, options.scheme.as_deref(), &options.reporting.rules, environment)?;
            options.reporting.write(&report)?;
            Ok(options.reporting.exit(&report))
        }
    }
}

fn show(options: &ShowArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = directory(options.project.as_deref(), environment)?;
    let scheme = match &options.scheme {
        Some(scheme) => scheme.clone(),
        None => scheme_of_project(&directory, environment)?.unwrap_or_else(|| DEFAULT_SCHEME.to_owned()),
    };
    let catalog = TemplateCatalog::of(&directory);
    let found_template = find(&catalog, &scheme, &options.name, options.version)?;
    let text = found_template.file.readable()?;
    let overridden = Message::values(found_template.overrides.iter().copied().map(CatalogEntry::shown));
    report::quiet(&match found_template.overrides.is_empty() {
        true => msg!("{}, as used by the scheme `{scheme}`", found_template.file.shown()),
        false => msg!("{}, as used by the scheme `{scheme}`; it overrides {overridden}", found_template.file.shown()),
    });
    let shown = if std::io::stdout().is_terminal() { visible(text) } else { text.to_owned() };
    write_out(shown.as_bytes())?;
    Ok(Exit::Done)
}

fn new(options: &NewTemplatesArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = directory(options.project.as_deref(), environment)?;
    let scheme = options.scheme.as_str();
    // A configuration that cannot be read names no scheme.
    let configured = scheme_of_project(&directory, environment).ok().flatten();
    let from = match &options.from {
        Some(from) => from.clone(),
        None => default_source(&directory, configured.as_deref(), scheme, chosen()),
    };
    let from = from.as_str();
    let request = NewScheme { project: &directory, scheme, from: Some(from), names: &options.names };
    let created = new_scheme(&request)?;
    created.written.iter().try_for_each(|name| print(&format!("{}/{name}", created.shown)))?;
    print_hints(&created, scheme, from, configured.as_deref());
    Ok(Exit::Done)
}

/// Reports which scheme was copied.
pub fn print_source(from: &str) {
    report::note(&msg!("copied from the scheme `{from}`"));
}

/// Reports existing files, and what to do next. `configured` is the scheme of the project.
fn print_hints(created: &MadeScheme, scheme: &str, from: &str, configured: Option<&str>) {
    if !created.existing.is_empty() {
        report::note(&msg!("already present and not changed: {}", Message::values(&created.existing)));
    }
    if created.written.is_empty() {
        report::note("nothing was written");
        return;
    }
    print_source(from);
    if configured != Some(scheme) {
        report::note(&msg!(
            "to use it, write `template_scheme: {scheme}` under `session:` of a script, or `scheme = \"{scheme}\"` under `[project]` of \
             bcc-script.toml, or run with `--scheme {scheme}`"
        ));
    }
    // A template that the project lacks comes from the built-in scheme of the same name, otherwise from the default one.
    let built_in = is_built_in(scheme);
    let is_default = if built_in { from == scheme } else { [DEFAULT_SCHEME, scheme].contains(&from) };
    let against = match is_default {
        true if built_in => " --against-built-in".to_owned(),
        false if built_in || from != DEFAULT_SCHEME => format!(" --against {from}"),
        _ => String::new(),
    };
    report::note(&msg!("`bcc-script templates diff --scheme {scheme}{against}` shows your changes"));
    report::note(&match (is_default, built_in) {
        (true, false) => msg!("files that you do not change can be deleted: the default scheme provides them"),
        (true, true) => {
            msg!("files that you do not change can be deleted: the built-in scheme `{scheme}` provides them")
        }
        (false, false) => msg!(
            "keep all of the files: templates that `{scheme}` lacks come from the default scheme, not from `{from}`"
        ),
        (false, true) => msg!(
            "keep all of the files: templates that `{scheme}` lacks come from the built-in scheme `{scheme}`, not from `{from}`"
        ),
    });
}
