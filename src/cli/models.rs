//! `models`: which models a project has, and what they support.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use serde_json::json;

use clap::{Args, Subcommand};

use crate::cli::exit::Exit;
use crate::cli::language::said;
use crate::cli::print::{print, print_json};
use crate::cli::report;
use crate::cli::table::table;
use crate::cli::terminal::plain;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::models::check::{ModelCheck, check, every};
use bcc_engine::models::list::{KeyState, ListedModel, ModelListing, list};
use bcc_engine::project::Project;
use bcc_engine::shell::quoted;

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List the models, the default model, and whether their keys are set
    List(ModelsArgs),
    /// Send a short prompt to models and report what each supports
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
    /// Project directory [default: the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Trust the project's bcc-script.toml for this run
    #[arg(long)]
    pub trust: bool,
}

/// Nothing to tell in a cell.
const NOTHING: &str = "–";

pub async fn models(command: ModelsCommand, environment: Environment) -> Result<Exit, EngineError> {
    match command {
        ModelsCommand::List(of) => {
            let project = project(&of, &environment)?;
            let listing = list(&project, &environment);
            if of.json {
                print_json(&listing.json())?;
            } else {
                shown(&listing, &project)?;
            }
            Ok(Exit::Done)
        }
        ModelsCommand::Check { names, of } => checked(&names, &of, &environment).await,
    }
}

fn project(of: &ModelsArgs, environment: &Environment) -> Result<Project, EngineError> {
    Project::of(Path::new("."), of.project.as_deref(), of.trust, environment)
}

fn shown(listing: &ModelListing, project: &Project) -> Result<(), EngineError> {
    if !listing.models.is_empty() {
        let names = ["NAME", "PROVIDER", "MODEL", "SERVER", "KEY", "FALLBACK", "LIMITS", "PRICE"].map(head);
        let rows: Vec<Vec<String>> = std::iter::once(names.to_vec()).chain(listing.models.iter().map(row)).collect();
        print(&plain(&table(&rows)))?;
        print("")?;
    }
    print(&plain(&said(&msg!("A script without `model:` uses `{}`: {}.", listing.default, listing.why))))?;
    if listing.models.is_empty() {
        print(&said(
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
    said(name).into_owned()
}

fn in_language(text: Message) -> String {
    said(&text).into_owned()
}

fn row(model: &ListedModel) -> Vec<String> {
    let or_nothing = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| NOTHING.to_owned());
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
        or_nothing(model.model.clone()),
        or_nothing(model.server.clone()),
        or_nothing(key.map(in_language)),
        or_nothing(Some(model.fallback.join(", "))),
        or_nothing(Some(limits.into_iter().flatten().map(in_language).collect::<Vec<_>>().join(", "))),
        or_nothing(price.map(in_language)),
    ]
}

async fn checked(names: &[String], of: &ModelsArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let project = project(of, environment)?;
    let mut asked: Vec<String> = Vec::new();
    for name in names {
        if !asked.contains(name) {
            asked.push(name.clone());
        }
    }
    if asked.is_empty() {
        asked = every(&project, environment);
    }
    if asked.is_empty() {
        report::note("no model is configured: the built-in offline responder answers (no AI)");
        report::note(
            "set an API key such as OPENAI_API_KEY and the name of the model in BCC_MODEL, or add `[models.default]` to bcc-script.toml",
        );
        asked.push("default".to_owned());
    }
    let results = check(&project, environment, &asked).await?;
    let ok = results.iter().all(|result| result.ok);
    if of.json {
        let models: Vec<_> = results.iter().map(ModelCheck::json).collect();
        print_json(&json!({ "version": 1, "ok": ok, "models": models }))?;
    } else {
        let names = ["NAME", "MODEL", "ANSWERS", "STREAMS", "TOKENS", "JSON SCHEMA", "JSON", "TOOL", "FIRST", "ALL"];
        let rows: Vec<Vec<String>> =
            std::iter::once(names.map(head).to_vec()).chain(results.iter().map(result)).collect();
        print(&plain(&table(&rows)))?;
        for result in &results {
            told(result);
        }
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

fn result(checked: &ModelCheck) -> Vec<String> {
    let truth =
        |truth: Option<bool>| truth.map_or(NOTHING.into(), |truth| said(if truth { "yes" } else { "no" })).into_owned();
    let ms = |ms: Option<u64>| ms.map_or_else(|| NOTHING.to_owned(), |ms| format!("{ms} ms"));
    vec![
        checked.name.clone(),
        if checked.model.is_empty() { NOTHING.to_owned() } else { checked.model.clone() },
        truth(Some(checked.answers)),
        truth(checked.streams),
        truth(checked.counts_tokens),
        truth(checked.json_schema),
        truth(checked.json_object),
        truth(checked.tool),
        ms(checked.first_token_ms),
        ms(checked.ms),
    ]
}

/// What stands in no column.
fn told(checked: &ModelCheck) {
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
