//! The codebook of a script: what each column means, and how often it is empty. As CSV for programs, and as Markdown for people.

use std::fmt::Write;
use std::io;

use bcc_lang::message::language::Language;
use bcc_lang::source::render::markdown::{code_span, escape_line};

use crate::data_set::catalog::{CatalogVariable, VariableCatalog, VariablePlace};
use crate::data_set::columns::{ColumnContent, DataSetLayout, VariableColumn};
use crate::data_set::csv_table::CsvTable;
use crate::data_set::request::DataSetFormat;
use crate::data_set::table::{ColumnType, TableCell, TableColumn, TableWriter};
use crate::files::export_folder::ExportFolder;

const COLUMNS: [(&str, ColumnType); 17] = [
    ("table", ColumnType::Text),
    ("column", ColumnType::Text),
    ("type", ColumnType::Text),
    ("variable", ColumnType::Text),
    ("scope", ColumnType::Text),
    ("place", ColumnType::Text),
    ("declared_type", ColumnType::Text),
    ("enum", ColumnType::Json),
    ("definition", ColumnType::Text),
    ("asked_in", ColumnType::Text),
    ("set_by", ColumnType::Text),
    ("versions", ColumnType::Text),
    ("sensitive", ColumnType::Boolean),
    ("included", ColumnType::Boolean),
    ("cases", ColumnType::Integer),
    ("filled", ColumnType::Integer),
    ("empty", ColumnType::Integer),
];

/// A column of a table, or a variable that has none because it was left out.
struct CodebookEntry<'c> {
    table: String,
    column: String,
    column_type: Option<ColumnType>,
    variable: &'c CatalogVariable,
    /// Whether it is a part of another column: a field of the elements of a list.
    is_field: bool,
}

pub(crate) struct Codebook<'c> {
    catalog: &'c VariableCatalog,
    entries: Vec<CodebookEntry<'c>>,
    include_sensitive: bool,
}

impl<'c> Codebook<'c> {
    pub(crate) fn new(
        catalog: &'c VariableCatalog,
        layout: &DataSetLayout,
        format: DataSetFormat,
        include_sensitive: bool,
    ) -> Self {
        // In JSON Lines, lists and visits are in the objects of the interviews.
        let has_tables = !matches!(format, DataSetFormat::JsonLines | DataSetFormat::Qdpx);
        let mut entries = Vec::new();
        let mut add = |table: &str, column: &TableColumn, number: usize, is_field: bool| {
            if let Some(variable) = catalog.variable(number) {
                entries.push(CodebookEntry {
                    table: table.to_owned(),
                    column: column.name.clone(),
                    column_type: Some(column.column_type),
                    variable,
                    is_field,
                });
            }
        };
        let name_in = |variable: &VariableColumn| match (has_tables, variable.content) {
            (false, ColumnContent::Count(_)) if format == DataSetFormat::JsonLines => {
                TableColumn::new(variable.name.as_str(), ColumnType::Json)
            }
            _ => variable.column.clone(),
        };
        for variable in &layout.variables {
            add("interviews", &name_in(variable), variable.content.variable(), false);
        }
        for list in layout.lists.iter().filter(|_| has_tables) {
            let fields = list.fields.iter().map(|(_, column)| column);
            for column in list.plain.iter().chain(fields).chain(&list.others) {
                add(&list.name, column, list.variable, true);
            }
        }
        for visit in layout.visits.iter().filter(|_| format != DataSetFormat::Qdpx) {
            for variable in &visit.columns {
                add(&visit.name, &variable.column, variable.content.variable(), false);
            }
        }
        for variable in catalog.variables().filter(|variable| variable.sensitive && !include_sensitive) {
            let (table, column) = (String::new(), String::new());
            entries.push(CodebookEntry { table, column, column_type: None, variable, is_field: false });
        }
        Self { catalog, entries, include_sensitive }
    }

    /// How many variables were left out because they are sensitive.
    pub(crate) fn left_out(&self) -> usize {
        self.entries.iter().filter(|entry| entry.column_type.is_none()).count()
    }

    pub(crate) fn write(&self, folder: &mut ExportFolder, prefix: &str, language: Language) -> io::Result<()> {
        let columns: Vec<TableColumn> =
            COLUMNS.iter().map(|(name, column_type)| TableColumn::new(*name, *column_type)).collect();
        let mut table = Box::new(CsvTable::new(folder.file(&format!("{prefix}codebook.csv"))?, &columns)?);
        for entry in &self.entries {
            table.row(self.cells(entry))?;
        }
        table.finish(folder)?;
        folder.whole_file(&format!("{prefix}codebook.md"), self.markdown(language).as_bytes())
    }

