//! `plans`: lists, shows, exports, imports and deletes the plans of a user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::cli::exit::Exit;
use crate::cli::language::filled;
use crate::cli::output_form::{OutputForm, check_output, check_target};
use crate::cli::print::{print, print_json, print_json_text, save_conversation};
use crate::cli::report;
use crate::cli::sessions::{Access, no_store, open_existing};
use crate::cli::store_args::ProjectStoreArgs;
use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::DEFAULT_USER;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::files::read_bounded;
use bcc_engine::plan_masker::plan_masker;
use bcc_engine::session_ids::secret_id;
use bcc_lang::source::render::visible::visible_line;
use bcc_lang::value::mask::Masker;
use bcc_runtime::plan::access::{PlanAccess, PlanAccessError, PlanListing};
use bcc_runtime::plan::document::PlanDocument;
use bcc_runtime::plan::export::{markdown_list, mermaid_chart, text_tree};
use bcc_runtime::plan::import::ImportError;
use bcc_runtime::plan::masking::PlanMasker;
use bcc_runtime::plan::task::{PlanHead, PlanId, TaskStatus};
use bcc_runtime::plan::tree::PlanTree;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;

/// The maximum size of a file that is imported, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug, Subcommand)]
pub enum PlansCommand {
    /// List plans
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        /// Include sensitive values
        #[arg(long)]
        include_sensitive: bool,
        #[command(flatten)]
        of: PlanStoreArgs,
    },
    /// Show a plan as a tree of its tasks
    Show {
        /// Id of the plan
        id: PlanId,
        /// Include sensitive values
        #[arg(long)]
        include_sensitive: bool,
        #[command(flatten)]
        of: PlanStoreArgs,
    },
    /// Export a plan as one document
    Export {
        /// Id of the plan
        id: PlanId,
        /// Format [default: from the extension of --output, otherwise json]
        #[arg(long, value_enum)]
        format: Option<PlanFormat>,
        /// Write to this file instead of standard output; missing directories are created
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace an existing file whatever it contains, not only a document of the same form
        #[arg(long)]
        force: bool,
        /// Include sensitive values
        #[arg(long)]
        include_sensitive: bool,
        #[command(flatten)]
        of: PlanStoreArgs,
    },
    /// Store a plan that was exported as JSON; it and its tasks keep their ids
    Import {
        /// File that `plans export` wrote
        file: PathBuf,
        /// Give new ids to the plan and its tasks
        #[arg(long)]
        new_ids: bool,
        #[command(flatten)]
        of: PlanStoreArgs,
    },
    /// Delete a plan with all its tasks
    Delete {
        /// Id of the plan
        id: PlanId,
        #[command(flatten)]
        of: PlanStoreArgs,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// One JSON document, which can be imported
    Json,
    /// A nested list in Markdown
    Md,
    /// A Mermaid flowchart
    Mermaid,
}

/// Whose plans, and where they are.
#[derive(Debug, Args)]
pub struct PlanStoreArgs {
    /// User to whom the plans belong [default: default]
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    #[command(flatten)]
    pub store: ProjectStoreArgs,
}

impl PlanStoreArgs {
    fn user(&self) -> &str {
        self.user.as_deref().unwrap_or(DEFAULT_USER)
    }

    /// The plans in the store, which must exist.
    fn open(&self, environment: &Environment, access: Access) -> Result<PlanAccess, EngineError> {
        let store = open_existing(&self.store, environment, access)?;
        Ok(PlanAccess::new(store, self.user()))
    }

    fn shown(&self, environment: &Environment, include_sensitive: bool) -> Result<ShownPlans, EngineError> {
        let store = open_existing(&self.store, environment, Access::Read)?;
        Ok(ShownPlans { access: PlanAccess::new(Arc::clone(&store), self.user()), store, include_sensitive })
    }
}

/// The plans of a user, to be shown to a person.
struct ShownPlans {
    store: Arc<dyn Store>,
    access: PlanAccess,
    include_sensitive: bool,
}

