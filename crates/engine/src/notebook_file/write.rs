//! Writes the notebook of a stored session. Cells are read in pages, masked, and written one by one.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::EngineError;
use crate::export::{masker, stored_session};
use crate::files::write::FileReplacement;
use crate::notebook_file::masked::{masked, masked_text};
use crate::notebook_file::pictures::PictureFolder;
use crate::pin::Pinned;
use crate::session_variables::user_variables;
use bcc_lang::message::language::Language;
use bcc_lang::source::compose::parse;
use bcc_lang::value::mask::Masker;
use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::export::brief::NotebookMetadata;
use bcc_runtime::notebook::export::form::{ExportForm, Writer};
use bcc_runtime::notebook::kernel::contract::KernelSettings;
use bcc_runtime::notebook::large_outputs::{restore, take_libraries};
use bcc_runtime::notebook::state::NotebookState;

use bcc_runtime::run::notebook::state_of;
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;
use serde_json::Value;

/// The number of cells that are read at a time: one may contain megabytes of output.
const PAGE: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotebookFileRequest {
    pub session: String,
    pub form: ExportForm,
    /// The language of fixed texts, such as headings.
    pub language: Language,
    /// Where pictures of a Markdown file are written as files of their own.
    pub pictures: Option<PictureFolder>,
    /// Whether HTML outputs on a page may run their scripts.
    pub runs_scripts: bool,
    /// What the cell that runs has printed so far, which is not stored yet.
    pub running: Option<RunningOutput>,
}

impl NotebookFileRequest {
    /// The notebook of this session in this form.
    pub fn new(session: impl Into<String>, form: ExportForm, language: Language) -> Self {
        let session = session.into();
        Self { session, form, language, pictures: None, runs_scripts: false, running: None }
    }
}

/// The output of a cell while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningOutput {
    pub cell_id: String,
    /// In the form of nbformat. They replace those of an earlier run.
    pub outputs: Vec<Value>,
    /// Whether the process that ran it is gone. If the cell has ended nevertheless, its stored outputs are the complete ones.
    pub is_earlier: bool,
}

/// The number of cells of the notebook of a session.
pub async fn cell_count(store: &dyn Store, id: &str) -> Result<u64, EngineError> {
    stored_session(store, id).await?;
    let last = store.cells_tail(id, 1).await?;
    Ok(last.first().map_or(0, |row| row.number))
}

/// Writes the notebook of a session to `path` atomically. Returns the number of cells.
pub async fn write_file(store: &dyn Store, request: &NotebookFileRequest, path: &Path) -> Result<u64, EngineError> {
    let failed =
        |error: std::io::Error| EngineError::failed(msg!("{path} cannot be written: {error}", path = path.display()));
    let mut file = BufWriter::new(FileReplacement::start_document(path).map_err(failed)?);
    let cells = write_to(store, request, &mut |text| file.write_all(text.as_bytes()).map_err(failed)).await?;
    file.into_inner().map_err(|error| failed(error.into_error()))?.finish().map_err(failed)?;
    Ok(cells)
}

/// Passes the notebook of a session to `write`, cell by cell. Returns the number of cells.
pub async fn write_to(
    store: &dyn Store,
    request: &NotebookFileRequest,
    write: &mut (dyn FnMut(&str) -> Result<(), EngineError> + Send),
) -> Result<u64, EngineError> {
    let id = request.session.as_str();
    let row = stored_session(store, id).await?;
    let variables = store.variables(id).await?;
    let state = state_of(&variables).map_err(|reason| unreadable(id, &reason))?.unwrap_or_default();
    let masker = masker(&variables, &user_variables(store, &row).await?)?;
    let brief = NotebookMetadata {
        title: masked_text(state.title.as_deref(), &masker),
        kernel: kernel(store, &row).await,
        pictures: request.pictures.as_ref().map(|pictures| pictures.address.clone()),
        runs_scripts: request.runs_scripts,
        ..brief(&row, &state, request.language)
    };
    let libraries = match request.form {
        ExportForm::Html => libraries(store, request, &state, &masker).await?,
        ExportForm::Ipynb | ExportForm::Markdown => vec![],
    };
    let mut writer = Writer::new(request.form, brief, libraries);
    write(&writer.head())?;
    let (mut after, mut cells) = (0, 0);
    loop {
        let rows = store.cells(id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.number;
        for row in &rows {
            let mut cell: Cell = serde_json::from_str(&row.body)
                .map_err(|error| unreadable(id, &msg!("cell {}: {error}", row.number)))?;
            restore(store, id, &mut cell).await?;
            let is_of_cell =
                |running: &&RunningOutput| running.cell_id == cell.id && !(running.is_earlier && cell.ended.is_some());
            if let Some(running) = request.running.as_ref().filter(is_of_cell) {
                cell.outputs.clone_from(&running.outputs);
                drop(take_libraries(&mut cell.outputs));
                (cell.execution_count, cell.ended) = (None, None);
            }
            let text = writer.cell(&masked(cell, &masker));
            // Before the text that refers to them.
            if let Some(folder) = &request.pictures {
                writer.pictures().iter().try_for_each(|picture| folder.add(picture))?;
            }
            write(&text)?;
            cells += 1;
        }
    }
    write(&writer.tail())?;
    Ok(cells)
}

/// The libraries of a notebook for charts. A page that runs no scripts only needs their number.
async fn libraries(
    store: &dyn Store,
    request: &NotebookFileRequest,
    state: &NotebookState,
    masker: &Masker,
) -> Result<Vec<String>, EngineError> {
    let mut libraries = vec![];
    for sha256 in &state.chart_libraries {
        let text = if request.runs_scripts { store.text(&request.session, sha256).await? } else { Some(String::new()) };
        libraries.extend(masked_text(text.as_deref(), masker));
    }
    Ok(libraries)
}

/// A page with one text, for a session without cells.
pub async fn page_of(
    store: &dyn Store,
    request: &NotebookFileRequest,
    markdown: String,
) -> Result<String, EngineError> {
    let row = stored_session(store, &request.session).await?;
    let brief = NotebookMetadata { shows_title: true, ..brief(&row, &NotebookState::default(), request.language) };
    let mut writer = Writer::new(request.form, brief, vec![]);
    let cell = Cell { number: 1, id: "transcript".to_owned(), content: markdown, ..Cell::default() };
    let mut page = writer.head();
    page.push_str(&writer.cell(&cell));
    page.push_str(&writer.tail());
    Ok(page)
}

fn brief(row: &SessionRow, state: &NotebookState, language: Language) -> NotebookMetadata {
    NotebookMetadata {
        session: row.id.clone(),
        script: row.script_name.clone().unwrap_or_else(|| row.script.clone()),
        title: None,
        shows_title: state.title_cell.is_some(),
        kernel: String::new(),
        kernel_language: state.kernel_language.clone(),
        language,
        pictures: None,
        runs_scripts: false,
    }
}

/// The kernel that the script of a session specifies. If this release can no longer read the script, the default kernel, so that
/// the notebook can still be exported.
async fn kernel(store: &dyn Store, row: &SessionRow) -> String {
    let program = match Pinned::load(store, &row.manifest).await {
        Ok(pinned) => pinned.check(parse(&pinned.script)).ok().and_then(|(program, _)| program),
        Err(_) => None,
    };
    program.map_or_else(|| KernelSettings::default().name, |program| program.kernel.name)
}

fn unreadable(id: &str, reason: &Message) -> EngineError {
    EngineError::failed(msg!("the notebook of session `{id}` cannot be read: {reason}"))
        .with_help("it was written by another release, or the store is damaged; nothing was changed")
}
