//! Actions that make cells, or change what stands in them.

use crate::notebook::action::{AddAction, ExecAction, Heading, Thinking};
use crate::notebook::apply::clean::{clean, headed, with_heading};
use crate::notebook::cell::{Cell, CellKind, Metadata};
use crate::notebook::error::ActionRejection;
use crate::notebook::state::{MOST_AHEAD, NotebookState};

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

/// `add`: the new cell, and how it is to run when it is.
pub(crate) fn add(
    state: &mut NotebookState,
    add: &AddAction,
    taken: Option<Cell>,
) -> Result<(Cell, Option<ExecAction>), ActionRejection> {
    if taken.is_some() {
        return Err(ActionRejection::new(
            "cell-exists",
            "the notebook already has a cell with the id in `store_id`: each id can be used only once",
        ));
    }
    if let Some(ahead) = add.store_id.as_deref().and_then(numbered).filter(|ahead| *ahead > state.cell_count + 1) {
        if state.ids_ahead.len() >= MOST_AHEAD {
            let message = "too many cells were given ids of the form `cell-{number}` before their number was reached";
            return Err(ActionRejection::new("too-many-ids-ahead", message));
        }
        state.ids_ahead.insert(ahead);
    }
    let mut metadata = add.metadata.clone();
    let mut content = clean(&add.content, add.kind).to_owned();
    for (level, is_meant) in
        [(Level::Chapter, metadata.is_chapter), (Level::Section, metadata.is_section), (Level::Step, metadata.is_step)]
    {
        if is_meant {
            begin(state, &mut metadata, level);
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

/// A chapter, a section or a step: its cell, and its words.
pub(crate) fn heading(state: &mut NotebookState, heading: &Heading, level: Level) -> (Cell, String) {
    let mut metadata = heading.metadata.clone();
    begin(state, &mut metadata, level);
    let (content, words) = headed(&heading.content, level.marks());
    (put(state, CellKind::Markdown, None, content, metadata), words)
}

/// Counts a chapter or a section, and says in its metadata which one it is. What was given there stays.
fn begin(state: &mut NotebookState, metadata: &mut Metadata, level: Level) {
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
            state.section_progress.begin(id.clone(), number);
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

/// The cell of a thinking that came to its end.
pub(crate) fn finished(mut cell: Cell) -> Cell {
    cell.metadata.finished_thinking = true;
    cell
}

/// `update_title`: the cell that shows it, when there is one. It is the first cell of the notebook, when that is a heading of
/// the first level; an empty notebook gets it. No cell is put before another.
pub(crate) fn title(state: &mut NotebookState, title: &str, shown: Option<Cell>) -> Option<Cell> {
    state.title = Some(title.to_owned());
    let heading = format!("# {title}");
    match shown {
        Some(mut cell) => {
            let rest = cell.content.trim_start().split_once('\n').map(|(_, rest)| rest.to_owned());
            cell.content = rest.map_or(heading.clone(), |rest| format!("{heading}\n{rest}"));
            Some(cell)
        }
        None if state.cell_count == 0 => Some(put(state, CellKind::Markdown, None, heading, Metadata::default())),
        None => None,
    }
}

/// A new cell at the end of the notebook. An id that is given is free.
fn put(state: &mut NotebookState, kind: CellKind, id: Option<String>, content: String, metadata: Metadata) -> Cell {
    state.cell_count += 1;
    let number = state.cell_count;
    // Nobody can give an id that begins with `_`.
    let own = if state.ids_ahead.remove(&number) { format!("_cell-{number}") } else { format!("cell-{number}") };
    let cell = Cell { number, id: id.unwrap_or(own), kind, content, metadata, ..Cell::default() };
    if number == 1 && kind == CellKind::Markdown && cell.content.starts_with("# ") {
        state.title_cell = Some(cell.id.clone());
    }
    if kind == CellKind::Code {
        state.last_code_cell = Some(cell.id.clone());
    }
    state.last_cell_type = Some(kind.name().to_owned());
    cell
}

/// The number of the cell whose own id this is.
fn numbered(id: &str) -> Option<u64> {
    let number = id.strip_prefix("cell-")?.parse().ok()?;
    (format!("cell-{number}") == id).then_some(number)
}