impl ShownPlans {
    async fn masker(&self, id: PlanId, head: &PlanHead) -> Result<PlanMasker, EngineError> {
        if self.include_sensitive {
            return Ok(PlanMasker::Values(Masker::default()));
        }
        let masker = plan_masker(self.store.as_ref(), head, self.access.user()).await?;
        if matches!(masker, PlanMasker::AllTexts) {
            report::note(&msg!(
                "all texts of plan {id} are masked: a session that changed it was deleted, and its sensitive values are not known any more; `--include-sensitive` shows them"
            ));
        }
        Ok(masker)
    }

    async fn list(&self) -> Result<Vec<PlanListing>, EngineError> {
        let mut found = self.access.list().await.map_err(failed)?;
        for plan in &mut found {
            plan.head = self.masker(plan.id, &plan.head).await?.head(&plan.head);
        }
        Ok(found)
    }

    /// What `read` gives for a plan as it is now.
    async fn with_plan<R>(&self, id: PlanId, read: impl FnOnce(&PlanTree) -> R + Send) -> Result<R, EngineError> {
        let head = self.access.with_released_tree(id, |tree| tree.head().clone()).await.map_err(failed)?;
        let masker = self.masker(id, &head).await?;
        self.access.with_released_tree(id, |tree| read(&masker.tree(tree))).await.map_err(failed)
    }
}

pub async fn plans(command: PlansCommand, environment: Environment) -> Result<Exit, EngineError> {
    match command {
        PlansCommand::List { json, include_sensitive, of } => list(json, include_sensitive, &of, &environment).await,
        PlansCommand::Show { id, include_sensitive, of } => {
            let text = of.shown(&environment, include_sensitive)?.with_plan(id, shown).await?;
            print(text.trim_end_matches('\n'))?;
            Ok(Exit::Done)
        }
        PlansCommand::Export { id, format, output, force, include_sensitive, of } => {
            let plans = of.shown(&environment, include_sensitive)?;
            export(&plans, id, format, output.as_deref(), force).await
        }
        PlansCommand::Import { file, new_ids, of } => import(&file, new_ids, &of, &environment).await,
        PlansCommand::Delete { id, of } => {
            let access = of.open(&environment, Access::Write)?;
            let deleted = access.delete(id, &secret_id("delete")).await.map_err(failed)?;
            let title = deleted.get("title").and_then(Value::as_str).unwrap_or_default();
            let tasks = deleted.get("removed_tasks").and_then(Value::as_u64).unwrap_or_default();
            report::note(&msg!("deleted plan {id} with {tasks} tasks: {title}", title = visible_line(title)));
            Ok(Exit::Done)
        }
    }
}

fn failed(error: PlanAccessError) -> EngineError {
    match error {
        PlanAccessError::Store(error @ (StoreError::PlanExists { .. } | StoreError::PlanTaskExists { .. })) => {
            EngineError::usage(error.to_message()).with_help("nothing was stored; `--new-ids` gives new ids")
        }
        PlanAccessError::Store(error) => error.into(),
        PlanAccessError::NoPlan { .. } => EngineError::usage(error.to_message())
            .with_help("`plans list` shows the plans; those of another user are shown with `--user`"),
        error => EngineError::usage(error.to_message()),
    }
}

async fn list(
    as_json: bool,
    include_sensitive: bool,
    of: &PlanStoreArgs,
    environment: &Environment,
) -> Result<Exit, EngineError> {
    let place = of.store.place(environment)?;
    let found = match place.exists() {
        true => of.shown(environment, include_sensitive)?.list().await?,
        false if of.store.is_named(environment) => return Err(no_store(&place)),
        false => vec![],
    };
    if as_json {
        let plans: Vec<Value> = found.iter().map(listing_json).collect();
        print_json(&json!({ "version": 1, "plans": plans }))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        report::note("no plans yet");
    }
    for plan in &found {
        let head = &plan.head;
        let completed = plan.tasks_by_status.get(&TaskStatus::Completed).copied().unwrap_or_default();
        let counts = [("done", completed.to_string()), ("all", plan.tasks().to_string())];
        let counts = counts.each_ref().map(|(name, count)| (*name, count.as_str()));
        let tasks = filled("{done} of {all} tasks completed", &counts);
        let updated = head.updated_at.get(..19).unwrap_or(&head.updated_at).replace('T', " ");
        let (status, title) = (head.status.name(), visible_line(&head.title));
        print(&format!("{}\t{status}\t{tasks}\t{updated}\t{title}", plan.id))?;
    }
    Ok(Exit::Done)
}

