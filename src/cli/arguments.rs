//! The arguments (INTERFACES.md, "`run` and `sessions`"). The texts here are the help that `--help` shows.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::completions::Completions;
use crate::cli::doctor::Doctor;
use crate::cli::findings::Reporting;
use crate::cli::graph::Graph;
use crate::cli::init::Init;
use crate::cli::language::of_option;
use crate::cli::man::Man;
use crate::cli::migrate::Migrate;
use crate::cli::new::New;
use crate::cli::templates::Templates;
use crate::cli::version::LONG;
use bcc_lang::message::language::Language;

/// Checks and runs declarative YAML scripts of model-driven conversations.
#[derive(Debug, Parser)]
#[command(name = "bcc-script", version, long_version = LONG.as_str(), about, arg_required_else_help = true)]
pub struct Arguments {
    /// The language of what is said at the terminal [default: that of BCC_LANG, LC_ALL, LC_MESSAGES or LANG]
    // It is looked for before the arguments are read (cli/language.rs); here it is checked.
    #[arg(long, global = true, value_name = "en|zh", value_parser = of_option)]
    pub lang: Option<Language>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a script: talk to it at the terminal, through a pipe, or as a program (--json)
    Run(Run),
    /// Check scripts, skills, tests and templates, and report everything that is wrong at once
    Validate(Validate),
    /// Run conversation tests: scripted models, what the person says, and what must come of it
    Test(Test),
    /// List, show, resume, export and delete sessions
    #[command(subcommand)]
    Sessions(Sessions),
    /// List the models of a project, or try them and say what they support
    #[command(subcommand)]
    Models(Models),
    /// Print a JSON Schema for editors: of a script, a skill, a test, a template, bcc-script.toml, or a kind's config
    Schema(Schema),
    /// Trust the bcc-script.toml of a directory: let it name servers and keys
    Trust(Trust),
    /// Tell what a finding means and how to mend it, or list all findings that there are
    Explain(Explain),
    /// Bring older scripts to today's spelling, without touching anything else of them
    Migrate(Migrate),
    /// List, show, render, compare, copy and check the prompt templates of a project
    #[command(subcommand)]
    Templates(Templates),
    /// Begin a project: one that runs, validates and tests at once
    Init(Init),
    /// Write a new script, skill, test or scheme of templates into the project
    New(New),
    /// Draw a script: its phases, topics, actions, routes, skills and triggers
    Graph(Graph),
    /// Look at configuration, trust, models and store: what works, what does not, and what to do
    Doctor(Doctor),
    /// Print what a shell needs to complete commands and options
    Completions(Completions),
    /// Write the manual pages
    Man(Man),
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The script
    pub file: PathBuf,
    /// Begin under this id, or go on with the unfinished session of this id
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Whose global variables the session sees [default: default]
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// Give a variable its value; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// Give variables the values of a JSON or YAML file
    #[arg(long = "vars", value_name = "FILE")]
    pub variables_file: Option<PathBuf>,
    /// Use the templates of this scheme
    #[arg(long, value_name = "S")]
    pub scheme: Option<String>,
    /// Ask this model: a name from bcc-script.toml, `offline`, or `replay:FILE`
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Write everything that is said to models into this new file, for `--replay`
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Repeat a recorded conversation without any model: each prompt must be the one that was recorded
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub replay: Option<PathBuf>,
    /// How `--replay` finds its replies
    #[arg(long, value_enum, requires = "replay")]
    pub replay_by: Option<ReplayBy>,
    /// Give the session another budget than its script does: turns, model_calls, tokens, minutes, each as what may be used
    /// in all; may be repeated. It is kept for later resumes
    #[arg(long, value_name = "NAME=NUMBER[,…]")]
    pub budget: Vec<String>,
    /// The project directory [default: the nearest above FILE that has a bcc-script.toml, a _system/ or a .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Where sessions are kept [default: .bcc/sessions.db of the project]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Keep this file the notebook of the session while it goes on: .ipynb, .md or .html
    #[arg(long, value_name = "FILE")]
    pub notebook: Option<PathBuf>,
    /// Write every event as one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Seed everything random
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Let the clock start at this moment and move 1 ms an event
    #[arg(long, value_name = "RFC3339")]
    pub clock: Option<String>,
    /// Trust the project's bcc-script.toml for this run
    #[arg(long)]
    pub trust: bool,
}

/// `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// Files to check, and folders in which to check every script, skill, test and template [default: scripts/, skills/,
    /// tests/ and _system/ of the project around this directory]
    #[arg(value_name = "FILE | DIR")]
    pub paths: Vec<PathBuf>,
    /// The project directory of all files [default: of each file, the nearest above it that has a bcc-script.toml, a
    /// _system/ or a .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Check against the templates of this scheme, whatever scripts and projects say
    #[arg(long, value_name = "S")]
    pub scheme: Option<String>,
    /// How findings are told.
    #[command(flatten)]
    pub reporting: Reporting,
    /// Go on checking whenever a file changes, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// First mend in the files what can be mended without asking, and report what is left
    #[arg(long, conflicts_with = "watch")]
    pub fix: bool,
}

