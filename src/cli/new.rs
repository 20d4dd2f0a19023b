//! `new`: creates a script, a skill, a test or a template scheme in the project.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::cli::async_runtime::wait_for;
use crate::cli::exit::Exit;
use crate::cli::print::{print, print_translated};
use crate::cli::report;
use crate::cli::templates::print_source;
use bcc_authoring::scaffold::new::{built_in_scheme, language as language_of, project, script, skill};
use bcc_authoring::scaffold::test::test;
use bcc_authoring::templates::new::{NewScheme, new_scheme};
use bcc_authoring::templates::source::{default_source, is_built_in};
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::current_directory;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_lang::message::language::Language;

/// The language of the created files.
const LANGUAGE: &str = "The files are written in the language of `--lang`; without it, in the language of the project's prompts \
if bcc-script.toml sets a template scheme, otherwise in the language of the messages.";

#[derive(Debug, Args)]
#[command(after_help = LANGUAGE)]
pub struct NewCommand {
    #[command(subcommand)]
    pub what: NewKind,
}

#[derive(Debug, Subcommand)]
pub enum NewKind {
    /// Create scripts/NAME.yaml, a script with one question
    #[command(after_help = LANGUAGE)]
    Script(NewArgs),
    /// Create skills/NAME.yaml, a skill that scripts can use
    #[command(after_help = LANGUAGE)]
    Skill(NewArgs),
    /// Create tests/NAME.yaml, a test that expects the current output of a script
    #[command(after_help = LANGUAGE)]
    Test {
        #[command(flatten)]
        named: NewArgs,
        /// Script to test [default: scripts/NAME.yaml]
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
    },
    /// Copy the prompt templates into _system/config/custom/NAME/ for editing
    Scheme {
        #[command(flatten)]
        named: NewArgs,
        /// Scheme to copy from [default: the built-in one of the same name or for `--lang`, otherwise that of
        /// bcc-script.toml, otherwise the one for the language of the project's scripts]
        #[arg(long, value_name = "SCHEME")]
        from: Option<String>,
    },
}

/// Its name, and where it goes.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name: letters, digits, `_` and `-`
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Runs the subcommand. The created files are in the language `requested` (`--lang`), otherwise in that of the project's prompts,
/// otherwise in `default`.
/// Errors: as the functions of `bcc_authoring::scaffold`, and [`new_scheme`].
pub fn new(
    options: &NewCommand,
    requested: Option<Language>,
    default: Language,
    environment: &Environment,
) -> Result<Exit, EngineError> {
    let named = options.what.named();
    let project = project(named.project.as_deref(), environment)?;
    let language = language_of(&project, requested, default);
    let names = PathNames::relative_to(current_directory()?);
    let shown = |path: &Path| names.display_name(path);
    match &options.what {
        NewKind::Script(_) => {
            let written = script(&project, &named.name, language)?;
            let path = shown(&written.path);
            print_created(&path, &format!("bcc-script run {}", quoted(&path)))
        }
        NewKind::Skill(_) => {
            let written = skill(&project, &named.name, language)?;
            let path = shown(&written.path);
            print_created(&path, &format!("bcc-script validate {}", quoted(&path)))
        }
        NewKind::Test { script, .. } => {
            let scaffold = test(&project, &named.name, script.as_deref(), language, environment);
            let written = wait_for(scaffold)?;
            let path = shown(&written.path);
            print_created(&path, &format!("bcc-script test {}", quoted(&path)))
        }
        NewKind::Scheme { from, .. } => {
            let configured = project.config.project.scheme.as_deref();
            let from = match (from, requested) {
                (Some(from), _) => from.clone(),
                (None, Some(language)) if !is_built_in(&named.name) => built_in_scheme(language).to_owned(),
                (None, _) => default_source(&project.directory, configured, &named.name, default),
            };
            let request = NewScheme { project: &project.directory, scheme: &named.name, from: Some(&from), names: &[] };
            let created = new_scheme(&request)?;
            if created.written.is_empty() {
                let error = EngineError::usage(msg!("{} already exists; nothing was changed", created.shown));
                return Err(error.with_help("choose another name"));
            }
            for name in &created.written {
                print(&format!("{}/{name}", created.shown))?;
            }
            for name in &created.existing {
                report::note(&msg!("note: {}/{name} already exists and was not changed", created.shown));
            }
            print_source(&from);
            print_next(&format!("bcc-script templates list --scheme {}", named.name))
        }
    }
}

impl NewKind {
    fn named(&self) -> &NewArgs {
        match self {
            Self::Script(named) | Self::Skill(named) | Self::Test { named, .. } | Self::Scheme { named, .. } => named,
        }
    }
}

fn print_created(path: &str, command: &str) -> Result<Exit, EngineError> {
    print(path)?;
    print_next(command)
}

fn print_next(command: &str) -> Result<Exit, EngineError> {
    print_translated(&msg!("Now try: {command}"))?;
    Ok(Exit::Done)
}
