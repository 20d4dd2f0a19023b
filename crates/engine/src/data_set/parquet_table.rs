//! Tables as Parquet. A row group holds as many rows as fit in a little memory.

use std::io;
use std::sync::Arc;

use jiff::civil::Date;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::data_set::table::{ColumnType, TableCell, TableColumn, TableWriter};
use crate::files::export_folder::{ExportFile, ExportFolder};

/// The number of rows of a row group, and the number of bytes of their texts.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;

const CREATED_BY: &str = concat!("bcc-script version ", env!("CARGO_PKG_VERSION"));

pub(crate) struct ParquetTable {
    writer: SerializedFileWriter<ExportFile>,
    columns: Vec<(ColumnType, Vec<TableCell>)>,
    rows: usize,
    bytes: usize,
}

impl ParquetTable {
    pub(crate) fn new(file: ExportFile, columns: &[TableColumn]) -> io::Result<Self> {
        let fields: Vec<TypePtr> = columns.iter().map(field).collect::<Result<_, _>>().map_err(written)?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(written)?;
        let properties = WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(written)?;
        let columns = columns.iter().map(|column| (column.column_type, vec![])).collect();
        Ok(Self { writer, columns, rows: 0, bytes: 0 })
    }

    fn write_rows(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (column_type, cells) in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            write_column(&mut column, *column_type, cells)?;
            column.close()?;
            cells.clear();
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl TableWriter for ParquetTable {
    fn row(&mut self, cells: Vec<TableCell>) -> io::Result<()> {
        for ((_, column), cell) in self.columns.iter_mut().zip(cells) {
            let cell = match cell {
                TableCell::Json(value) => TableCell::Text(value.to_string()),
                other => other,
            };
            if let TableCell::Text(text) = &cell {
                self.bytes += text.len();
            }
            column.push(cell);
        }
        self.rows += 1;
        if self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES {
            self.write_rows().map_err(written)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, folder: &mut ExportFolder) -> io::Result<()> {
        self.write_rows().map_err(written)?;
        let file = self.writer.into_inner().map_err(written)?;
        folder.complete(file)
    }
}

fn written(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn field(column: &TableColumn) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.column_type {
        ColumnType::Text | ColumnType::Json => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Boolean => (PhysicalType::BOOLEAN, None),
        ColumnType::Integer => (PhysicalType::INT64, None),
        ColumnType::Number => (PhysicalType::DOUBLE, None),
        ColumnType::Date => (PhysicalType::INT32, Some(LogicalType::Date)),
        ColumnType::Time => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
    };
    let builder = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(builder.with_logical_type(logical).build()?))
}

fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    column_type: ColumnType,
    cells: &[TableCell],
) -> Result<(), ParquetError> {
    match column_type {
        ColumnType::Text | ColumnType::Json => {
            let (values, levels) = present(cells, |cell| match cell {
                TableCell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            });
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        ColumnType::Boolean => {
            let (values, levels) = present(cells, |cell| match cell {
                TableCell::Boolean(truth) => Some(*truth),
                _ => None,
            });
            column.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
        }
        ColumnType::Integer | ColumnType::Time => {
            let (values, levels) = present(cells, |cell| match cell {
                TableCell::Integer(number) => Some(*number),
                TableCell::Time(time) => Some(time.as_microsecond()),
                _ => None,
            });
            column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        ColumnType::Number => {
            let (values, levels) = present(cells, |cell| match cell {
                TableCell::Number(number, _) => Some(*number),
                _ => None,
            });
            column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        ColumnType::Date => {
            let (values, levels) = present(cells, |cell| match cell {
                TableCell::Date(date) => Some(days(*date)),
                _ => None,
            });
            column.typed::<Int32Type>().write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}

/// The values that are not empty, and for each cell whether it has one.
fn present<T>(cells: &[TableCell], value: impl Fn(&TableCell) -> Option<T>) -> (Vec<T>, Vec<i16>) {
    let values: Vec<Option<T>> = cells.iter().map(value).collect();
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (values.into_iter().flatten().collect(), levels)
}

/// Days since 1970-01-01.
fn days(date: Date) -> i32 {
    date.since(Date::new(1970, 1, 1).unwrap_or(date)).map_or(0, |span| span.get_days())
}
