//! `new`: write a new script, skill, test or scheme of templates into the project.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::cli::async_runtime::wait_for;
use crate::cli::exit::Exit;
use crate::cli::print::{print, tell};
use crate::cli::report;
use bcc_authoring::scaffold::new::{built_in_scheme, language as language_of, project, script, skill};
use bcc_authoring::scaffold::test::test;
use bcc_authoring::templates::new::{NewScheme, new_scheme, usual_source};
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::here;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_lang::message::language::Language;

#[derive(Debug, Args)]
pub struct NewCommand {
    #[command(subcommand)]
    pub what: NewKind,
}

#[derive(Debug, Subcommand)]
pub enum NewKind {
    /// Create scripts/NAME.yaml, a script with one question
    Script(NewArgs),
    /// Create skills/NAME.yaml, actions that scripts can call
    Skill(NewArgs),
    /// Create tests/NAME.yaml, a test that records the current output of the script
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
        /// Scheme to copy from [default: by `--lang`, otherwise that of bcc-script.toml, otherwise by the language of
        /// the project's prompts]
        #[arg(long, value_name = "SCHEME")]
        from: Option<String>,
    },
}

/// Its name, and where it goes.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name: letters, digits, _ and -
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Project directory [default: the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Runs the subcommand. What is written is in the language `asked` (`--lang`), else in that of the project's prompts, else in
/// `usual`.
/// Errors: as the functions of `engine::begin`, and [`new_scheme`].
pub fn new(
    options: &NewCommand,
    asked: Option<Language>,
    usual: Language,
    environment: &Environment,
) -> Result<Exit, EngineError> {
    let named = options.what.named();
    let project = project(named.project.as_deref(), environment)?;
    let language = language_of(&project, asked, usual);
    let names = PathNames::seen_from(here()?);
    let shown = |path: &Path| names.shown(path);
    match &options.what {
        NewKind::Script(_) => {
            let written = script(&project, &named.name, language)?;
            let path = shown(&written.path);
            told(&path, &format!("bcc-script run {}", quoted(&path)))
        }
        NewKind::Skill(_) => {
            let written = skill(&project, &named.name, language)?;
            let path = shown(&written.path);
            told(&path, &format!("bcc-script validate {}", quoted(&path)))
        }
        NewKind::Test { script, .. } => {
            let about = test(&project, &named.name, script.as_deref(), language, environment);
            let written = wait_for(about)?;
            let path = shown(&written.path);
            told(&path, &format!("bcc-script test {}", quoted(&path)))
        }
        NewKind::Scheme { from, .. } => {
            let from = match (from, asked) {
                (Some(from), _) => from.clone(),
                (None, Some(language)) => built_in_scheme(language).to_owned(),
                (None, None) => usual_source(&project, &named.name),
            };
            let request = NewScheme { project: &project.directory, scheme: &named.name, from: Some(&from), names: &[] };
            let made = new_scheme(&request)?;
            if made.written.is_empty() {
                let error = EngineError::usage(msg!("{} already exists; nothing was changed", made.shown));
                return Err(error.with_help("choose another name"));
            }
            for name in &made.written {
                print(&format!("{}/{name}", made.shown))?;
            }
            for name in &made.kept {
                report::note(&msg!("note: {}/{name} already exists and was not changed", made.shown));
            }
            next(&format!("bcc-script templates list --scheme {}", named.name))
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

fn told(path: &str, command: &str) -> Result<Exit, EngineError> {
    print(path)?;
    next(command)
}

fn next(command: &str) -> Result<Exit, EngineError> {
    tell(&msg!("Now try: {command}"))?;
    Ok(Exit::Done)
}
