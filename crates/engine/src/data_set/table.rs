//! A table: its columns with their types, its cells, and what writes its rows.

use std::io;

use bcc_lang::value::exact::ExactValue;
use serde_json::Value;

use crate::files::export_folder::ExportFolder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    Boolean,
    Integer,
    Number,
    Date,
    Time,
    /// A list or an object, as JSON.
    Json,
}

impl ColumnType {
    /// The name in the codebook.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Date => "date",
            Self::Time => "timestamp",
            Self::Json => "json",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
}

impl TableColumn {
    pub(crate) fn new(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self { name: name.into(), column_type }
    }
}

/// A value of the type of its column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableCell {
    Empty,
    Text(String),
    Boolean(bool),
    Integer(i64),
    /// With the digits that were written.
    Number(f64, String),
    Date(jiff::civil::Date),
    Time(jiff::Timestamp),
    Json(ExactValue),
}

impl TableCell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn optional(text: Option<String>) -> Self {
        text.map_or(Self::Empty, Self::Text)
    }

    pub(crate) fn count(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// A time as a store has it.
    pub(crate) fn time(stamp: &str) -> Self {
        stamp.parse().map_or(Self::Empty, Self::Time)
    }

    /// A value as this type. One that does not fit is written as text, and left out of a column that has no place for text.
    pub(crate) fn of(value: &ExactValue, column_type: ColumnType) -> Self {
        match (column_type, &**value) {
            (_, Value::Null) => Self::Empty,
            (ColumnType::Json, _) => Self::Json(value.clone()),
            (ColumnType::Boolean, Value::Bool(truth)) => Self::Boolean(*truth),
            (ColumnType::Integer, Value::Number(number)) => number.as_i64().map_or(Self::Empty, Self::Integer),
            (ColumnType::Number, Value::Number(number)) => number.as_f64().map_or(Self::Empty, |float| {
                Self::Number(float, value.number_text().map_or_else(|| number.to_string(), str::to_owned))
            }),
            (ColumnType::Date, Value::String(text)) => text.parse().map_or(Self::Empty, Self::Date),
            (ColumnType::Time, Value::String(text)) => Self::time(text),
            (ColumnType::Text, _) => Self::Text(plain(value)),
            _ => Self::Empty,
        }
    }
}

/// A value as text: a text as it is, everything else as JSON with the digits that were written.
pub(crate) fn plain(value: &ExactValue) -> String {
    match &**value {
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}

/// Writes the rows of one table.
pub(crate) trait TableWriter {
    /// Writes a row with a cell for each column.
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()>;

    /// Completes the file.
    fn finish(self: Box<Self>, folder: &mut ExportFolder) -> io::Result<()>;
}
