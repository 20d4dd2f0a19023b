//! Writes the tables of a script from its interviews.

use std::io;

use bcc_lang::value::exact::{ExactValue, ExactValues};
use serde_json::Value;

use crate::data_set::columns::{
    ACTION_COLUMNS, ColumnContent, DataSetLayout, ElementTable, FOLLOW_UP_COLUMNS, INTERVIEW_COLUMNS, LIST_COLUMNS,
    MESSAGE_COLUMNS, VISIT_COLUMNS, VariableColumn, VisitTable,
};
use crate::data_set::csv_table::CsvTable;
use crate::data_set::interview::{CollectedValue, Interview, InterviewMessage, MessageRole};
use crate::data_set::json_lines::{JsonLineTable, json_value};
#[cfg(feature = "parquet")]
use crate::data_set::parquet_table::ParquetTable;
use crate::data_set::request::DataSetFormat;
use crate::data_set::spool::InterviewSpool;
use crate::data_set::table::{ColumnType, TableCell, TableColumn, TableWriter};
use crate::files::export_folder::ExportFolder;

/// Where the tables of a script are written, and how.
pub(crate) struct TableFiles<'f> {
    pub(crate) folder: &'f mut ExportFolder,
    /// The path of the folder of the script, with a slash.
    pub(crate) prefix: String,
    pub(crate) format: DataSetFormat,
    /// Whether there is a column for the ids of users.
    pub(crate) has_user: bool,
}

