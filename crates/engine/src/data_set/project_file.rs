//! Projects for tools of qualitative analysis, in the exchange format REFI-QDA (.qdpx): an archive with one XML document, and the
//! transcript of each interview as a text.

use std::io::{self, BufWriter, Seek, Write};

use jiff::Timestamp;
use serde_json::Value;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::data_set::catalog::VariableCatalog;
use crate::data_set::columns::{ColumnContent, DataSetLayout};
use crate::data_set::file_names::DistinctNames;
use crate::data_set::interview::Interview;
use crate::data_set::project_codes::{ProjectIds, write_codes};
use crate::data_set::spool::InterviewSpool;
use crate::data_set::table::{ColumnType, TableCell, TableColumn, plain};
use crate::data_set::tables::value_of;
use crate::data_set::transcript::TranscriptText;
use crate::data_set::xml::XmlWriter;
use crate::files::export_folder::SeekableFile;

const NAMESPACE: &str = "urn:QDA-XML:project:1.0";

/// From this size of the interviews on, in bytes, the document may need the large form of archives.
const LARGE: u64 = 1024 * 1024 * 1024;

/// Where a value of a case comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseValue {
    Participant,
    User,
    Version,
    Status,
    Started,
    Ended,
    Answers,
    Variable(ColumnContent),
    /// A list as one text.
    List(usize),
}

struct ProjectVariable {
    column: TableColumn,
    value: CaseValue,
    description: Option<String>,
}

/// Writes a project.
pub(crate) struct ProjectWriter<'p> {
    ids: ProjectIds,
    name: &'p str,
    created: String,
    catalog: &'p VariableCatalog,
    variables: Vec<ProjectVariable>,
}

impl<'p> ProjectWriter<'p> {
    pub(crate) fn new(
        script: &'p str,
        created: Timestamp,
        catalog: &'p VariableCatalog,
        layout: &DataSetLayout,
        has_user: bool,
    ) -> Self {
        let created = created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let variables = variables(catalog, layout, has_user);
        Self { ids: ProjectIds::new(script), name: script, created, catalog, variables }
    }

    pub(crate) fn write(&self, file: SeekableFile, spool: &mut InterviewSpool) -> io::Result<()> {
        let mut archive = ZipWriter::new(BufWriter::new(file));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(0o600);
        archive.start_file("project.qde", options.large_file(spool.bytes > LARGE)).map_err(written)?;
        self.document(&mut archive, spool)?;
        spool.each(|interview| {
            let name = format!("sources/{}.txt", self.source(&interview));
            archive.start_file(name, options).map_err(written)?;
            archive.write_all(TranscriptText::of(&interview).text.as_bytes())
        })?;
        finish(archive)
    }

    fn source(&self, interview: &Interview) -> String {
        self.ids.id("source", &[&interview.id])
    }

    fn document<W: Write>(&self, writer: W, spool: &mut InterviewSpool) -> io::Result<()> {
        let mut xml = XmlWriter::new(writer)?;
        let user = self.ids.user();
        xml.open(
            "Project",
            &[
                ("xmlns", NAMESPACE),
                ("name", self.catalog.name.as_deref().unwrap_or(self.name)),
                ("origin", concat!("bcc-script ", env!("CARGO_PKG_VERSION"))),
                ("creatingUserGUID", &user),
                ("creationDateTime", &self.created),
            ],
        )?;
        xml.open("Users", &[])?;
        xml.empty("User", &[("guid", &user), ("name", "bcc-script")])?;
        xml.close("Users")?;
        write_codes(&mut xml, &self.ids, self.catalog)?;
        xml.open("Variables", &[])?;
        for variable in &self.variables {
            let id = self.ids.id("variable", &[&variable.column.name]);
            let attributes = [
                ("guid", &*id),
                ("name", &*variable.column.name),
                ("typeOfVariable", type_name(variable.column.column_type)),
            ];
            xml.open("Variable", &attributes)?;
            variable.description.iter().try_for_each(|text| xml.text("Description", text))?;
            xml.close("Variable")?;
        }
        xml.close("Variables")?;
        xml.open("Cases", &[])?;
        spool.each(|interview| self.case(&mut xml, &interview))?;
        xml.close("Cases")?;
        xml.open("Sources", &[])?;
        spool.each(|interview| self.text_source(&mut xml, &interview))?;
        xml.close("Sources")?;
        xml.close("Project")?;
        xml.finish().flush()
    }

    fn case<W: Write>(&self, xml: &mut XmlWriter<W>, interview: &Interview) -> io::Result<()> {
        xml.open("Case", &[("guid", &self.ids.id("case", &[&interview.id])), ("name", &interview.id)])?;
        for variable in &self.variables {
            let Some((element, text)) = value_element(&case_cell(variable, interview)) else { continue };
            xml.open("VariableValue", &[])?;
            xml.empty("VariableRef", &[("targetGUID", &self.ids.id("variable", &[&variable.column.name]))])?;
            xml.text(element, &text)?;
            xml.close("VariableValue")?;
        }
        xml.empty("SourceRef", &[("targetGUID", &self.source(interview))])?;
        xml.close("Case")
    }

