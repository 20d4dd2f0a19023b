//! `trust`: trusts a project, which may then set servers and keys and run what it contains, and lists what is trusted.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::language::translated;
use crate::cli::print::print;
use crate::cli::report;
use bcc_engine::config::config::{Config, parse};
use bcc_engine::config::tool_tables::WebSearchTable;
use bcc_engine::config::values::TextOrEnv;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::models::list::address;
use bcc_engine::project::{CONFIG_FILE, absolute, config_bytes, given_directory, nearest};
use bcc_engine::trust::covered::covered_files;
use bcc_engine::trust::state::TrustState;
use bcc_engine::trust::{TrustEntry, entries, trust as store_trust};
use bcc_lang::source::render::visible::visible_line;

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Directory to trust [default: BCC_PROJECT, otherwise the current project]
    pub directory: Option<PathBuf>,
    /// List what you trust, with hashes, and whether it was changed since; with DIRECTORY, also each of its files
    #[arg(long)]
    pub list: bool,
}

pub fn trust(options: &TrustArgs, environment: &Environment) -> Result<Exit, EngineError> {
    if options.list {
        return list(options.directory.as_deref(), environment);
    }
    let directory = match &options.directory {
        Some(directory) if directory.is_dir() => absolute(directory),
        Some(directory) => {
            return Err(EngineError::usage(msg!("there is no directory {path}", path = directory.display())));
        }
        None => given_directory(None, environment)?.unwrap_or_else(|| nearest(&absolute(Path::new(".")))),
    };
    let Some((bytes, config)) = configuration(&directory)? else {
        return Err(EngineError::usage(msg!(
            "{path} has no {CONFIG_FILE}, so there is nothing to trust",
            path = directory.display()
        )));
    };
    let before = entries(environment)?.remove(&directory);
    let before = before.map(|before| TrustState::of_entry(&before, &directory, &bytes, &config));
    let files = covered_files(&directory, &config).map_err(EngineError::usage)?;
    let count = files.as_ref().map(|files| files.len());
    store_trust(environment, &directory, &bytes, files)?;
    report::note(&msg!("trusted: {CONFIG_FILE} of {path}", path = directory.display()));
    if let Some(TrustState::Changed { what }) = before {
        report::note(&msg!("  before this, {what}"));
    }
    report_rights(&config);
    if let Some(count) = count {
        report::note(&msg!("  {count} files of the project may run; `bcc-script trust --list DIRECTORY` lists them"));
    }
    report::note(match count {
        None => "if the file changes, it must be trusted again",
        Some(_) => "if one of these files changes, or another one is added, they must be trusted again",
    });
    Ok(Exit::Done)
}

/// The configuration of a directory, as bytes and parsed; none if there is no file.
fn configuration(directory: &Path) -> Result<Option<(Vec<u8>, Config)>, EngineError> {
    let Some(bytes) = config_bytes(directory)? else { return Ok(None) };
    let shown = directory.join(CONFIG_FILE).display().to_string();
    let text = std::str::from_utf8(&bytes).map_err(|_| EngineError::usage(msg!("{shown} is not UTF-8 text")))?;
    let config = parse(&shown, text)?;
    Ok(Some((bytes, config)))
}

/// Reports what the configuration may do now.
fn report_rights(config: &Config) {
    for (name, model) in &config.models {
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
    for (name, server) in &config.behavior_servers {
        report::note(&msg!("  sessions may be sent to the behavior server `{name}` at {}", address(&server.url)));
        if let Some(variable) = &server.token_env {
            report::note(&msg!("  … with the token in the environment variable {variable}"));
        }
        if let Some(file) = &server.token_file {
            report::note(&msg!("  … with the token in the file {file}"));
        }
    }
    for server in config.tools.web_search.iter().flat_map(WebSearchTable::servers) {
        let (provider, url) = (server.provider.name(), address(server.server().unwrap_or_default()));
        report::note(&msg!("  searches of the web may be sent to {provider} at {url}"));
        note_key(server.api_key_env.as_deref(), server.api_key_file.as_deref());
    }
    for (name, server) in &config.mcp_servers {
        if let Some(command) = &server.command {
            report::note(&msg!("  the server of tools `{name}` may be started: {}", command.join(" ")));
        }
        if let Some(url) = &server.url {
            report::note(&msg!("  calls may be sent to the server of tools `{name}` at {}", address(url)));
        }
        note_key(server.api_key_env.as_deref(), server.api_key_file.as_deref());
        for given in server.env.values() {
            if let TextOrEnv::Env(variable) = given {
                report::note(&msg!("  … with the value of the environment variable {variable}"));
            }
        }
    }
    for server in &config.kernel.jupyter {
        report::note(&msg!("  code may be sent to the Jupyter server {}", address(&server.url)));
        if let Some(variable) = &server.token_env {
            report::note(&msg!("  … with the token in the environment variable {variable}"));
        }
    }
    if !config.project.allow.is_empty() {
        report::note(&msg!("  scripts may: {}", Message::values(&config.project.allow)));
    }
    let programs = config.kinds.iter().map(|(name, kind)| (format!("kinds.{name}"), &kind.env));
    for (table, variables) in std::iter::once(("kernel".to_owned(), &config.kernel.env)).chain(programs) {
        if !variables.is_empty() {
            let variables = Message::names(variables);
            report::note(&msg!("  programs of `[{table}]` get the environment variables {variables}"));
        }
    }
}

/// Where a server's key comes from.
fn note_key(variable: Option<&str>, file: Option<&str>) {
    if let Some(variable) = variable {
        report::note(&msg!("  … with the key in the environment variable {variable}"));
    }
    if let Some(file) = file {
        report::note(&msg!("  … with the key in the file {file}"));
    }
}

/// `trust --list`: everything that is trusted, or `directory` with its files.
fn list(directory: Option<&Path>, environment: &Environment) -> Result<Exit, EngineError> {
    let mut trusted = entries(environment)?;
    if let Some(directory) = directory {
        let directory = absolute(directory);
        let entry = trusted.remove(&directory).ok_or_else(|| {
            EngineError::usage(msg!("you do not trust the project {path}", path = directory.display()))
                .with_help("`bcc-script trust --list` without a directory lists the projects that you trust")
        })?;
        print(&row(&directory, &entry))?;
        print(&visible_line(&format!("{}\t{CONFIG_FILE}", entry.config)))?;
        for (name, hash) in entry.files.iter().flatten() {
            print(&visible_line(&format!("{hash}\t{name}")))?;
        }
        return Ok(Exit::Done);
    }
    for (directory, entry) in &trusted {
        print(&row(directory, entry))?;
    }
    if trusted.is_empty() {
        report::note("you trust no project yet");
    }
    Ok(Exit::Done)
}

/// The line of a project: the hash over everything that is trusted, whether that is unchanged, and the directory.
fn row(directory: &Path, entry: &TrustEntry) -> String {
    let state = match configuration(directory) {
        Ok(Some((bytes, config))) => match TrustState::of_entry(entry, directory, &bytes, &config) {
            TrustState::Trusted { .. } => "unchanged",
            TrustState::Untrusted | TrustState::Changed { .. } => "changed",
        },
        Ok(None) => "missing",
        Err(_) => "changed",
    };
    visible_line(&format!("{}\t{}\t{}", entry.hash(), translated(state), directory.display()))
}
