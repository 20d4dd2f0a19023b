//! The tables of a script and their columns, after all interviews were read.

use std::collections::BTreeMap;

use crate::data_set::catalog::{CatalogVariable, ObservedElements, VariableCatalog, VariablePlace};
use crate::data_set::file_names::{DistinctNames, file_name};
use crate::data_set::observed::ObservedTypes;
use crate::data_set::table::{ColumnType, TableColumn};

/// The columns of the interviews that do not come from the script.
pub(crate) const INTERVIEW_COLUMNS: [(&str, ColumnType); 10] = [
    ("session_id", ColumnType::Text),
    ("participant", ColumnType::Text),
    ("user", ColumnType::Text),
    ("script", ColumnType::Text),
    ("script_version", ColumnType::Text),
    ("status", ColumnType::Text),
    ("started_at", ColumnType::Time),
    ("ended_at", ColumnType::Time),
    ("updated_at", ColumnType::Time),
    ("answers", ColumnType::Integer),
];

pub(crate) const MESSAGE_COLUMNS: [(&str, ColumnType); 12] = [
    ("session_id", ColumnType::Text),
    ("participant", ColumnType::Text),
    ("number", ColumnType::Integer),
    ("at", ColumnType::Time),
    ("role", ColumnType::Text),
    ("speaker", ColumnType::Text),
    ("phase_id", ColumnType::Text),
    ("topic_id", ColumnType::Text),
    ("action_id", ColumnType::Text),
    ("path", ColumnType::Text),
    ("round", ColumnType::Integer),
    ("text", ColumnType::Text),
];

pub(crate) const ACTION_COLUMNS: [(&str, ColumnType); 14] = [
    ("session_id", ColumnType::Text),
    ("participant", ColumnType::Text),
    ("number", ColumnType::Integer),
    ("phase_id", ColumnType::Text),
    ("topic_id", ColumnType::Text),
    ("action_id", ColumnType::Text),
    ("path", ColumnType::Text),
    ("action_type", ColumnType::Text),
    ("started_at", ColumnType::Time),
    ("answers", ColumnType::Integer),
    ("follow_ups", ColumnType::Integer),
    ("exit_reason", ColumnType::Text),
    ("branch", ColumnType::Text),
    ("route", ColumnType::Text),
];

pub(crate) const FOLLOW_UP_COLUMNS: [(&str, ColumnType); 10] = [
    ("session_id", ColumnType::Text),
    ("participant", ColumnType::Text),
    ("message", ColumnType::Integer),
    ("phase_id", ColumnType::Text),
    ("topic_id", ColumnType::Text),
    ("action_id", ColumnType::Text),
    ("path", ColumnType::Text),
    ("follow_up", ColumnType::Integer),
    ("question", ColumnType::Text),
    ("answer", ColumnType::Text),
];

/// The names of the files of a script that are no tables of variables.
const OWN_FILES: [&str; 6] = ["interviews", "messages", "actions", "follow_ups", "codebook", "transcripts"];

/// What stands in a column of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnContent {
    Value(usize),
    /// The number of elements of a list, which has a table of its own.
    Count(usize),
}

