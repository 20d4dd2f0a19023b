//! `models`: lists the models of a project, and checks which features they support.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use serde_json::json;

use clap::{Args, Subcommand};

use crate::cli::exit::Exit;
use crate::cli::language::translated;
use crate::cli::print::{print, print_json};
use crate::cli::report;
use crate::cli::table::table;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::models::check::{ModelCheck, check, model_names};
use bcc_engine::models::list::{KeyState, ListedModel, ModelListing, list};
use bcc_engine::project::Project;
use bcc_engine::shell::quoted;

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List the models, the default model, and whether their keys are set
    List(ModelsArgs),
    /// Send a short prompt to models, and report whether they answer and what they support
    Check {
        /// Models to check [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        of: ModelsArgs,
    },
}

/// Whose models.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long)]
    pub trust: bool,
}

/// An empty cell.
const EMPTY_CELL: &str = "–";

pub async fn models(command: ModelsCommand, environment: Environment) -> Result<Exit, EngineError> {
    match command {
        ModelsCommand::List(options) => {
            let project = project(&options, &environment)?;
            let listing = list(&project, &environment);
            if options.json {
                print_json(&listing.json())?;
            } else {
                print_listing(&listing, &project)?;
            }
            Ok(Exit::Done)
        }
        ModelsCommand::Check { names, of } => check_models(&names, &of, &environment).await,
    }
}

fn project(options: &ModelsArgs, environment: &Environment) -> Result<Project, EngineError> {
    Project::of(Path::new("."), options.project.as_deref(), options.trust, environment)
}

fn print_listing(listing: &ModelListing, project: &Project) -> Result<(), EngineError> {
    if !listing.models.is_empty() {
        let names = ["NAME", "PROVIDER", "MODEL", "SERVER", "KEY", "FALLBACK", "LIMITS", "PRICE"].map(head);
        let rows: Vec<Vec<String>> = std::iter::once(names.to_vec()).chain(listing.models.iter().map(row)).collect();
        print(&table(&rows))?;
        print("")?;
    }
    print(&translated(&msg!("A script without `model:` uses `{}`: {}.", listing.default, listing.reason)))?;
    if listing.models.is_empty() {
        print(&translated(
            "To configure a model, set an API key such as OPENAI_API_KEY and BCC_MODEL, or add `[models.default]` to bcc-script.toml.",
        ))?;
    }
    for model in &listing.models {
        for variable in &model.missing {
            report::note(&msg!("model `{}`: the environment variable {variable} is not set", model.name));
        }
    }
    for notice in &listing.notices {
        report::note(notice);
    }
    if listing.needs_trust && !listing.trusted {
        let command = format!("bcc-script trust {}", quoted(&project.directory));
        let sends = listing.models.iter().any(|model| model.provider.sends());
        report::note(&if sends {
            msg!("this configuration is not trusted, so nothing is sent to its servers: read it, then run `{command}`")
        } else {
            msg!(
                "this configuration is not trusted, so the permissions it grants to scripts are ignored: read it, then run `{command}`"
            )
        });
    }
    Ok(())
}

fn head(name: &str) -> String {
    translated(name).into_owned()
}

fn in_language(text: Message) -> String {
    translated(&text).into_owned()
}

fn row(model: &ListedModel) -> Vec<String> {
    let or_empty = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| EMPTY_CELL.to_owned());
    let key = match (model.key, &model.key_from) {
        (KeyState::None, _) | (_, None) => None,
        (KeyState::Set, Some(from)) => Some(msg!("{from} (set)")),
        (KeyState::Missing, Some(from)) => Some(msg!("{from} (missing)")),
    };
    let limits = model.limits;
    let limits = [
        limits.concurrency.map(|limit| msg!("{limit} at a time")),
        limits.requests_per_minute.map(|limit| msg!("{limit} requests/min")),
        limits.tokens_per_minute.map(|limit| msg!("{limit} tokens/min")),
    ];
    let price = model.price.as_ref().map(|price| {
        let per = if price.per == 1_000_000 { "M".to_owned() } else { price.per.to_string() };
        msg!("{} in, {} out {}/{per}", price.input, price.output, price.currency)
    });
    vec![
        model.name.clone(),
        model.provider.name().to_owned(),
        or_empty(model.model.clone()),
        or_empty(model.server.clone()),
        or_empty(key.map(in_language)),
        or_empty(Some(model.fallback.join(", "))),
        or_empty(Some(limits.into_iter().flatten().map(in_language).collect::<Vec<_>>().join(", "))),
        or_empty(price.map(in_language)),
    ]
}

async fn check_models(names: &[String], options: &ModelsArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let project = project(options, environment)?;
    let mut unique_names: Vec<String> = Vec::new();
    for name in names {
        if !unique_names.contains(name) {
            unique_names.push(name.clone());
        }
    }
    if unique_names.is_empty() {
        unique_names = model_names(&project, environment);
    }
    if unique_names.is_empty() {
        report::note("no model is configured: the built-in offline responder answers (no AI)");
        report::note(
            "set an API key such as OPENAI_API_KEY and the name of the model in BCC_MODEL, or add `[models.default]` to bcc-script.toml",
        );
        unique_names.push("default".to_owned());
    }
    let results = check(&project, environment, &unique_names).await?;
    let ok = results.iter().all(|result| result.ok);
    if options.json {
        let models: Vec<_> = results.iter().map(ModelCheck::json).collect();
        print_json(&json!({ "version": 1, "ok": ok, "models": models }))?;
    } else {
        let names = ["NAME", "MODEL", "ANSWERS", "STREAMS", "TOKENS", "JSON SCHEMA", "JSON", "TOOL", "FIRST", "ALL"];
        let rows: Vec<Vec<String>> =
            std::iter::once(names.map(head).to_vec()).chain(results.iter().map(result_row)).collect();
        print(&table(&rows))?;
        for result in &results {
            print_details(result);
        }
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

fn result_row(checked: &ModelCheck) -> Vec<String> {
    let yes_or_no = |value: Option<bool>| {
        value.map_or(EMPTY_CELL.into(), |yes| translated(if yes { "yes" } else { "no" })).into_owned()
    };
    let ms = |ms: Option<u64>| ms.map_or_else(|| EMPTY_CELL.to_owned(), |ms| format!("{ms} ms"));
    vec![
        checked.name.clone(),
        if checked.model.is_empty() { EMPTY_CELL.to_owned() } else { checked.model.clone() },
        yes_or_no(Some(checked.answers)),
        yes_or_no(checked.streams),
        yes_or_no(checked.counts_tokens),
        yes_or_no(checked.json_schema),
        yes_or_no(checked.json_object),
        yes_or_no(checked.tool),
        ms(checked.first_token_ms),
        ms(checked.ms),
    ]
}

/// Prints the results that have no column.
fn print_details(checked: &ModelCheck) {
    let name = &checked.name;
    if let Some(note) = &checked.note {
        report::note(&msg!("{name}: {note}"));
    }
    if let Some(error) = &checked.error {
        report::note(&msg!("{name}: error: {error}"));
    }
    if let Some(help) = &checked.help {
        report::note(&msg!("{name}: help: {help}"));
    }
}
