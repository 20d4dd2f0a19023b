//! The entry point: parses the arguments, runs the command, and returns the exit code.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::async_runtime::wait_for;
#[cfg(feature = "server")]
use crate::cli::async_runtime::wait_on_all_processors;
use crate::cli::exit::{Exit, PROGRAM_CODES};
use crate::cli::print::write_out;
#[cfg(feature = "server")]
use crate::cli::serve;
use crate::cli::terminal::color;
use crate::cli::version::LONG;
use crate::cli::{
    cancel, completions, decide, doctor, explain, file_limit, graph, help, init, language, logging, man, migrate,
    models, new, plans, report, requests, run, schema, session_report, sessions, signals, store, templates, test, tick,
    trust, validate,
};
use bcc_engine::environment::Environment;
use bcc_lang::message::language::Language;
use bcc_runtime::effects::descendants::adopt_orphans;
use bcc_runtime::program::decision::DecisionKind;

/// Run, check and test YAML scripts for conversations led by a language model
#[derive(Debug, Parser)]
#[command(name = "bcc-script", version, long_version = LONG.as_str(), about, arg_required_else_help = true, after_help = PROGRAM_CODES)]
pub struct Arguments {
    /// Language of messages [default: from BCC_LANG, LC_ALL, LC_MESSAGES or LANG]
    // The language is determined before the arguments are parsed (cli/language.rs); here it is validated.
    #[arg(long, global = true, value_name = "en|zh", value_parser = language::parse_option)]
    pub lang: Option<Language>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a script in the terminal, through a pipe, or for another program (--json)
    Run(run::RunArgs),
    /// Check scripts, skills, tests and templates; --fix applies the safe fixes
    Validate(validate::ValidateArgs),
    /// Run conversation tests
    Test(test::TestArgs),
    /// List, show, resume, export, delete and prune sessions
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// List, show, export, import and delete plans
    #[command(subcommand)]
    Plans(plans::PlansCommand),
    /// List what sessions wait for, and answer it
    #[command(subcommand)]
    Requests(requests::RequestsCommand),
    /// Approve what a session waits for
    Approve(decide::DecideArgs),
    /// Reject what a session waits for
    Reject(decide::DecideArgs),
    /// Send a session back to an earlier action, with a comment
    PushBack(decide::DecideArgs),
    /// Continue the sessions whose time has come
    Tick(tick::TickArgs),
    /// Serve the scripts of a project over HTTP
    #[cfg(feature = "server")]
    Serve(serve::ServeArgs),
    /// End a session for good
    Cancel(cancel::CancelArgs),
    /// Write a report about a session: its steps, decisions, failures and times
    Report(session_report::ReportArgs),
    /// Check a session store, and recover a damaged one
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// List the models of a project, or check whether they answer
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// Print a JSON Schema for editors and other programs
    Schema(schema::SchemaArgs),
    /// Trust the project of a directory, so that it may set servers and keys, and run what it contains
    Trust(trust::TrustArgs),
    /// Explain a diagnostic and how to fix it, or list all diagnostics
    Explain(explain::ExplainArgs),
    /// Show the changes that replace legacy syntax; --write applies them
    Migrate(migrate::MigrateArgs),
    /// List, show, render, diff, create and check prompt templates
    #[command(subcommand)]
    Templates(templates::TemplatesCommand),
    /// Create a project with an example script, its tests and prompt templates
    Init(init::InitArgs),
    /// Create a script, a skill, a test or a template scheme in the project
    New(new::NewCommand),
    /// Draw a script as a graph: phases, topics, actions, routes, skills and triggers
    Graph(graph::GraphArgs),
    /// Check a project and its environment: configuration, trust, models, scripts, store, terminal
    Doctor(doctor::DoctorArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Print the main manual page, or write all pages to a directory
    Man(man::ManArgs),
}

/// The command line with texts in `language`, for help and completions.
pub fn localized_command(language: Language) -> clap::Command {
    help::in_language(Arguments::command(), language)
}

/// Runs the program with these arguments (the first is its name), and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // Without a further thread the program works as well, and signals kill it; what has to end in order reports the error.
    let _ = signals::start();
    adopt_orphans();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Without the handler the program works as well, up to the limit.
    let _ = file_limit::report_as_write_error();
    let environment = Environment::of_process();
    let language = language::requested(&arguments, &environment);
    language::choose(language);
    let parsed = localized_command(language)
        .try_get_matches_from(arguments)
        .and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // `--help` and `--version` are errors of clap too; they go to standard output with code 0.
            let to_stdout = !error.use_stderr();
            let text = help::text(&error, language, to_stdout && color());
            if to_stdout {
                let rendered = error.render();
                let in_english = || if color() { rendered.ansi().to_string() } else { rendered.to_string() };
                if let Err(error) = write_out(text.unwrap_or_else(in_english).as_bytes()) {
                    return report::failed(&error).code();
                }
            } else {
                match text {
                    Some(text) => report::note(text.trim_end()),
                    None => drop(error.print()),
                }
            }
            return if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() };
        }
    };
    let traces = logging::start(&environment, &arguments.command);
    let result = match arguments.command {
        Command::Validate(options) => validate::validate(&options, &environment),
        Command::Test(options) => test::test(&options, &environment),
        Command::Explain(options) => explain::explain(&options),
        Command::Schema(options) => schema::schema(&options, &environment),
        Command::Migrate(options) => migrate::migrate(&options, &environment),
        Command::Templates(options) => templates::templates(&options, &environment),
        Command::Init(options) => init::init(&options, language, &environment),
        Command::New(options) => new::new(&options, arguments.lang, language, &environment),
        Command::Graph(options) => graph::graph(&options, &environment),
        Command::Doctor(options) => wait_for(doctor::doctor(options, arguments.lang.is_some(), environment)),
        Command::Completions(options) => completions::completions(&options, localized_command(language)),
        Command::Man(options) => man::man(&options, Arguments::command()),
        Command::Store(command) => wait_for(store::store(&command, &environment)),
        Command::Trust(options) => trust::trust(&options, &environment),
        Command::Models(command) => wait_for(models::models(command, environment)),
        Command::Run(options) => wait_for(run::run(options, environment)),
        Command::Report(options) => wait_for(session_report::session_report(options, environment)),
        Command::Plans(command) => wait_for(plans::plans(command, environment)),
        Command::Requests(command) => wait_for(requests::requests(command, environment)),
        Command::Approve(options) => wait_for(decide::decide(DecisionKind::Approve, options, environment)),
        Command::Reject(options) => wait_for(decide::decide(DecisionKind::Reject, options, environment)),
        Command::PushBack(options) => wait_for(decide::decide(DecisionKind::PushBack, options, environment)),
        #[cfg(feature = "server")]
        Command::Serve(options) => wait_on_all_processors(serve::serve(options, environment)),
        Command::Tick(options) => wait_for(tick::tick(options, environment)),
        Command::Cancel(options) => wait_for(cancel::cancel(options, environment)),
        Command::Sessions(command) => wait_for(sessions::sessions(command, environment)),
    };
    if let Some(traces) = traces {
        traces.end();
    }
    signals::wait_for_end();
    match result {
        Ok(exit) => exit.code(),
        Err(error) => report::failed(&error).code(),
    }
}
