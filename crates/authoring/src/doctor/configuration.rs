//! Checks `bcc-script.toml`: trust, permissions of key files, action types of the project, and the configured models.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::doctor::finding::DoctorFinding;
use bcc_engine::config::kinds::kinds;
use bcc_engine::config::serve_table::{DEFAULT_ADDRESS, ServeTable};
use bcc_engine::config::tool_tables::WebSearchTable;
use bcc_engine::environment::Environment;
use bcc_engine::host_services::permissions;
use bcc_engine::models::list::{KeyState, ListedModel, list};
use bcc_engine::project::{CONFIG_FILE, Project};
use bcc_engine::shell::quoted;
use bcc_engine::trust::state::TrustState;
use bcc_runtime::program::custom::{COMMAND, CustomKind};

/// Permission bits of everyone except the owner of a file.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

pub fn configuration(project: &Project, environment: &Environment) -> Vec<DoctorFinding> {
    if !project.has_config {
        let note = DoctorFinding::note("configuration", msg!("there is no {CONFIG_FILE}"));
        return vec![note.with_help("it is optional; `bcc-script schema config` lists what it may contain")];
    }
    let (models, rules) = (project.config.models.len(), project.config.rules.len());
    let mut found =
        vec![DoctorFinding::ok("configuration", msg!("{CONFIG_FILE} can be read (models: {models}, rules: {rules})"))];
    found.extend(own_kinds(project, environment));
    let path = project.directory.join(CONFIG_FILE);
    if mode(&path).is_some_and(|mode| mode & OTHERS_WRITE != 0) {
        let note = DoctorFinding::note("configuration", msg!("other users of this machine can write to {CONFIG_FILE}"));
        found.push(note.with_help(msg!("`chmod go-w {}`", quoted(&path))));
    }
    found.extend(readable_keys(project));
    found.extend(server(project));
    found
}

/// Reports whom `serve` lets in, if the project configures it.
fn server(project: &Project) -> Option<DoctorFinding> {
    let table = &project.config.serve;
    if *table == ServeTable::default() {
        return None;
    }
    let address = table.address.as_deref().unwrap_or(DEFAULT_ADDRESS);
    // The configuration was read, so it is one.
    let is_local = address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    Some(match table.tokens.len() {
        0 if is_local => DoctorFinding::ok(
            "configuration",
            msg!("`serve` listens at {address}; everybody on this machine may do everything"),
        ),
        0 => {
            let message = msg!("`serve` does not start: other machines can reach {address}, and there are no tokens");
            DoctorFinding::problem("configuration", message)
                .with_help("`bcc-script serve --new-token admin` prints a token and what to write in bcc-script.toml")
        }
        count => {
            DoctorFinding::ok("configuration", msg!("`serve` listens at {address}, for the owners of {count} tokens"))
        }
    })
}

/// Reports the files with keys of models, search providers and servers of tools that other users can read.
fn readable_keys(project: &Project) -> Vec<DoctorFinding> {
    let config = &project.config;
    let models = config.models.iter().filter_map(|(name, table)| {
        let file = table.api_key_file.clone()?;
        Some((msg!("other users of this machine can read the key of model `{name}` in {file}"), file))
    });
    let searches = config.tools.web_search.iter().flat_map(WebSearchTable::servers).filter_map(|table| {
        let (provider, file) = (table.provider.name(), table.api_key_file?);
        Some((msg!("other users of this machine can read the key of the search provider `{provider}` in {file}"), file))
    });
    let servers = config.mcp_servers.iter().filter_map(|(name, table)| {
        let file = table.api_key_file.clone()?;
        Some((msg!("other users of this machine can read the key of the server `{name}` in {file}"), file))
    });
    let readable = models.chain(searches).chain(servers).filter_map(|(message, file)| {
        let path = project.directory.join(file);
        let is_readable = mode(&path).is_some_and(|mode| mode & OTHERS != 0);
        let problem = || DoctorFinding::problem("configuration", message);
        is_readable.then(|| problem().with_help(msg!("`chmod 600 {}`", quoted(&path))))
    });
    readable.collect()
}

