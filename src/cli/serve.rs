//! `serve`: the scripts of a project over HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_engine::config::serve_table::{DEFAULT_ADDRESS, ServeTable};
use bcc_engine::engine::Engine;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_server::access::{AccessRole, AccessRules, AccessToken, hash_of_hex, hex, new_token, token_hash};
use bcc_server::api::request_span::ContinueTrace;
use bcc_server::behavior::plan_format::WorkflowPlanFormat;
use bcc_server::serve::Server;
use bcc_server::settings::{BehaviorSettings, ChatSettings, ServeSettings, ServerLimits};
use bcc_tools::project_tools::ConfiguredTools;
use clap::{Args, ValueEnum};

use crate::cli::browser;
use crate::cli::exit::Exit;
use crate::cli::print::{print, print_translated};
use crate::cli::report;
use crate::cli::signals::Signals;
#[cfg(feature = "otel")]
use crate::cli::traces::traces::continue_trace;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address and port to listen at; port 0 chooses a free one [default: `address` of `[serve]` in bcc-script.toml,
    /// otherwise 127.0.0.1:8711]
    #[arg(long, value_name = "ADDRESS")]
    pub addr: Option<SocketAddr>,
    /// Project whose scripts are served [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Session store: a file, or a database (postgres://…) [default: BCC_STORE, otherwise .bcc/sessions.db in the project]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Model for all new sessions [default: BCC_MODEL, otherwise the model of the script]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long)]
    pub trust: bool,
    /// Open the studio, the page for authors, in the browser
    #[arg(long)]
    pub open: bool,
    /// Print a new token with this role, and what to write in bcc-script.toml, and do not serve
    #[arg(long, value_enum, value_name = "ROLE")]
    pub new_token: Option<TokenRole>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenRole {
    /// Start sessions, and talk in a session whose id is known
    Talk,
    /// Also list what sessions wait for, and decide it
    Decide,
    /// Also read everything, and cancel sessions
    Author,
    /// Everything
    Admin,
}

impl TokenRole {
    const fn role(self) -> AccessRole {
        match self {
            Self::Talk => AccessRole::Talk,
            Self::Decide => AccessRole::Decide,
            Self::Author => AccessRole::Author,
            Self::Admin => AccessRole::Admin,
        }
    }
}

pub async fn serve(options: ServeArgs, environment: Environment) -> Result<Exit, EngineError> {
    if let Some(role) = options.new_token {
        return print_token(role.role());
    }
    let project = Project::of(Path::new("."), options.project.as_deref(), options.trust, &environment)?;
    let settings = settings(&options, &project)?;
    let browser_environment = environment.clone();
    let directory = project.directory.display().to_string();
    let engine = Engine::with_shared_store(project, environment, options.store.as_deref())?
        .with_tools(Arc::new(ConfiguredTools));
    let mut signals = Signals::new(Message::word("\ninterrupted; nothing is lost"))?;
    signals.set_grace(settings.limits.end_time + ServerLimits::END_MARGIN);
    let address = settings.address;
    let server = Server::bind(engine, settings).await.map_err(|error| {
        EngineError::failed(msg!("the server cannot listen at {address}: {error}", error = error.to_string()))
            .with_help("choose another address with `--addr`; port 0 chooses a free port")
    })?;
    let address = server
        .address()
        .map_err(|error| EngineError::failed(msg!("the server has no address: {error}", error = error.to_string())))?;
    print_translated(&msg!("serving {directory} at http://{address}"))?;
    if options.open {
        open_studio(address, &browser_environment)?;
    }
    let all_ended = server.run(async move { signals.any().await }).await;
    if all_ended {
        return Ok(Exit::Done);
    }
    report::note(&msg!("turns were still running; the next server or `bcc-script tick --unfinished` continues them"));
    Ok(Exit::Waiting)
}

/// Opens the studio in the browser of this machine.
fn open_studio(address: SocketAddr, environment: &Environment) -> Result<(), EngineError> {
    // An address such as 0.0.0.0 is none to connect to.
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    let url = format!("http://{}/studio", SocketAddr::new(ip, address.port()));
    print_translated(&msg!("the studio is at {url}"))?;
    if !browser::open(&url, environment) {
        report::note(&Message::word("no browser could be opened; open the address yourself"));
    }
    Ok(())
}

/// The settings of the project and the command line.
/// Errors: the settings of the project do not count, or the server would be open to everybody.
fn settings(options: &ServeArgs, project: &Project) -> Result<ServeSettings, EngineError> {
    let table = &project.config.serve;
    if !project.trusted && *table != ServeTable::default() {
        let message = msg!("`[serve]` in bcc-script.toml counts only in a project that you trust");
        return Err(EngineError::usage(message).with_help("read the file, then run `bcc-script trust`"));
    }
    let given = options.addr.map(|address| address.to_string()).or_else(|| table.address.clone());
    let written = given.as_deref().unwrap_or(DEFAULT_ADDRESS);
    let address: SocketAddr =
        written.parse().map_err(|_| EngineError::usage(msg!("`{written}` is not an address with a port")))?;
    let tokens: Vec<AccessToken> = table
        .tokens
        .iter()
        .filter_map(|(name, token)| {
            let (role, sha256) = (AccessRole::parse(&token.role)?, hash_of_hex(&token.sha256)?);
            Some(AccessToken { name: name.clone(), role, sha256 })
        })
        .collect();
    // The configuration was checked, so that none is left out.
    if tokens.len() != table.tokens.len() {
        return Err(EngineError::usage("a token in `[serve]` cannot be read"));
    }
    if tokens.is_empty() && !address.ip().is_loopback() {
        let message =
            msg!("without tokens, the server is for this machine only, and {address} is reachable from others");
        return Err(EngineError::usage(message)
            .with_help("`bcc-script serve --new-token admin` prints a token and what to write in bcc-script.toml"));
    }
    let access = AccessRules { tokens, hosts: table.hosts.clone(), origins: table.origins.clone() };
    let defaults = ServerLimits::default();
    let requests_per_minute =
        table.requests_per_minute.and_then(NonZeroU32::new).unwrap_or(defaults.requests_per_minute);
    let limits = ServerLimits { requests_per_minute, ..defaults };
    let defaults = ChatSettings::default();
    let chat = ChatSettings {
        conversation_header: table.chat.conversation_header.clone().unwrap_or(defaults.conversation_header),
        task_header: table.chat.task_header.clone().unwrap_or(defaults.task_header),
    };
    let behavior = BehaviorSettings {
        model: table.behavior.model.clone(),
        script: table.behavior.script.clone(),
        plan_format: table.behavior.plan_format.as_deref().and_then(WorkflowPlanFormat::parse).unwrap_or_default(),
        kernel: BehaviorSettings::kernel_settings(table.behavior.kernel.as_deref(), table.behavior.cell_timeout),
    };
    #[cfg(feature = "otel")]
    let continue_trace: Option<ContinueTrace> = Some(continue_trace);
    #[cfg(not(feature = "otel"))]
    let continue_trace: Option<ContinueTrace> = None;
    let model = options.model.clone();
    let talk_request = None;
    Ok(ServeSettings { address, access, limits, chat, behavior, model, talk_request, continue_trace })
}

/// Prints a token, which is stored nowhere.
fn print_token(role: AccessRole) -> Result<Exit, EngineError> {
    let token = new_token().ok_or_else(|| EngineError::failed("the system gives no random numbers"))?;
    print_translated(&msg!("token (keep it, it is stored nowhere): {token}"))?;
    print_translated(&Message::word("in bcc-script.toml, with a name of your choice:"))?;
    print("")?;
    print(&format!("[serve.tokens.NAME]\nrole = \"{}\"\nsha256 = \"{}\"", role.name(), hex(&token_hash(&token))))?;
    Ok(Exit::Done)
}
