//! Actions that create or change cells.

use crate::notebook::action::{AddAction, ExecAction, Heading, Thinking};
use crate::notebook::apply::clean::{clean, to_heading, with_heading};
use crate::notebook::cell::{Cell, CellKind, Metadata};
use crate::notebook::error::ActionRejection;
use crate::notebook::state::{MAX_IDS_AHEAD, NotebookState};

/// The level of a heading.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Chapter,
    Section,
    Step,
}

impl Level {
    const fn marks(self) -> &'static str {
        match self {
            Self::Chapter => "##",
            Self::Section => "###",
            Self::Step => "####",
        }
    }
}

/// `add`: the new cell, and how to run it if it should run.
pub(crate) fn add(
    state: &mut NotebookState,
    add: &AddAction,
    existing: Option<Cell>,
) -> Result<(Cell, Option<ExecAction>), ActionRejection> {
    if existing.is_some() {
        return Err(ActionRejection::new(
            "cell-exists",
            "the notebook already has a cell with the id in `store_id`: each id can be used only once",
        ));
    }
    if let Some(number) = add.store_id.as_deref().and_then(numbered_id).filter(|number| *number > state.cell_count + 1)
    {
        if state.ids_ahead.len() >= MAX_IDS_AHEAD {
            let message = "too many cells were given ids of the form `cell-{number}` before their number was reached";
            return Err(ActionRejection::new("too-many-ids-ahead", message));
        }
        state.ids_ahead.insert(number);
    }
    let mut metadata = add.metadata.clone();
    let mut content = clean(&add.content, add.kind).to_owned();
    for (level, is_level) in
        [(Level::Chapter, metadata.is_chapter), (Level::Section, metadata.is_section), (Level::Step, metadata.is_step)]
    {
        if is_level {
            start_heading(state, &mut metadata, level);
            if add.kind == CellKind::Markdown {
                content = with_heading(&content, level.marks()).into_owned();
            }
        }
    }
    let cell = put(state, add.kind, add.store_id.clone(), content, metadata);
    let run = add.run.then(|| ExecAction {
        codecell_id: cell.id.clone(),
        need_output: true,
        auto_debug: false,
        keep_debug_button_visible: false,
    });
    Ok((cell, run))
}

/// `new_chapter`, `new_section` and `new_step`: the cell and the text of its heading.
pub(crate) fn heading(state: &mut NotebookState, heading: &Heading, level: Level) -> (Cell, String) {
    let mut metadata = heading.metadata.clone();
    start_heading(state, &mut metadata, level);
    let (content, heading_text) = to_heading(&heading.content, level.marks());
    (put(state, CellKind::Markdown, None, content, metadata), heading_text)
}

/// Counts a chapter or a section, and sets its id and number in the metadata unless they were given.
fn start_heading(state: &mut NotebookState, metadata: &mut Metadata, level: Level) {
    match level {
        Level::Chapter => {
            state.chapter_count += 1;
            let count = state.chapter_count;
            metadata.is_chapter = true;
            metadata.chapter_number.get_or_insert(count);
            metadata.chapter_id.get_or_insert_with(|| format!("chapter-{count}"));
        }
        Level::Section => {
            state.section_count += 1;
            let count = state.section_count;
            metadata.is_section = true;
            let number = *metadata.section_number.get_or_insert(count);
            let id = metadata.section_id.get_or_insert_with(|| format!("section-{count}"));
            state.section_progress.start(id.clone(), number);
        }
        Level::Step => metadata.is_step = true,
    }
}

/// `is_thinking`: its cell.
pub(crate) fn thinking(state: &mut NotebookState, thinking: &Thinking) -> Cell {
    let given = thinking.thinking_text.clone().or_else(|| thinking.custom_text.clone());
    let content = given.unwrap_or_else(|| thinking.text_array.join("\n"));
    let metadata = Metadata {
        thinking_text: thinking.thinking_text.clone(),
        agent_name: thinking.agent_name.clone(),
        custom_text: thinking.custom_text.clone(),
        text_array: thinking.text_array.clone(),
        ..Metadata::default()
    };
    let cell = put(state, CellKind::Thinking, None, content, metadata);
    state.thinking = Some(cell.id.clone());
    cell
}

/// Marks a thinking cell as finished.
pub(crate) fn finish_thinking(mut cell: Cell) -> Cell {
    cell.metadata.finished_thinking = true;
    cell
}

/// `update_title`: changes the cell that shows the title, if there is one. It is the first cell of the notebook if that is a
/// heading of the first level; an empty notebook gets a new one. No cell is inserted before another.
pub(crate) fn title(state: &mut NotebookState, title: &str, shown: Option<Cell>) -> Option<Cell> {
    state.title = Some(title.to_owned());
    let heading = format!("# {title}");
    match shown {
        Some(mut cell) => {
            let body = cell.content.trim_start().split_once('\n').map(|(_, body)| body.to_owned());
            cell.content = body.map_or(heading.clone(), |body| format!("{heading}\n{body}"));
            Some(cell)
        }
        None if state.cell_count == 0 => Some(put(state, CellKind::Markdown, None, heading, Metadata::default())),
        None => None,
    }
}

/// Adds a cell at the end of the notebook. A given id must be unused.
fn put(state: &mut NotebookState, kind: CellKind, id: Option<String>, content: String, metadata: Metadata) -> Cell {
    state.cell_count += 1;
    let number = state.cell_count;
    // Given ids cannot start with `_`.
    let default_id = if state.ids_ahead.remove(&number) { format!("_cell-{number}") } else { format!("cell-{number}") };
    let cell = Cell { number, id: id.unwrap_or(default_id), kind, content, metadata, ..Cell::default() };
    if number == 1 && kind == CellKind::Markdown && cell.content.starts_with("# ") {
        state.title_cell = Some(cell.id.clone());
    }
    let is_heading = cell.metadata.is_chapter || cell.metadata.is_section || cell.metadata.is_step;
    match kind {
        CellKind::Code => state.last_code_cell = Some(cell.id.clone()),
        CellKind::Markdown if !is_heading && state.title_cell.as_ref() != Some(&cell.id) => {
            state.last_text_cell = Some(cell.id.clone());
        }
        CellKind::Markdown | CellKind::Thinking => {}
    }
    state.last_cell_type = Some(kind.name().to_owned());
    cell
}

/// The number of the cell that has this id by default.
fn numbered_id(id: &str) -> Option<u64> {
    let number = id.strip_prefix("cell-")?.parse().ok()?;
    (format!("cell-{number}") == id).then_some(number)
}