impl ColumnContent {
    pub(crate) const fn variable(self) -> usize {
        match self {
            Self::Value(number) | Self::Count(number) => number,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct VariableColumn {
    pub(crate) column: TableColumn,
    pub(crate) content: ColumnContent,
    /// The name of the variable where lists have no table of their own. That of another one is different.
    pub(crate) name: String,
}

/// The table of a list: one row for each element.
#[derive(Clone, Debug)]
pub(crate) struct ElementTable {
    /// The name of its file, without an extension.
    pub(crate) name: String,
    pub(crate) variable: usize,
    /// The column of the elements that are no objects.
    pub(crate) plain: Option<TableColumn>,
    /// The fields of objects, by name.
    pub(crate) fields: Vec<(String, TableColumn)>,
    /// The column of the fields that have none of their own.
    pub(crate) others: Option<TableColumn>,
}

/// The table of a topic that runs for each element of a list: one row for each visit.
#[derive(Clone, Debug)]
pub(crate) struct VisitTable {
    pub(crate) name: String,
    pub(crate) topic: usize,
    pub(crate) columns: Vec<VariableColumn>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DataSetLayout {
    /// The columns of variables in the table of interviews.
    pub(crate) variables: Vec<VariableColumn>,
    pub(crate) lists: Vec<ElementTable>,
    pub(crate) visits: Vec<VisitTable>,
}

impl DataSetLayout {
    pub(crate) fn new(catalog: &VariableCatalog, include_sensitive: bool) -> Self {
        let mut files = DistinctNames::with(&OWN_FILES);
        let mut names = DistinctNames::with(&INTERVIEW_COLUMNS.map(|(name, _)| name));
        let mut layout = Self::default();
        let mut visits: BTreeMap<usize, (DistinctNames, Vec<VariableColumn>)> = BTreeMap::new();
        for (number, variable) in catalog.variables().enumerate() {
            if variable.sensitive && !include_sensitive {
                continue;
            }
            if let Some(topic) = catalog.repeated_topic(variable) {
                let (names, columns) =
                    visits.entry(topic).or_insert_with(|| (DistinctNames::with(&VISIT_COLUMNS), vec![]));
                columns.push(value_column(names.take(&variable.name), number, variable));
            } else if variable.observed.is_list() {
                let name = name_of(variable, &names);
                let column = TableColumn::new(names.take(&format!("{name}_count")), ColumnType::Integer);
                layout.variables.push(VariableColumn { column, content: ColumnContent::Count(number), name });
                layout.lists.push(list_table(files.take(&file_name(&variable.name)), number, &variable.elements));
            } else {
                let name = names.take(&name_of(variable, &names));
                layout.variables.push(value_column(name, number, variable));
            }
        }
        layout.name_lists(catalog);
        for (topic, (_, columns)) in visits {
            let id = catalog.repeated.get_index(topic).map(|(_, id)| id.as_str()).unwrap_or_default();
            let name = files.take(&file_name(id));
            layout.visits.push(VisitTable { name, topic, columns });
        }
        layout
    }

    /// Gives lists names that no other variable has.
    fn name_lists(&mut self, catalog: &VariableCatalog) {
        let is_list = |column: &VariableColumn| matches!(column.content, ColumnContent::Count(_));
        let values = self.variables.iter().filter(|column| !is_list(column)).map(|column| column.name.as_str());
        let mut names = DistinctNames::with(&values.collect::<Vec<_>>());
        for column in self.variables.iter_mut().filter(|column| is_list(column)) {
            let variable = catalog.variable(column.content.variable());
            let wanted = variable.map_or_else(|| column.name.clone(), |variable| name_of(variable, &names));
            column.name = names.take(&wanted);
        }
    }
}

/// The first columns of the table of a topic.
pub(crate) const VISIT_COLUMNS: [&str; 4] = ["session_id", "participant", "index", "path"];

/// The first columns of the table of a list.
pub(crate) const LIST_COLUMNS: [&str; 3] = ["session_id", "participant", "index"];

fn value_column(name: String, number: usize, variable: &CatalogVariable) -> VariableColumn {
    let column_type = variable.observed.column(variable.is_date());
    let column = TableColumn::new(name.as_str(), column_type);
    VariableColumn { column, content: ColumnContent::Value(number), name }
}

/// The name of a variable, or if another column has it, with its phase or topic.
fn name_of(variable: &CatalogVariable, names: &DistinctNames) -> String {
    match &variable.place {
        VariablePlace::Phase(id) | VariablePlace::Topic(_, id) if names.has(&variable.name) => {
            format!("{}_{id}", variable.name)
        }
        _ => variable.name.clone(),
    }
}

fn list_table(name: String, variable: usize, elements: &ObservedElements) -> ElementTable {
    let mut names = DistinctNames::with(&LIST_COLUMNS);
    // A list that is always empty has the column too, so that the table is the same when it is filled later.
    let plain = elements.plain.or(elements.fields.is_empty().then(ObservedTypes::default));
    let plain = plain.map(|observed| TableColumn::new(names.take("value"), observed.column(false)));
    let fields = elements.fields.iter();
    let fields = fields.map(|(name, observed)| {
        let column = TableColumn::new(names.take(name), observed.column(false));
        (name.clone(), column)
    });
    let fields: Vec<(String, TableColumn)> = fields.collect();
    let others = elements.has_more.then(|| TableColumn::new(names.take("other_fields"), ColumnType::Json));
    ElementTable { name, variable, plain, fields, others }
}