fn listing_json(plan: &PlanListing) -> Value {
    json!({
        "plan_id": plan.id,
        "title": plan.head.title,
        "goal": plan.head.goal,
        "status": plan.head.status,
        "tasks": plan.tasks(),
        "tasks_by_status": plan.tasks_by_status,
        "session_id": plan.head.session_id,
        "workflow_id": plan.head.workflow_id,
        "created_at": plan.head.created_at,
        "updated_at": plan.head.updated_at,
    })
}

/// A plan for the terminal.
fn shown(tree: &PlanTree) -> String {
    let head = tree.head();
    let mut text = format!("{} {} ({})\n", tree.id(), visible_line(&head.title), head.status.name());
    if !head.goal.trim().is_empty() && head.goal != head.title {
        text += &format!("{}\n", visible_line(&head.goal));
    }
    text + &text_tree(tree)
}

async fn export(
    plans: &ShownPlans,
    id: PlanId,
    format: Option<PlanFormat>,
    output: Option<&Path>,
    force: bool,
) -> Result<Exit, EngineError> {
    output.map_or(Ok(()), check_target)?;
    let format = match (format, output) {
        (Some(format), _) => format,
        (None, None) => PlanFormat::Json,
        (None, Some(path)) => match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => PlanFormat::Json,
            Some("md" | "markdown") => PlanFormat::Md,
            Some("mmd" | "mermaid") => PlanFormat::Mermaid,
            _ => {
                let path = path.display();
                return Err(EngineError::usage(msg!("the extension of {path} is none of a plan"))
                    .with_help("use `.json`, `.md` or `.mmd`, or select a format with `--format`"));
            }
        },
    };
    let written = match format {
        PlanFormat::Json => OutputForm::Plan,
        PlanFormat::Md => OutputForm::PlanMarkdown,
        PlanFormat::Mermaid => OutputForm::PlanChart,
    };
    output.map_or(Ok(()), |path| check_output(path, written, force))?;
    let text = plans
        .with_plan(id, |tree| match format {
            PlanFormat::Json => serde_json::to_string_pretty(&PlanDocument::of(tree)),
            PlanFormat::Md => Ok(markdown_list(tree)),
            PlanFormat::Mermaid => Ok(mermaid_chart(tree)),
        })
        .await?;
    let text = text.map_err(|error| EngineError::failed(msg!("the plan cannot be written as JSON: {error}")))?;
    let text = text.trim_end_matches('\n');
    match output {
        Some(path) => save_conversation(path, format!("{text}\n").as_bytes())?,
        None if format == PlanFormat::Json => print_json_text(text)?,
        None => print(text)?,
    }
    Ok(Exit::Done)
}

async fn import(
    file: &Path,
    new_ids: bool,
    of: &PlanStoreArgs,
    environment: &Environment,
) -> Result<Exit, EngineError> {
    let shown = file.display();
    let bytes = read_bounded(file, MAX_FILE_BYTES)
        .map_err(|error| EngineError::usage(msg!("{shown} cannot be read: {error}")))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(EngineError::usage(msg!("{shown} is larger than {max} MiB", max = MAX_FILE_BYTES >> 20)));
    }
    let not_plan = |why| EngineError::usage(msg!("{shown} is not a plan: {why}"));
    let document = PlanDocument::read(&bytes).map_err(|error| not_plan(error.to_message()))?;
    let store = of.store.place(environment)?.open()?;
    let access = PlanAccess::new(store, of.user());
    let imported = access.import(document, new_ids, &secret_id("import"), &stamp(now())).await;
    let (plan, tasks) = imported.map_err(|error| match error {
        ImportError::Document(error) => not_plan(error.to_message()),
        ImportError::Access(error) => failed(error),
    })?;
    report::note(&msg!("imported plan {plan} with {tasks} tasks"));
    Ok(Exit::Done)
}
