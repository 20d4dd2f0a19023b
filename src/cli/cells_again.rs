//! The texts about cells that run again because the kernel has lost its memory.

use crate::cli::language::filled;
use bcc_runtime::program::cell_rerun::CellRerunPiece;

/// What is said before the first of them.
pub fn rerun_notice(piece: &CellRerunPiece<'_>) -> String {
    let total = piece.total.to_string();
    filled("the kernel starts with empty memory; earlier cells that are run again first: {total}", &[("total", &total)])
}

/// What is said of a cell while it runs.
pub fn rerun_line(piece: &CellRerunPiece<'_>) -> Option<String> {
    if piece.ended.is_some() {
        return None;
    }
    let (number, total) = (piece.number.to_string(), piece.total.to_string());
    let values = [("number", number.as_str()), ("total", &total), ("cell", piece.cell_id)];
    Some(filled("running cell {number} of {total} again: {cell}", &values))
}

/// Both, as lines of a log.
pub fn rerun_lines(piece: &CellRerunPiece<'_>) -> Vec<String> {
    let notice = piece.starts().then(|| rerun_notice(piece));
    notice.into_iter().chain(rerun_line(piece)).collect()
}
