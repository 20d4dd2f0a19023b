//! The outline of a notebook in `sessions show`: its chapters and sections.

use std::fmt::Write;

use crate::error::EngineError;
use crate::export::{masker_of, stored_session};
use crate::notebook_file::masked::masked;
use bcc_lang::message::language::Language;
use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::export::text::heading;
use bcc_store::contract::Store;

/// The number of cells that are read at a time.
const PAGE: usize = 64;

/// The limit on headings that are shown; the others are counted.
const MAX_SHOWN: usize = 200;

/// The outline of a session's notebook as Markdown; none if it has no chapters and sections.
pub async fn outline(store: &dyn Store, id: &str, language: Language) -> Result<Option<String>, EngineError> {
    let row = stored_session(store, id).await?;
    let masker = masker_of(store, &row).await?;
    let (mut after, mut headings, mut remaining) = (0, String::new(), 0_usize);
    let mut shown = 0_usize;
    loop {
        let rows = store.cells(id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.number;
        for row in &rows {
            // A cell that cannot be parsed is not a heading.
            let cell: Cell = serde_json::from_str(&row.body).unwrap_or_default();
            let indent = match (cell.metadata.is_chapter, cell.metadata.is_section) {
                (true, _) => "",
                (_, true) => "  ",
                _ => continue,
            };
            if shown == MAX_SHOWN {
                remaining += 1;
                continue;
            }
            shown += 1;
            let cell = masked(cell, &masker);
            let _ = writeln!(headings, "{indent}- {}", heading(&cell.content));
        }
    }
    if shown == 0 {
        return Ok(None);
    }
    let mut text = format!("## {}\n\n", language.translate("Notebook"));
    text.push_str(&headings);
    if remaining > 0 {
        let _ = writeln!(text, "- {}", language.format("… and {count} more", &[("count", &remaining.to_string())]));
    }
    Ok(Some(text.trim_end().to_owned()))
}
