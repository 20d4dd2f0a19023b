//! Tables as JSON Lines: one object for each row.

use std::io::{self, Write};

use bcc_lang::value::exact::{ExactValue, ExactValues};
use serde_json::Value;

use crate::data_set::table::{TableCell, TableColumn, TableWriter};
use crate::files::export_folder::{ExportFile, ExportFolder};

pub(crate) struct JsonLineTable {
    file: ExportFile,
    names: Vec<String>,
}

impl JsonLineTable {
    pub(crate) fn new(file: ExportFile, columns: &[TableColumn]) -> Self {
        Self { file, names: columns.iter().map(|column| column.name.clone()).collect() }
    }

    /// Writes one object.
    pub(crate) fn object(&mut self, fields: &ExactValues) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, fields)?;
        self.file.write_all(b"\n")
    }

    pub(crate) fn complete(self, folder: &mut ExportFolder) -> io::Result<()> {
        folder.complete(self.file)
    }
}

impl TableWriter for JsonLineTable {
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()> {
        let fields = self.names.iter().cloned().zip(cells.into_iter().map(json_value)).collect();
        self.object(&fields)
    }

    fn finish(self: Box<Self>, folder: &mut ExportFolder) -> io::Result<()> {
        self.complete(folder)
    }
}

pub(crate) fn json_value(cell: TableCell) -> ExactValue {
    match cell {
        TableCell::Empty => ExactValue::default(),
        TableCell::Text(text) => Value::from(text).into(),
        TableCell::Boolean(truth) => Value::from(truth).into(),
        TableCell::Integer(number) => Value::from(number).into(),
        TableCell::Number(float, digits) => ExactValue::parse(&digits).unwrap_or_else(|_| Value::from(float).into()),
        TableCell::Date(date) => Value::from(date.to_string()).into(),
        TableCell::Time(time) => Value::from(time.to_string()).into(),
        TableCell::Json(value) => value,
    }
}
