//! `trust`: trusts the `bcc-script.toml` of a directory, which may then set servers and keys.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::report;
use bcc_engine::config::values::TextOrEnv;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::models::list::address;
use bcc_engine::project::{CONFIG_FILE, Project, absolute, config_bytes};
use bcc_engine::trust::trust as store_trust;

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Directory to trust [default: BCC_PROJECT, otherwise the current project]
    pub directory: Option<PathBuf>,
}

pub fn trust(options: &TrustArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let directory = match &options.directory {
        Some(directory) if directory.is_dir() => absolute(directory),
        Some(directory) => {
            return Err(EngineError::usage(msg!("there is no directory {path}", path = directory.display())));
        }
        None => Project::of(std::path::Path::new("."), None, false, environment)?.directory,
    };
    let project = Project::in_directory(directory.clone(), false, environment)?;
    let Some(bytes) = config_bytes(&directory)? else {
        return Err(EngineError::usage(msg!(
            "{path} has no {CONFIG_FILE}, so there is nothing to trust",
            path = directory.display()
        )));
    };
    store_trust(environment, &directory, &bytes)?;
    report::note(&msg!("trusted: {CONFIG_FILE} of {path}", path = directory.display()));
    for (name, model) in &project.config.models {
        if let Some(server) = model.server().filter(|_| model.provider.sends()) {
            report::note(&msg!("  model `{name}` may send conversations to {}", address(server)));
        }
        for given in model.proxy.iter().filter(|_| model.provider.sends()) {
            match given {
                TextOrEnv::Text(proxy) if proxy == "none" => {}
                TextOrEnv::Text(proxy) => report::note(&msg!("  … through the proxy {}", address(proxy))),
                TextOrEnv::Env(variable) => report::note(&msg!("  … through the proxy specified in {variable}")),
            }
        }
        for (header, given) in &model.headers {
            if let TextOrEnv::Env(variable) = given {
                let variable = msg!("the environment variable {variable}");
                report::note(&msg!("  model `{name}` may send {variable} in the header {header}"));
            }
        }
        if let Some(variable) = &model.api_key_env {
            report::note(&msg!("  model `{name}` may use the key in the environment variable {variable}"));
        }
        if let Some(file) = &model.api_key_file {
            report::note(&msg!("  model `{name}` may use the key in the file {file}"));
        }
    }
    for (name, server) in &project.config.behavior_servers {
        report::note(&msg!("  sessions may be sent to the behavior server `{name}` at {}", address(&server.url)));
        if let Some(variable) = &server.token_env {
            report::note(&msg!("  … with the token in the environment variable {variable}"));
        }
        if let Some(file) = &server.token_file {
            report::note(&msg!("  … with the token in the file {file}"));
        }
    }
    if !project.config.project.allow.is_empty() {
        report::note(&msg!("  scripts may: {}", Message::values(&project.config.project.allow)));
    }
    report::note("if the file changes, it must be trusted again");
    Ok(Exit::Done)
}