    fn cells(&self, entry: &CodebookEntry<'_>) -> Vec<TableCell> {
        let variable = entry.variable;
        let (cases, filled) = (variable.cases, variable.filled);
        let counted = |count: u64| if entry.is_field { TableCell::Empty } else { TableCell::count(count) };
        let choices = serde_json::Value::from(variable.choices.clone());
        vec![
            TableCell::text(&entry.table),
            TableCell::text(&entry.column),
            TableCell::text(entry.column_type.map(ColumnType::name).unwrap_or_default()),
            TableCell::text(&variable.name),
            TableCell::text(variable.scope.name()),
            TableCell::text(place(variable)),
            TableCell::text(declared(variable)),
            if variable.choices.is_empty() { TableCell::Empty } else { TableCell::Json(choices.into()) },
            TableCell::optional(variable.define.clone()),
            TableCell::text(joined(variable.asked_in.iter())),
            TableCell::text(joined(variable.set_by.iter())),
            TableCell::text(joined(self.versions(variable))),
            TableCell::Boolean(variable.sensitive),
            TableCell::Boolean(entry.column_type.is_some()),
            counted(cases),
            counted(filled),
            counted(cases.saturating_sub(filled)),
        ]
    }

    /// The beginnings of the hashes of the versions that have it.
    fn versions<'v>(&'v self, variable: &'v CatalogVariable) -> impl Iterator<Item = &'v str> {
        let versions = variable.versions.iter().filter_map(|version| self.catalog.versions.get_index(*version));
        versions.map(|(sha256, _)| sha256.get(..12).unwrap_or(sha256))
    }

    fn markdown(&self, language: Language) -> String {
        let word = |literal: &'static str| language.translate(literal);
        let mut page = format!("# {}\n\n", word("Codebook"));
        let heads = [
            word("table"),
            word("column"),
            word("type"),
            word("permitted values"),
            word("meaning"),
            word("asked in"),
            word("empty"),
        ];
        let _ = writeln!(page, "| {} |\n|{}", heads.join(" | "), " --- |".repeat(heads.len()));
        for entry in self.entries.iter().filter(|entry| entry.column_type.is_some()) {
            let variable = entry.variable;
            let choices =
                variable.choices.iter().map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned));
            let empty = match entry.is_field {
                true => String::new(),
                false => format!("{} / {}", variable.cases.saturating_sub(variable.filled), variable.cases),
            };
            let cells = [
                code_span(&entry.table),
                escape_line(&entry.column),
                entry.column_type.map(ColumnType::name).unwrap_or_default().to_owned(),
                choices.map(|choice| escape_line(&choice)).collect::<Vec<_>>().join(", "),
                escape_line(variable.define.as_deref().unwrap_or_default()),
                variable.asked_in.iter().map(|place| code_span(place)).collect::<Vec<_>>().join(", "),
                empty,
            ];
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
        if self.left_out() > 0 {
            let _ = writeln!(page, "\n## {}\n", word("Left out because they are sensitive"));
            for entry in self.entries.iter().filter(|entry| entry.column_type.is_none()) {
                let variable = entry.variable;
                let counts = [
                    ("empty", variable.cases.saturating_sub(variable.filled).to_string()),
                    ("all", variable.cases.to_string()),
                ];
                let counts: Vec<(&str, &str)> = counts.iter().map(|(name, count)| (*name, count.as_str())).collect();
                let empty = language.format("empty in {empty} of {all}", &counts);
                let meaning = escape_line(variable.define.as_deref().unwrap_or_default());
                let _ = writeln!(page, "- {} ({}) {meaning} – {empty}", code_span(&variable.name), declared(variable));
            }
        }
        if self.include_sensitive && self.entries.iter().any(|entry| entry.variable.sensitive) {
            let _ = writeln!(page, "\n{}", word("Sensitive variables are included."));
        }
        page
    }
}

fn place(variable: &CatalogVariable) -> String {
    match &variable.place {
        VariablePlace::Session => String::new(),
        VariablePlace::Phase(phase) => phase.clone(),
        VariablePlace::Topic(phase, topic) => format!("{phase}/{topic}"),
    }
}

fn declared(variable: &CatalogVariable) -> String {
    joined(variable.declared.iter().map(|declared| declared.name()))
}

fn joined(parts: impl Iterator<Item = impl AsRef<str>>) -> String {
    parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("; ")
}
