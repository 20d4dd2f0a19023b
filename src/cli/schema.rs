//! `schema`: prints a JSON Schema for editors (docs/editors.md).

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::language::translated;
use crate::cli::print::print;
use bcc_authoring::schemas::{OwnKinds, list, text_in};
use bcc_engine::config::kinds::kinds;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, given_directory};
use bcc_lang::source::near::near_miss;

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Schema to print: script, skill, test, workflow, document (any of these), template, config
    /// (bcc-script.toml), protocol-request, protocol-response, protocol-reflection or protocol-action (behavior
    /// servers), or an action type such as ai_ask
    #[arg(value_name = "NAME", default_value = "script")]
    pub name: String,
    /// List the names of all schemas
    #[arg(long)]
    pub list: bool,
    /// Project whose own action types are included in the schema
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

pub fn schema(options: &SchemaArgs, environment: &Environment) -> Result<Exit, EngineError> {
    if options.list {
        let lines: Vec<String> =
            list().iter().map(|(name, description)| format!("{name:20} {}", translated(description))).collect();
        print(&lines.join("\n"))?;
        return Ok(Exit::Done);
    }
    let project_kinds = match &options.project {
        Some(directory) => {
            let project = given_directory(Some(directory), environment)?.unwrap_or_default();
            kinds(&Project::in_directory(project, false, environment)?.config)
        }
        None => OwnKinds::new(),
    };
    match text_in(&options.name, &project_kinds) {
        Some(text) => print(text.trim_end())?,
        None => return Err(unknown(&options.name)),
    }
    Ok(Exit::Done)
}

fn unknown(name: &str) -> EngineError {
    let names: Vec<&str> = list().into_iter().map(|(name, _)| name).collect();
    let help = match near_miss(name, names.iter().copied()) {
        Some(near) => msg!("did you mean `{near}`?"),
        None => msg!("use one of {}", Message::list(Joint::Item, names.into_iter().map(Message::text))),
    };
    EngineError::usage(msg!("there is no schema `{name}`")).with_help(help)
}