    /// The transcript, in which each message has the code of its action and that of its role.
    fn text_source<W: Write>(&self, xml: &mut XmlWriter<W>, interview: &Interview) -> io::Result<()> {
        let (user, source) = (self.ids.user(), self.source(interview));
        xml.open(
            "TextSource",
            &[
                ("guid", &source),
                ("name", &interview.id),
                ("plainTextPath", &format!("internal://{source}.txt")),
                ("creatingUser", &user),
                ("creationDateTime", &self.created),
            ],
        )?;
        let transcript = TranscriptText::of(interview);
        for (message, range) in interview.messages.iter().zip(&transcript.ranges) {
            let number = message.number.to_string();
            let part = |kind: &str| self.ids.id(kind, &[&interview.id, &number]);
            let name = format!("{} {number}", message.action_id);
            xml.open(
                "PlainTextSelection",
                &[
                    ("guid", &part("selection")),
                    ("name", &name),
                    ("startPosition", &range.start.to_string()),
                    ("endPosition", &range.end.to_string()),
                    ("creatingUser", &user),
                    ("creationDateTime", &self.created),
                ],
            )?;
            let action = self.ids.action(&message.phase_id, &message.topic_id, &message.action_id);
            for (coding, code) in [("coding", action), ("role_coding", self.ids.role(message.role))] {
                let attributes =
                    [("guid", &*part(coding)), ("creatingUser", &user), ("creationDateTime", &self.created)];
                xml.open("Coding", &attributes)?;
                xml.empty("CodeRef", &[("targetGUID", &code)])?;
                xml.close("Coding")?;
            }
            xml.close("PlainTextSelection")?;
        }
        xml.close("TextSource")
    }
}

fn finish<W: Write + Seek>(archive: ZipWriter<BufWriter<W>>) -> io::Result<()> {
    archive.finish().map_err(written)?.flush()
}

pub(crate) fn written(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => io::Error::other(other),
    }
}

fn variables(catalog: &VariableCatalog, layout: &DataSetLayout, has_user: bool) -> Vec<ProjectVariable> {
    let own = [
        ("participant", ColumnType::Text, CaseValue::Participant),
        ("user", ColumnType::Text, CaseValue::User),
        ("script_version", ColumnType::Text, CaseValue::Version),
        ("status", ColumnType::Text, CaseValue::Status),
        ("started_at", ColumnType::Time, CaseValue::Started),
        ("ended_at", ColumnType::Time, CaseValue::Ended),
        ("answers", ColumnType::Integer, CaseValue::Answers),
    ];
    let own = own.into_iter().filter(|(_, _, value)| has_user || *value != CaseValue::User);
    let mut variables: Vec<ProjectVariable> = own
        .map(|(name, column_type, value)| ProjectVariable {
            column: TableColumn::new(name, column_type),
            value,
            description: None,
        })
        .collect();
    let taken = variables.iter().map(|variable| variable.column.name.as_str());
    let taken = taken.chain(layout.variables.iter().map(|variable| variable.column.name.as_str()));
    let mut names = DistinctNames::with(&taken.collect::<Vec<_>>());
    for variable in &layout.variables {
        let number = variable.content.variable();
        let description = catalog.variable(number).and_then(|variable| variable.define.clone());
        if matches!(variable.content, ColumnContent::Count(_)) {
            let column = TableColumn::new(names.take(&format!("{}_list", variable.name)), ColumnType::Text);
            variables.push(ProjectVariable {
                column,
                value: CaseValue::List(number),
                description: description.clone(),
            });
        }
        let value = CaseValue::Variable(variable.content);
        variables.push(ProjectVariable { column: variable.column.clone(), value, description });
    }
    variables
}

fn case_cell(variable: &ProjectVariable, interview: &Interview) -> TableCell {
    match variable.value {
        CaseValue::Participant => TableCell::text(&interview.participant),
        CaseValue::User => TableCell::optional(interview.user.clone()),
        CaseValue::Version => TableCell::text(&interview.script_sha256),
        CaseValue::Status => TableCell::text(&interview.status),
        CaseValue::Started => TableCell::time(&interview.started_at),
        CaseValue::Ended => interview.ended_at.as_deref().map_or(TableCell::Empty, TableCell::time),
        CaseValue::Answers => TableCell::count(interview.answers),
        CaseValue::Variable(ColumnContent::Value(number)) => value_of(number, &interview.values)
            .map_or(TableCell::Empty, |value| TableCell::of(&value, variable.column.column_type)),
        CaseValue::Variable(ColumnContent::Count(number)) => value_of(number, &interview.values)
            .map_or(TableCell::Empty, |value| TableCell::count(value.as_array().map_or(0, Vec::len) as u64)),
        CaseValue::List(number) => value_of(number, &interview.values).map_or(TableCell::Empty, |value| {
            let is_nested = |element: &Value| element.is_object() || element.is_array();
            match value.as_array().is_some_and(|items| items.iter().any(is_nested)) {
                true => TableCell::Text(value.to_string()),
                false => TableCell::Text(value.items().map(|item| plain(&item)).collect::<Vec<_>>().join("; ")),
            }
        }),
    }
}

const fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Text | ColumnType::Json => "Text",
        ColumnType::Boolean => "Boolean",
        ColumnType::Integer => "Integer",
        ColumnType::Number => "Float",
        ColumnType::Date => "Date",
        ColumnType::Time => "DateTime",
    }
}

/// The element with a value, and its text; none for an empty one.
fn value_element(cell: &TableCell) -> Option<(&'static str, String)> {
    Some(match cell {
        TableCell::Empty => return None,
        TableCell::Text(text) => ("TextValue", text.clone()),
        TableCell::Json(value) => ("TextValue", value.to_string()),
        TableCell::Boolean(truth) => ("BooleanValue", truth.to_string()),
        TableCell::Integer(number) => ("IntegerValue", number.to_string()),
        // A decimal number has no exponent.
        TableCell::Number(number, digits) if digits.contains(['e', 'E']) => ("FloatValue", number.to_string()),
        TableCell::Number(_, digits) => ("FloatValue", digits.clone()),
        TableCell::Date(date) => ("DateValue", date.to_string()),
        TableCell::Time(time) => ("DateTimeValue", time.to_string()),
    })
}
