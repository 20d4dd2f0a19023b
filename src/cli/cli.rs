//! From arguments to an exit code.

use std::ffi::OsString;
use std::io::IsTerminal;

use crate::cli::arguments::Command;
use crate::cli::exit::Exit;
use crate::cli::{
    completions, doctor, explain, graph, help, init, language, man, migrate, models, new, report, run, schema,
    sessions, templates, test, trust, validate,
};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;

/// Runs the program with these arguments (the first is its name) and gives its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let environment = Environment::of_process();
    let language = language::asked(&arguments, &environment);
    language::choose(language);
    let arguments = match help::read(&arguments, language) {
        Ok(arguments) => arguments,
        Err(error) => {
            match help::wrong(&error, language) {
                Some(text) => report::note(text.trim_end()),
                // `--help` and `--version` are such errors too, and go to standard output with code 0.
                None => drop(error.print()),
            }
            return if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() };
        }
    };
    log(&environment, matches!(arguments.command, Command::Test(_) | Command::Templates(_)));
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
        Command::Doctor(options) => wait_for(doctor::doctor(options, environment)),
        Command::Completions(options) => completions::completions(&options),
        Command::Man(options) => man::man(&options),
        Command::Trust(options) => trust::trust(&options, &environment),
        Command::Models(command) => wait_for(models::models(command, environment)),
        Command::Run(options) => wait_for(run::run(options, environment)),
        Command::Sessions(command) => wait_for(sessions::sessions(command, environment)),
    };
    match result {
        Ok(exit) => exit.code(),
        Err(error) => report::failed(&error).code(),
    }
}

/// Drives what talks to models and stores; the rest needs no runtime.
pub(crate) fn wait_for(work: impl Future<Output = Result<Exit, EngineError>>) -> Result<Exit, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| EngineError::failed(format!("the runtime cannot be started: {error}")))?.block_on(work)
}

/// Logs go to standard error. At a terminal they would stand between the words of a conversation, where `/why` tells the
/// same, so there they are off until `BCC_LOG` asks for them.
/// Tests bring the faults of models about on purpose, and templates are shown with replies that were read before: both tell
/// themselves what there is to tell.
fn log(environment: &Environment, quiet: bool) {
    let quiet = if quiet || std::io::stderr().is_terminal() { "off" } else { "bcc_script=warn" };
    let filter = environment.get("BCC_LOG").unwrap_or(quiet);
    if filter == "off" {
        return;
    }
    let filter = tracing_subscriber::EnvFilter::try_new(own_targets(filter)).unwrap_or_else(|error| {
        report::note(&format!("BCC_LOG is not understood ({error}); logging warnings"));
        tracing_subscriber::EnvFilter::new(own_targets("bcc_script=warn"))
    });
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).try_init();
}

/// `bcc_script` in a filter of logs means all of this program: the common beginning of the names of its crates.
fn own_targets(filter: &str) -> String {
    let directive = |directive: &str| match directive.trim_start().strip_prefix("bcc_script") {
        Some(rest) if rest.is_empty() || rest.starts_with(['=', '[']) => format!("bcc_{rest}"),
        _ => directive.to_owned(),
    };
    filter.split(',').map(directive).collect::<Vec<_>>().join(",")
}
