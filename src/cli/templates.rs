//! `templates`: list, show, render, compare, copy and check the prompt templates of a project.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::cli::exit::Exit;
use crate::cli::findings::Reporting;
use crate::cli::print::{print, write_out};
use crate::cli::render::{Render, render};
use crate::cli::report;
use crate::cli::templates_diff::{Diff, diff};
use crate::cli::templates_list::{List, list};
use crate::cli::terminal::plain;
use bcc_authoring::templates::check::check;
use bcc_authoring::templates::find::find;
use bcc_authoring::templates::new::{MadeScheme, NewScheme, new_scheme, usual_source};
use bcc_authoring::templates::place::{directory, scheme_of_project};
use bcc_authoring::templates::shelf::{Shelf, Standing};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::template::layers::DEFAULT_SCHEME;

#[derive(Debug, Subcommand)]
pub enum Templates {
    /// List every template with the layer that serves it in each scheme, what that overrides, and what is unused
    List(List),
    /// Print a template as it is served, byte for byte; where it comes from is said on standard error
    Show(Show),
    /// Show the messages that would be sent to the model, role by role, without sending them
    Render(Render),
    /// Show how a scheme differs from the default one: exit code 0 for the same, 1 for differences, 2 for trouble
    Diff(Diff),
    /// Copy templates into a scheme of the project, where they can be changed; never overwrites a file
    New(NewTemplates),
    /// Check the templates of the project as `validate` does, and nothing else of it
    Check(Check),
}

#[derive(Debug, Args)]
pub struct Show {
    /// The template: `ai_ask`, `ai_ask_v2`, `ai_ask_v2.md` or a part such as `safety.md`
    pub name: String,
    /// As it is in this scheme [default: that of bcc-script.toml, else `default`]
    #[arg(long, value_name = "S")]
    pub scheme: Option<String>,
    /// The version, where the name does not say it [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=999))]
    pub version: Option<u32>,
    /// The project directory [default: the project around this directory]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct NewTemplates {
    /// The scheme: letters, digits, `_` and `-`
    pub scheme: String,
    /// The templates to copy [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Copy what this scheme serves: `english`, `chinese`, `default` or one of the project [default: that of bcc-script.toml, else
    /// `english` or `default`, by the language of the project's prompts]
    #[arg(long, value_name = "SCHEME")]
    pub from: Option<String>,
    /// The project directory [default: the project around this directory]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Check what this scheme is served [default: all schemes of the project]
    #[arg(long, value_name = "S")]
    pub scheme: Option<String>,
    #[command(flatten)]
    pub reporting: Reporting,
    /// The project directory [default: the project around this directory]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

pub fn templates(options: &Templates, environment: &Environment) -> Result<Exit, EngineError> {
    match options {
        Templates::List(options) => list(options, environment),
        Templates::Show(options) => show(options, environment),
        Templates::Render(options) => render(options, environment),
        Templates::Diff(options) => diff(options, environment),
        Templates::New(options) => new(options, environment),
        Templates::Check(options) => {
            let directory = directory(options.project.as_deref(), environment)?;
            let report = check(&directory, options.scheme.as_deref(), &options.reporting.rules, environment)?;
            options.reporting.write(&report)?;
            Ok(options.reporting.exit(&report))
        }
    }
}

fn show(options: &Show, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = directory(options.project.as_deref(), environment)?;
    let scheme = match &options.scheme {
        Some(scheme) => scheme.clone(),
        None => scheme_of_project(&directory, environment)?.unwrap_or_else(|| DEFAULT_SCHEME.to_owned()),
    };
    let shelf = Shelf::of(&directory);
    let served = find(&shelf, &scheme, &options.name, options.version)?;
    let text = served.file.readable()?;
    let overridden = served.overrides.iter().copied().map(Standing::shown).collect::<Vec<_>>().join(", ");
    report::quiet(&match overridden.as_str() {
        "" => format!("{}, as the scheme `{scheme}` is served it", served.file.shown()),
        files => format!("{}, as the scheme `{scheme}` is served it; it overrides {files}", served.file.shown()),
    });
    let shown = if std::io::stdout().is_terminal() { plain(text) } else { text.to_owned() };
    write_out(shown.as_bytes())?;
    Ok(Exit::Done)
}

fn new(options: &NewTemplates, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = directory(options.project.as_deref(), environment)?;
    let scheme = options.scheme.as_str();
    let from = match (&options.from, Project::in_directory(directory.clone(), false, environment)) {
        (Some(from), _) => from.clone(),
        (None, Ok(project)) => usual_source(&project, scheme),
        (None, Err(_)) => DEFAULT_SCHEME.to_owned(),
    };
    let from = from.as_str();
    let request = NewScheme { project: &directory, scheme, from: Some(from), names: &options.names };
    let made = new_scheme(&request)?;
    made.written.iter().try_for_each(|name| print(&format!("{}/{name}", made.shown)))?;
    told(&made, scheme, from, &directory, environment);
    Ok(Exit::Done)
}

/// What was kept, and what to do next.
fn told(made: &MadeScheme, scheme: &str, from: &str, directory: &Path, environment: &Environment) {
    if !made.kept.is_empty() {
        report::note(&format!("there already, and left as it is: {}", made.kept.join(", ")));
    }
    if made.written.is_empty() {
        report::note("nothing was written");
        return;
    }
    if scheme_of_project(directory, environment).ok().flatten().as_deref() != Some(scheme) {
        report::note(&format!(
            "to use it, write `template_scheme: {scheme}` under `session:` of a script, or `scheme = \"{scheme}\"` under `[project]` of \
             bcc-script.toml, or run with `--scheme {scheme}`"
        ));
    }
    let against = if from == DEFAULT_SCHEME || from == scheme { String::new() } else { format!(" --against {from}") };
    report::note(&format!("`bcc-script templates diff --scheme {scheme}{against}` shows what you change"));
    if from == DEFAULT_SCHEME {
        report::note("files that you do not change may be deleted: the default scheme serves them");
    } else {
        report::note(&format!(
            "keep all of the files: what `{scheme}` lacks comes from the default scheme, not from `{from}`"
        ));
    }
}
