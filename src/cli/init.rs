//! `init`: creates a project that runs, validates and passes its tests.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::print::{print, print_translated};
use crate::cli::report;
use crate::cli::signals::without_interruption;
use bcc_authoring::scaffold::init::{CreatedProject, InitRequest, init as create_project};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_lang::message::language::Language;

/// The first commands to try in a new project.
const NEXT: [&str; 3] = ["bcc-script run scripts/first_talk.yaml", "bcc-script validate", "bcc-script test"];

/// The language of the created files.
const LANGUAGE: &str =
    "The files are written in the language of the messages: `--lang zh` creates a project in Chinese.";

#[derive(Debug, Args)]
#[command(after_help = LANGUAGE)]
pub struct InitArgs {
    /// Project directory, which is created if it does not exist; no file is overwritten [default: the current directory]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Name of the template scheme that is created for editing [default: own]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Create the project even inside another project
    #[arg(long)]
    pub nested: bool,
}

/// Runs the subcommand. The created files are in `language`.
pub fn init(options: &InitArgs, language: Language, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = options.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let request =
        InitRequest { directory: &directory, language, scheme: options.scheme.as_deref(), nested: options.nested };
    let created = without_interruption(|| create_project(&request, environment))?;
    for line in written(&created) {
        print_translated(&line)?;
    }
    for path in &created.existing {
        report::note(&msg!("note: {path} already exists and was not changed"));
    }
    if created.existing.iter().any(|path| path == ".gitignore") {
        report::note("note: add `.bcc/`, where sessions are stored, to `.gitignore`");
    }
    if let Some(reason) = &created.untrusted {
        report::note(&msg!(
            "note: {reason}, so the project is not trusted yet; to trust it later, run `bcc-script trust`"
        ));
    }
    print("")?;
    print_translated("Now try:")?;
    if options.directory.is_some() && created.directory != current_directory() {
        print(&format!("  cd {}", quoted(&directory)))?;
    }
    for command in NEXT {
        print(&format!("  {command}"))?;
    }
    Ok(Exit::Done)
}

fn current_directory() -> PathBuf {
    bcc_engine::project::absolute(std::path::Path::new("."))
}

/// The created files; for schemas and templates, their number.
fn written(created: &CreatedProject) -> Vec<Message> {
    let scheme = format!("_system/config/custom/{}/", created.scheme);
    let mut lines: Vec<Message> = Vec::new();
    for path in &created.written {
        let folder = [scheme.as_str(), "schemas/"].into_iter().find(|folder| path.starts_with(folder));
        let line = match folder {
            Some(folder) => {
                let count = created.written.iter().filter(|path| path.starts_with(folder)).count();
                msg!("{folder} ({count} files)")
            }
            None => Message::text(path.clone()),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