/// Reports the action types that the project defines, and whether those that run commands are allowed.
fn own_kinds(project: &Project, environment: &Environment) -> Vec<DoctorFinding> {
    let kinds = kinds(&project.config);
    if kinds.is_empty() {
        return vec![];
    }
    let (commands, skills): (Vec<_>, Vec<_>) = kinds.values().partition(|kind| kind.has_command());
    let names = |kinds: &[&CustomKind]| {
        Message::list(Joint::Item, kinds.iter().map(|kind| Message::text(format!("`{}`", kind.name))))
    };
    let mut found = Vec::new();
    if !skills.is_empty() {
        found.push(DoctorFinding::ok("kinds", msg!("action types of the project that run skills: {}", names(&skills))));
    }
    if !commands.is_empty() {
        let message = msg!("action types of the project that run commands: {}", names(&commands));
        found.push(match permissions(project, environment).check(COMMAND) {
            Ok(()) => DoctorFinding::ok("kinds", msg!("{message}; they are allowed")),
            Err(denied) => {
                DoctorFinding::problem("kinds", msg!("{message}; {}", denied.message)).with_help(denied.help)
            }
        });
    }
    found
}

fn mode(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|metadata| metadata.permissions().mode())
}

pub fn models(project: &Project, environment: &Environment) -> Vec<DoctorFinding> {
    let listing = list(project, environment);
    let mut found = Vec::new();
    let sending_models =
        listing.models.iter().filter(|model| model.provider.sends() && project.config.models.contains_key(&model.name));
    let servers: Vec<Message> = sending_models
        .map(|model| match &model.server {
            Some(server) => msg!("`{}` at {server}", model.name),
            None => Message::text(format!("`{}`", model.name)),
        })
        .collect();
    if let TrustState::Changed { what } = project.trust.as_ref() {
        let message = msg!("the project is not trusted any more: {what}");
        let help = msg!("review this, then run `bcc-script trust {}`", quoted(&project.directory));
        found.push(DoctorFinding::problem("trust", message).with_help(help));
    } else if listing.needs_trust && listing.trusted {
        found.push(DoctorFinding::ok("trust", msg!("{CONFIG_FILE} is trusted")));
    } else if listing.needs_trust {
        let message = match servers.as_slice() {
            [] => msg!(
                "{CONFIG_FILE} is not trusted, so the permissions that `[project] allow` grants to scripts are ignored"
            ),
            servers => {
                msg!(
                    "{CONFIG_FILE} is not trusted, so nothing is sent to the models {}",
                    Message::list(Joint::Item, servers.iter().cloned())
                )
            }
        };
        let help = msg!("read it, then run `bcc-script trust {}`", quoted(&project.directory));
        found.push(DoctorFinding::problem("trust", message).with_help(help));
    }
    found.extend(listing.models.iter().flat_map(model));
    if listing.models.is_empty() {
        let note =
            DoctorFinding::note("models", "no model is configured: the built-in offline responder answers (no AI)");
        found.push(note.with_help("set an API key such as OPENAI_API_KEY and the name of the model in BCC_MODEL, or add `[models.default]` to bcc-script.toml"));
    } else {
        let message = msg!("a script without `model:` uses `{}`: {}", listing.default, listing.reason);
        found.push(DoctorFinding::ok("models", message));
    }
    found.extend(listing.notices.iter().map(|notice| DoctorFinding::note("models", notice.clone())));
    found
}

fn model(model: &ListedModel) -> Vec<DoctorFinding> {
    let name = &model.name;
    let asks = model.model.as_deref().map(|asks| msg!(" {asks}")).unwrap_or_default();
    let subject = msg!("model `{name}` ({}{asks})", model.provider.name());
    let mut found = vec![match (model.key, &model.key_from) {
        (KeyState::None, _) | (_, None) => DoctorFinding::ok("models", msg!("{subject} needs no key")),
        (KeyState::Set, Some(from)) => DoctorFinding::ok("models", msg!("{subject} has a key, from {from}")),
        (KeyState::Missing, Some(from)) => {
            DoctorFinding::problem("models", msg!("{subject} has no key: {from} is missing"))
                .with_help(msg!("set {from}, or specify another location in {CONFIG_FILE}"))
        }
    }];
    let missing = |variable: &String| {
        let message = msg!("model `{name}`: the environment variable {variable} is not set");
        DoctorFinding::problem("models", message).with_help(msg!("set {variable}"))
    };
    found.extend(model.missing.iter().map(missing));
    found
}
