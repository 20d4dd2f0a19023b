//! What `sessions show` tells of a notebook: its title, its chapters and sections, and how much is in it.

use std::fmt::Write;

use crate::archive::contract::Archive;
use crate::engine::error::EngineError;
use crate::engine::export::{kept, masker};
use crate::engine::notebook_file::masked::masked;
use crate::notebook::cell::{Cell, CellKind, Ended};
use crate::notebook::export::text::heading;
use crate::words::language::Language;

/// How many cells are read at a time.
const PAGE: usize = 64;

/// The most headings that are shown; more are counted.
const MOST_SHOWN: usize = 200;

/// The outline of a session's notebook as markdown; none when it has no cells.
///
/// # Errors
/// When there is no such session, or its rows cannot be read.
pub async fn outline(archive: &dyn Archive, id: &str, language: Language) -> Result<Option<String>, EngineError> {
    let row = kept(archive, id).await?;
    let masker = masker(&archive.variables(id).await?, &archive.user_variables(&row.user).await?)?;
    let (mut after, mut headings, mut left) = (0, String::new(), 0_usize);
    let (mut cells, mut code, mut ran, mut failed, mut shown) = (0_u64, 0_u64, 0_u64, 0_u64, 0_usize);
    loop {
        let rows = archive.cells(id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.number;
        for row in &rows {
            // One that cannot be read is still a cell.
            let cell: Cell = serde_json::from_str(&row.body).unwrap_or_default();
            cells += 1;
            code += u64::from(cell.kind == CellKind::Code);
            ran += u64::from(cell.ended.is_some());
            failed += u64::from(cell.ended.is_some_and(|ended| ended != Ended::Ok));
            let indent = match (cell.metadata.is_chapter, cell.metadata.is_section) {
                (true, _) => "",
                (_, true) => "  ",
                _ => continue,
            };
            if shown == MOST_SHOWN {
                left += 1;
                continue;
            }
            shown += 1;
            let cell = masked(cell, &masker);
            let _ = writeln!(headings, "{indent}- {}", heading(&cell.content));
        }
    }
    if cells == 0 {
        return Ok(None);
    }
    let counts = [cells, code, ran, failed].map(|count| count.to_string());
    let [cells, code, ran, failed] = counts.each_ref().map(String::as_str);
    let mut text = format!("## {}\n\n", language.said("Notebook"));
    let values = [("cells", cells), ("code", code), ("ran", ran), ("failed", failed)];
    let told = language.filled("{cells} cells, {code} of them code; {ran} ran, {failed} of these failed", &values);
    let _ = writeln!(text, "{told}\n");
    text.push_str(&headings);
    if left > 0 {
        let _ = writeln!(text, "- {}", language.filled("… and {count} more", &[("count", &left.to_string())]));
    }
    Ok(Some(text.trim_end().to_owned()))
}
