//! What is written about the work of the program: the log on standard error, and traces for a collector.

use std::io::IsTerminal;

use bcc_engine::environment::Environment;
use bcc_lang::message::msg;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::cli::cli::Command;
use crate::cli::report;
use crate::cli::sessions::SessionsCommand;
#[cfg(feature = "otel")]
use crate::cli::traces::traces::Traces;
#[cfg(not(feature = "otel"))]
use crate::cli::traces::without_otel::NoTraces as Traces;

/// Starts the log and the traces of this command.
pub fn start(environment: &Environment, command: &Command) -> Option<Traces> {
    let traces = runs_turns(command).then(|| Traces::start(environment, is_server(command)));
    let trace_layer = traces.as_ref().and_then(Traces::layer);
    let filter = filter(environment, command);
    if filter.is_some() || trace_layer.is_some() {
        let log = filter.map(|filter| {
            tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(filter)
        });
        let _ = tracing_subscriber::registry().with(trace_layer).with(log).try_init();
    }
    traces
}

/// Whether the command runs turns of sessions.
fn runs_turns(command: &Command) -> bool {
    match command {
        Command::Run(_) | Command::Tick(_) | Command::Cancel(_) => true,
        Command::Approve(_) | Command::Reject(_) | Command::PushBack(_) | Command::Requests(_) => true,
        Command::Sessions(command) => matches!(command, SessionsCommand::Resume(_) | SessionsCommand::Retry(_)),
        command => is_server(command),
    }
}

#[cfg(feature = "server")]
fn is_server(command: &Command) -> bool {
    matches!(command, Command::Serve(_))
}

#[cfg(not(feature = "server"))]
fn is_server(_: &Command) -> bool {
    false
}

/// What is logged; none for nothing. By default, only a program that reads the events gets warnings. A person does not: the warnings are
/// about replies that were hard to read, which the events contain and `/why` shows.
fn filter(environment: &Environment, command: &Command) -> Option<EnvFilter> {
    let for_program = match command {
        Command::Run(options) => options.output.json,
        Command::Sessions(SessionsCommand::Resume(options)) => options.output.json,
        Command::Sessions(SessionsCommand::Retry(options)) => options.resume.output.json,
        _ => false,
    };
    let default_filter = if for_program && !std::io::stderr().is_terminal() { "bcc_script=warn" } else { "off" };
    let filter = environment.get("BCC_LOG").unwrap_or(default_filter);
    if filter == "off" {
        return None;
    }
    Some(EnvFilter::try_new(expand_targets(filter)).unwrap_or_else(|error| {
        report::note(&msg!("BCC_LOG is invalid ({error}); logging warnings"));
        EnvFilter::new(expand_targets("bcc_script=warn"))
    }))
}

/// Replaces `bcc_script` in a log filter with the common prefix of all crates of this program.
fn expand_targets(filter: &str) -> String {
    let directive = |directive: &str| match directive.trim_start().strip_prefix("bcc_script") {
        Some(rest) if rest.is_empty() || rest.starts_with(['=', '[']) => format!("bcc_{rest}"),
        _ => directive.to_owned(),
    };
    filter.split(',').map(directive).collect::<Vec<_>>().join(",")
}