/// `test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Tests to run, and folders in which to run every test [default: tests/ of the project around this directory]
    #[arg(value_name = "FILE | DIR")]
    pub paths: Vec<PathBuf>,
    /// Only tests with this in their name, in that of their case or in the path of their file
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// The project directory of all scripts [default: of each script, the nearest above it that has a bcc-script.toml, a
    /// _system/ or a .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Hold so many conversations at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: Option<u8>,
    /// How the results are written to standard output
    #[arg(long, value_enum, default_value_t = Results::Human)]
    pub format: Results,
    /// Also write the results as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Tell which phases, topics, actions, routes and branches ran: as a table, as JSON or as a page of HTML
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    pub coverage: Option<Coverage>,
    /// Write the coverage to this file, and not to standard output
    #[arg(long, value_name = "FILE", requires = "coverage")]
    pub coverage_out: Option<PathBuf>,
    /// Fail when less than this share of what the scripts hold ran, in percent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    pub coverage_min: Option<u64>,
    /// Begin no other conversation after the first failure
    #[arg(long)]
    pub fail_fast: bool,
    /// Write snapshots that differ anew
    #[arg(long)]
    pub update: bool,
    /// Ask this model in tests that do not write out what it says
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Trust the project's bcc-script.toml for this run
    #[arg(long)]
    pub trust: bool,
}

/// Formats of `test --coverage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Coverage {
    /// For the terminal
    Table,
    /// For programs (docs/coverage.md)
    Json,
    /// A page that shows the scripts with what ran
    Html,
}

/// Formats of `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Results {
    /// For people
    Human,
    /// One JSON document (docs/tests.md)
    Json,
}

/// `sessions`.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List the sessions of a store, newest first
    List(Store),
    /// Show one session: where it stands, its variables and what was said
    Show {
        /// The session
        id: String,
        /// Show its model calls and what they cost instead
        #[arg(long)]
        calls: bool,
        #[command(flatten)]
        #[allow(missing_docs)]
        store: Store,
    },
    /// Go on with a session
    Resume(Resume),
    /// Write a session as one document
    Export {
        /// The session
        id: String,
        /// The format [default: the one that FILE ends with, else json]
        #[arg(long, value_enum)]
        format: Option<Format>,
        /// With prompts and raw replies
        #[arg(long)]
        calls: bool,
        /// Write it to this file, and not to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        #[allow(missing_docs)]
        store: Store,
    },
    /// Delete a session
    Delete {
        /// The session
        id: String,
        #[command(flatten)]
        #[allow(missing_docs)]
        store: Store,
    },
    /// Delete sessions that nobody has touched for a while
    Prune {
        /// How long, like 30d or 12h
        #[arg(long, value_name = "TIME")]
        older_than: String,
        #[command(flatten)]
        #[allow(missing_docs)]
        store: Store,
    },
}

/// Where sessions are looked for.
#[derive(Clone, Debug, Default, Args)]
pub struct Store {
    /// Where sessions are kept [default: .bcc/sessions.db of the project around this directory]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// `sessions resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The session
    pub id: String,
    /// Write every event as one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// First write again what was committed after this event
    #[arg(long, value_name = "SEQ", requires = "json")]
    pub after: Option<u64>,
    /// Go on with a larger budget, say turns=400 or tokens=90000,minutes=60: what may be used in all, from the session's
    /// beginning; may be repeated. It is kept for later resumes
    #[arg(long, value_name = "NAME=NUMBER[,…]")]
    pub budget: Vec<String>,
    /// Ask another model than the session was started with
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Go on with the recording of the session, or begin one here
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Repeat a recorded conversation without any model from here on
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub replay: Option<PathBuf>,
    /// How `--replay` finds its replies
    #[arg(long, value_enum, requires = "replay")]
    pub replay_by: Option<ReplayBy>,
    /// Keep this file the notebook of the session while it goes on: .ipynb, .md or .html
    #[arg(long, value_name = "FILE")]
    pub notebook: Option<PathBuf>,
    /// Trust the project's bcc-script.toml for this run
    #[arg(long)]
    pub trust: bool,
    /// See [`Store`].
    #[command(flatten)]
    pub store: Store,
}

/// `models`.
#[derive(Debug, Subcommand)]
pub enum Models {
    /// List the models, which one answers by default and why, and whether their keys are there
    List(ModelsOf),
    /// Try models with a prompt of one word, and say what each supports
    Check {
        /// The models [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        #[allow(missing_docs)]
        of: ModelsOf,
    },
}

/// Whose models.
#[derive(Debug, Args)]
pub struct ModelsOf {
    /// The project directory [default: the project around this directory]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Write one JSON document
    #[arg(long)]
    pub json: bool,
    /// Trust the project's bcc-script.toml for this run
    #[arg(long)]
    pub trust: bool,
}

/// `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// What is described: script, skill, test, document (any of the three), template, config (bcc-script.toml), or a kind
    /// such as ai_ask
    #[arg(value_name = "NAME", default_value = "script")]
    pub name: String,
    /// List the names there are, with what each describes
    #[arg(long)]
    pub list: bool,
    /// The project whose own kinds are taken in
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// `trust`.
#[derive(Debug, Args)]
pub struct Trust {
    /// The directory [default: the project around this one]
    pub directory: Option<PathBuf>,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Its name, as in `error[unknown-key]` [default: list all]
    pub name: Option<String>,
}

/// How a recording answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayBy {
    /// The very calls that were recorded; a prompt that differs stops the session
    Prompt,
    /// In order for each action, whatever the prompts are
    Order,
}

/// Formats of `sessions export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The document of INTERFACES.md
    Json,
    /// The notebook as markdown; of a session without cells, the transcript
    Md,
    /// The notebook as a page of HTML; of a session without cells, the transcript
    Html,
    /// The notebook for Jupyter, nbformat 4.5
    Ipynb,
}
