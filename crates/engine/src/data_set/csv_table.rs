//! Tables as CSV: RFC 4180, UTF-8 with a byte order mark, without which Excel takes Chinese text for another encoding.

use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};

use crate::data_set::table::{TableCell, TableColumn, TableWriter};
use crate::files::export_folder::{ExportFile, ExportFolder};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Characters at the start of a cell from which a spreadsheet makes a formula, also in their full-width forms.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

pub(crate) struct CsvTable(Writer<ExportFile>);

impl CsvTable {
    pub(crate) fn new(mut file: ExportFile, columns: &[TableColumn]) -> io::Result<Self> {
        file.write_all(BYTE_ORDER_MARK.as_bytes())?;
        let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(file);
        // Names may be keys of objects that a model or a person wrote.
        writer.write_record(columns.iter().map(|column| without_formula(&column.name)))?;
        Ok(Self(writer))
    }
}

impl TableWriter for CsvTable {
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()> {
        Ok(self.0.write_record(cells.iter().map(csv_text))?)
    }

    fn finish(self: Box<Self>, folder: &mut ExportFolder) -> io::Result<()> {
        let file = self.0.into_inner().map_err(|error| error.into_error())?;
        folder.complete(file)
    }
}

fn csv_text(cell: &TableCell) -> String {
    match cell {
        TableCell::Empty => String::new(),
        TableCell::Text(text) => without_formula(text),
        TableCell::Boolean(truth) => truth.to_string(),
        TableCell::Integer(number) => number.to_string(),
        TableCell::Number(_, digits) => digits.clone(),
        TableCell::Date(date) => date.to_string(),
        TableCell::Time(time) => time.to_string(),
        TableCell::Json(value) => without_formula(&value.to_string()),
    }
}

/// A text that no spreadsheet takes for a formula: an apostrophe is put before it if it would be one. A number stays as it is. A text
/// that already begins with apostrophes before such a character gets one more, so that removing one always gives the original.
pub(crate) fn without_formula(text: &str) -> String {
    // Readers written in C end at this character, or refuse the file.
    let text = text.replace('\0', "\u{fffd}");
    let is_formula = text.trim_start_matches('\'').starts_with(FORMULA_STARTS);
    if is_formula && !is_number(&text) { format!("'{text}") } else { text }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    [whole, fraction].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_a_formula_and_numbers_stay() {
        for text in ["", "a=1", "-5", "+3.25", "12", "'quoted'", "你好", " =1"] {
            assert_eq!(without_formula(text), text);
        }
        for text in ["=1+1", "+86 138", "-", "-1+2", "@SUM(A1)", "\tx", "＝1", "'=1", "''@x", "-1.", "+1e5", "--1"] {
            assert_eq!(without_formula(text), format!("'{text}"));
        }
    }
}