impl TableFiles<'_> {
    fn open(&self, name: &str, columns: &[TableColumn]) -> io::Result<Box<dyn TableWriter>> {
        let file = self.folder.file(&format!("{}{name}.{}", self.prefix, self.format.extension()))?;
        Ok(match self.format {
            DataSetFormat::Csv | DataSetFormat::Qdpx => Box::new(CsvTable::new(file, columns)?),
            DataSetFormat::JsonLines => Box::new(JsonLineTable::new(file, columns)),
            #[cfg(feature = "parquet")]
            DataSetFormat::Parquet => Box::new(ParquetTable::new(file, columns)?),
            #[cfg(not(feature = "parquet"))]
            DataSetFormat::Parquet => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Writes the interviews and the tables of their lists and repeated topics.
    pub(crate) fn interviews(&mut self, spool: &mut InterviewSpool, layout: &DataSetLayout) -> io::Result<()> {
        if self.format == DataSetFormat::JsonLines {
            return self.interview_objects(spool, layout);
        }
        let mut columns = self.interview_columns();
        columns.extend(layout.variables.iter().map(|variable| variable.column.clone()));
        let mut interviews = self.open("interviews", &columns)?;
        let mut lists = Vec::new();
        for list in &layout.lists {
            lists.push((self.open(&list.name, &list_columns(list))?, list));
        }
        let mut visits = Vec::new();
        for visit in &layout.visits {
            visits.push((self.open(&visit.name, &visit_columns(visit))?, visit));
        }
        let has_user = self.has_user;
        spool.each(|interview| {
            let mut cells = interview_cells(&interview, has_user);
            cells.extend(variable_cells(&layout.variables, &interview.values));
            interviews.row(cells)?;
            for (table, list) in &mut lists {
                let Some(value) = value_of(list.variable, &interview.values) else { continue };
                for (index, element) in value.items().enumerate() {
                    let mut cells = keys(&interview, index);
                    cells.extend(element_cells(list, &element));
                    table.row(cells)?;
                }
            }
            for (table, columns) in &mut visits {
                let of_topic = interview.visits.iter().filter(|visit| visit.topic == columns.topic);
                for (index, visit) in of_topic.enumerate() {
                    let mut cells = keys(&interview, index);
                    cells.push(TableCell::text(&visit.path));
                    cells.extend(variable_cells(&columns.columns, &visit.values));
                    table.row(cells)?;
                }
            }
            Ok(())
        })?;
        interviews.finish(self.folder)?;
        let others = lists.into_iter().map(|(table, _)| table).chain(visits.into_iter().map(|(table, _)| table));
        others.into_iter().try_for_each(|table| table.finish(self.folder))
    }

    /// One object for each interview, with its lists and visits in it.
    fn interview_objects(&mut self, spool: &mut InterviewSpool, layout: &DataSetLayout) -> io::Result<()> {
        let columns = self.interview_columns();
        let file = self.folder.file(&format!("{}interviews.jsonl", self.prefix))?;
        let mut objects = JsonLineTable::new(file, &columns);
        let has_user = self.has_user;
        spool.each(|interview| {
            let cells = interview_cells(&interview, has_user).into_iter().map(json_value);
            let names = columns.iter().map(|column| column.name.clone());
            let mut object: ExactValues = names.zip(cells).collect();
            let mut variables = ExactValues::new();
            for column in &layout.variables {
                let number = column.content.variable();
                variables.insert(column.name.clone(), value_of(number, &interview.values).unwrap_or_default());
            }
            object.insert("variables".to_owned(), variables.into_iter().collect());
            let mut visits = ExactValues::new();
            for table in &layout.visits {
                let of_topic = interview.visits.iter().filter(|visit| visit.topic == table.topic);
                let rows = of_topic.map(|visit| {
                    let path = ("path".to_owned(), Value::from(visit.path.as_str()).into());
                    let values = table.columns.iter().map(|column| {
                        let value = value_of(column.content.variable(), &visit.values).unwrap_or_default();
                        (column.column.name.clone(), value)
                    });
                    std::iter::once(path).chain(values).collect::<ExactValue>()
                });
                visits.insert(table.name.clone(), rows.collect());
            }
            object.insert("visits".to_owned(), visits.into_iter().collect());
            objects.object(&object)
        })?;
        objects.complete(self.folder)
    }

    /// Writes the actions and the follow-up questions of each interview; with tables, also its messages.
    pub(crate) fn conversations(&mut self, spool: &mut InterviewSpool) -> io::Result<()> {
        let mut actions = self.open("actions", &typed(&ACTION_COLUMNS))?;
        let mut follow_ups = self.open("follow_ups", &typed(&FOLLOW_UP_COLUMNS))?;
        let mut messages = match self.format {
            DataSetFormat::Qdpx => None,
            _ => Some(self.open("messages", &typed(&MESSAGE_COLUMNS))?),
        };
        spool.each(|interview| {
            for (index, action) in interview.actions.iter().enumerate() {
                let mut cells = keys(&interview, index);
                cells.extend([
                    TableCell::text(&action.phase_id),
                    TableCell::text(&action.topic_id),
                    TableCell::text(&action.action_id),
                    TableCell::text(&action.path),
                    TableCell::text(&action.action_type),
                    TableCell::time(&action.started_at),
                    TableCell::count(action.answers),
                    TableCell::count(action.follow_ups()),
                    TableCell::optional(action.exit_reason.clone()),
                    TableCell::optional(action.branch.clone()),
                    TableCell::optional(action.route.clone()),
                ]);
                actions.row(cells)?;
            }
            follow_up_rows(&interview).into_iter().try_for_each(|cells| follow_ups.row(cells))?;
            let Some(table) = &mut messages else { return Ok(()) };
            interview.messages.iter().try_for_each(|message| table.row(message_cells(&interview, message)))
        })?;
        actions.finish(self.folder)?;
        follow_ups.finish(self.folder)?;
        messages.map_or(Ok(()), |table| table.finish(self.folder))
    }

    fn interview_columns(&self) -> Vec<TableColumn> {
        let columns = typed(&INTERVIEW_COLUMNS).into_iter();
        columns.filter(|column| self.has_user || column.name != "user").collect()
    }
}

fn typed(columns: &[(&str, ColumnType)]) -> Vec<TableColumn> {
    columns.iter().map(|(name, column_type)| TableColumn::new(*name, *column_type)).collect()
}

fn list_columns(list: &ElementTable) -> Vec<TableColumn> {
    let mut columns = key_columns(&LIST_COLUMNS);
    columns.extend(list.plain.clone());
    columns.extend(list.fields.iter().map(|(_, column)| column.clone()));
    columns.extend(list.others.clone());
    columns
}

fn visit_columns(visit: &VisitTable) -> Vec<TableColumn> {
    let mut columns = key_columns(&VISIT_COLUMNS);
    columns.extend(visit.columns.iter().map(|variable| variable.column.clone()));
    columns
}

fn key_columns(names: &[&str]) -> Vec<TableColumn> {
    let of = |name: &str| if name == "index" { ColumnType::Integer } else { ColumnType::Text };
    names.iter().map(|name| TableColumn::new(*name, of(name))).collect()
}

/// The interview, its participant, and the number of the row in it, from 1.
fn keys(interview: &Interview, index: usize) -> Vec<TableCell> {
    let number = TableCell::count(index as u64 + 1);
    vec![TableCell::text(&interview.id), TableCell::text(&interview.participant), number]
}

/// The value of a variable that is not empty.
pub(crate) fn value_of(variable: usize, values: &[CollectedValue]) -> Option<ExactValue> {
    let found = values.iter().find(|value| value.variable == variable)?;
    ExactValue::parse(&found.json).ok()
}

fn variable_cells(columns: &[VariableColumn], values: &[CollectedValue]) -> Vec<TableCell> {
    let cell = |column: &VariableColumn| match value_of(column.content.variable(), values) {
        None => TableCell::Empty,
        Some(value) => match column.content {
            ColumnContent::Value(_) => TableCell::of(&value, column.column.column_type),
            ColumnContent::Count(_) => TableCell::count(value.as_array().map_or(0, Vec::len) as u64),
        },
    };
    columns.iter().map(cell).collect()
}

fn element_cells(list: &ElementTable, element: &ExactValue) -> Vec<TableCell> {
    let plain = list.plain.iter().map(|column| match element.is_object() {
        true => TableCell::Empty,
        false => TableCell::of(element, column.column_type),
    });
    let mut cells: Vec<TableCell> = plain.collect();
    cells.extend(list.fields.iter().map(|(name, column)| {
        element.field(name).map_or(TableCell::Empty, |value| TableCell::of(&value, column.column_type))
    }));
    if list.others.is_some() {
        let others = element.fields().filter(|(name, _)| !list.fields.iter().any(|(known, _)| known == name));
        let others: ExactValues = others.map(|(name, value)| (name.to_owned(), value)).collect();
        cells.push(match others.is_empty() {
            true => TableCell::Empty,
            false => TableCell::Json(others.into_iter().collect()),
        });
    }
    cells
}

fn interview_cells(interview: &Interview, has_user: bool) -> Vec<TableCell> {
    let mut cells = vec![TableCell::text(&interview.id), TableCell::text(&interview.participant)];
    if has_user {
        cells.push(TableCell::optional(interview.user.clone()));
    }
    cells.extend([
        TableCell::text(&interview.script),
        TableCell::text(&interview.script_sha256),
        TableCell::text(&interview.status),
        TableCell::time(&interview.started_at),
        interview.ended_at.as_deref().map_or(TableCell::Empty, TableCell::time),
        TableCell::time(&interview.updated_at),
        TableCell::count(interview.answers),
    ]);
    cells
}

fn message_cells(interview: &Interview, message: &InterviewMessage) -> Vec<TableCell> {
    vec![
        TableCell::text(&interview.id),
        TableCell::text(&interview.participant),
        TableCell::count(message.number),
        TableCell::time(&message.at),
        TableCell::text(message.role.name()),
        TableCell::text(&message.speaker),
        TableCell::text(&message.phase_id),
        TableCell::text(&message.topic_id),
        TableCell::text(&message.action_id),
        TableCell::text(&message.path),
        TableCell::count(message.round),
        TableCell::text(&message.text),
    ]
}

/// A row for each follow-up question, with the answer to it.
fn follow_up_rows(interview: &Interview) -> Vec<Vec<TableCell>> {
    let mut rows = Vec::new();
    for (index, message) in interview.messages.iter().enumerate() {
        if message.role != MessageRole::FollowUp {
            continue;
        }
        let earlier = interview.messages.iter().take(index + 1);
        let number = earlier.filter(|other| other.role == MessageRole::FollowUp && other.path == message.path).count();
        let answer = interview.messages.get(index + 1).filter(|next| next.role == MessageRole::Answer);
        rows.push(vec![
            TableCell::text(&interview.id),
            TableCell::text(&interview.participant),
            TableCell::count(message.number),
            TableCell::text(&message.phase_id),
            TableCell::text(&message.topic_id),
            TableCell::text(&message.action_id),
            TableCell::text(&message.path),
            TableCell::count(number as u64),
            TableCell::text(&message.text),
            TableCell::optional(answer.map(|answer| answer.text.clone())),
        ]);
    }
    rows
}
