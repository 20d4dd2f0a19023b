//! Tables for people. Wide characters, as in Chinese, count as two columns.

use bcc_lang::source::render::visible::visible_line;
use unicode_width::UnicodeWidthStr;

/// The spaces between two columns.
const GAP: usize = 2;

/// Lays out rows of cells; the first row is the head. The last column is not padded. What a terminal would obey or hide is visible.
pub fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| visible_line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let fill = width.saturating_sub(cell.width()) + GAP;
            format!("{cell}{}", " ".repeat(fill))
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `text`, padded with spaces to this width.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_with_cjk_text() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "model", "ok"]), row(["咨询", "qwen3", "yes"]), row(["a", "模型", "no"])];
        insta::assert_snapshot!(table(&rows), @r"
        name  model  ok
        咨询  qwen3  yes
        a     模型   no
        ");
        assert_eq!(table(&[]), "");
        assert_eq!(table(&[row(["a\u{1b}", "b\nc", "d\u{202e}"])]), "a␛  b c  d\\u{202e}");
    }
}
