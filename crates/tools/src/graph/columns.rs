//! The form of a source, its columns, and the triple in a record.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::graph::problem::LineProblem;

/// The maximum length of a subject, a predicate or an object, in bytes.
const MAX_NAME_BYTES: usize = 2_000;

/// The maximum size of all other columns of a triple as JSON, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 8_000;

/// The maximum number of other columns.
const MAX_ATTRIBUTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceForm {
    Csv,
    Tsv,
    Jsonl,
}

impl SourceForm {
    /// The form that the extension of a file says.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

const SUBJECT: &[&str] = &["subject", "subj", "head", "s", "h", "主体", "主语", "头实体"];
const PREDICATE: &[&str] = &["predicate", "pred", "relation", "rel", "relationship", "p", "r", "谓词", "谓语", "关系"];
const OBJECT: &[&str] = &["object", "obj", "tail", "o", "t", "客体", "宾语", "尾实体"];

/// Which column is which part of a triple. `names` are those of all columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceColumns {
    subject: usize,
    predicate: usize,
    object: usize,
    names: Vec<String>,
}

impl Default for SourceColumns {
    fn default() -> Self {
        Self { subject: 0, predicate: 1, object: 2, names: vec![] }
    }
}

impl SourceColumns {
    /// The columns that a header names; none if the record is no header.
    pub(crate) fn of_header(form: SourceForm, record: &[u8]) -> Option<Self> {
        if form == SourceForm::Jsonl {
            return None;
        }
        let fields = fields(form, std::str::from_utf8(record).ok()?);
        let names: Vec<String> = fields.into_iter().map(|name| name.trim().to_owned()).collect();
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.to_lowercase().as_str()));
        let (subject, predicate, object) = (find(SUBJECT)?, find(PREDICATE)?, find(OBJECT)?);
        Some(Self { subject, predicate, object, names })
    }

    /// What makes two sets of columns different.
    pub(crate) fn key(&self) -> String {
        format!("{} {} {} {}", self.subject, self.predicate, self.object, self.names.join("\u{1f}"))
    }

    /// The name of another column: without a header, the fourth is the source.
    fn name(&self, number: usize) -> String {
        match self.names.get(number) {
            Some(name) if !name.is_empty() => name.clone(),
            None if number == 3 => "source".to_owned(),
            _ => format!("column_{}", number + 1),
        }
    }

    /// The triple in a record.
    pub(crate) fn triple(&self, form: SourceForm, record: &[u8]) -> Result<SourceTriple, LineProblem> {
        let text = std::str::from_utf8(record).map_err(|_| LineProblem::NotText)?;
        match form {
            SourceForm::Jsonl => of_json(text),
            form => self.of_fields(fields(form, text)),
        }
    }

    fn of_fields(&self, fields: Vec<String>) -> Result<SourceTriple, LineProblem> {
        let mut parts: [Option<String>; 3] = [None, None, None];
        let mut attributes = Map::new();
        for (number, field) in fields.into_iter().enumerate() {
            let at = [self.subject, self.predicate, self.object].iter().position(|column| *column == number);
            match at.and_then(|at| parts.get_mut(at)) {
                Some(part) => *part = Some(field),
                None if !field.trim().is_empty() => {
                    attributes.insert(self.name(number), field.trim().into());
                }
                None => {}
            }
        }
        let [Some(subject), Some(predicate), Some(object)] = parts else { return Err(LineProblem::MissingPart) };
        SourceTriple::new(&subject, &predicate, &object, &attributes)
    }
}

/// A triple, with the other columns as JSON if there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceTriple {
    pub subject: String,
    pub predicate: String,
    pub object: String,
    pub attributes: Option<String>,
}

impl SourceTriple {
    fn new(subject: &str, predicate: &str, object: &str, attributes: &Map<String, Value>) -> Result<Self, LineProblem> {
        let part = |text: &str| match text.trim() {
            "" => Err(LineProblem::MissingPart),
            text if text.len() > MAX_NAME_BYTES => Err(LineProblem::TooLong),
            text => Ok(text.to_owned()),
        };
        let json = (!attributes.is_empty()).then(|| Value::Object(attributes.clone()).to_string());
        if json.as_ref().is_some_and(|json| json.len() > MAX_ATTRIBUTE_BYTES) || attributes.len() > MAX_ATTRIBUTES {
            return Err(LineProblem::TooLong);
        }
        Ok(Self { subject: part(subject)?, predicate: part(predicate)?, object: part(object)?, attributes: json })
    }
}

fn of_json(text: &str) -> Result<SourceTriple, LineProblem> {
    let text_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    match serde_json::from_str(text).map_err(|_| LineProblem::NotJson)? {
        Value::Array(list) => {
            let part = |at: usize| list.get(at).and_then(text_of).ok_or(LineProblem::MissingPart);
            let mut attributes = Map::new();
            for (number, value) in list.iter().enumerate().skip(3) {
                attributes.insert(SourceColumns::default().name(number), value.clone());
            }
            SourceTriple::new(&part(0)?, &part(1)?, &part(2)?, &attributes)
        }
        Value::Object(mut fields) => {
            let mut part = |known: &[&str]| {
                let name = fields.keys().find(|name| known.contains(&name.to_lowercase().as_str())).cloned();
                let value = name.and_then(|name| fields.remove(&name)).ok_or(LineProblem::MissingPart)?;
                text_of(&value).ok_or(LineProblem::MissingPart)
            };
            let (subject, predicate, object) = (part(SUBJECT)?, part(PREDICATE)?, part(OBJECT)?);
            fields.retain(|_, value| !value.is_null());
            SourceTriple::new(&subject, &predicate, &object, &fields)
        }
        _ => Err(LineProblem::NotJson),
    }
}

/// The fields of a record; in CSV, quoted ones without their quotes.
fn fields(form: SourceForm, record: &str) -> Vec<String> {
    if form == SourceForm::Tsv {
        return record.split('\t').map(str::to_owned).collect();
    }
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let start = rest.trim_start_matches(' ');
        let (field, after) = match start.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted),
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest.get(..end).unwrap_or_default().to_owned(), rest.get(end..).unwrap_or_default())
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return fields,
        }
    }
}

/// The field after an opening quote, and the rest from the next comma on. Text after the closing quote belongs to the field.
fn quoted_field(text: &str) -> (String, &str) {
    let mut field = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        field.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        match rest.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                field.push_str(rest.get(..end).unwrap_or_default());
                return (field, rest.get(end..).unwrap_or_default());
            }
        }
    }
    field.push_str(rest);
    (field, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(columns: &SourceColumns, form: SourceForm, record: &str) -> Result<[String; 4], LineProblem> {
        let triple = columns.triple(form, record.as_bytes())?;
        Ok([triple.subject, triple.predicate, triple.object, triple.attributes.unwrap_or_default()])
    }

    fn ok(parts: [&str; 4]) -> Result<[String; 4], LineProblem> {
        Ok(parts.map(str::to_owned))
    }

    #[test]
    fn a_header_says_which_column_is_which() {
        for header in ["source,Object,subject,relation", "备注,尾实体,头实体,关系", " \"note\" , tail,head,rel"]
        {
            let columns = SourceColumns::of_header(SourceForm::Csv, header.as_bytes()).expect(header);
            let found = triple(&columns, SourceForm::Csv, "doi,LPS,T4,binds").unwrap();
            assert_eq!(found[..3], ["T4", "binds", "LPS"], "{header}");
        }
        for header in ["T4,binds,LPS", "subject,object", "subject,subject,object"] {
            assert_eq!(SourceColumns::of_header(SourceForm::Csv, header.as_bytes()), None, "{header}");
        }
    }

    #[test]
    fn records_of_all_forms_are_read() {
        let columns = SourceColumns::default();
        for (form, record, expected) in [
            (SourceForm::Csv, "T4,binds,LPS", ok(["T4", "binds", "LPS", ""])),
            (
                SourceForm::Csv,
                "\"T4, \"\"x\"\"\", binds ,LPS,doi:1,,0.9",
                ok(["T4, \"x\"", "binds", "LPS", "{\"source\":\"doi:1\",\"column_6\":\"0.9\"}"]),
            ),
            (SourceForm::Csv, "T4,,LPS", Err(LineProblem::MissingPart)),
            (SourceForm::Csv, "T4,binds", Err(LineProblem::MissingPart)),
            (SourceForm::Tsv, "T4, x\t\"binds\t噬菌体\t", ok(["T4, x", "\"binds", "噬菌体", ""])),
            (
                SourceForm::Jsonl,
                "{\"head\":\"T4\",\"relation\":\"has\",\"tail\":42,\"n\":null,\"p2\":[1]}",
                ok(["T4", "has", "42", "{\"p2\":[1]}"]),
            ),
            (SourceForm::Jsonl, "[\"T4\",\"has\",true,\"doi\"]", ok(["T4", "has", "true", "{\"source\":\"doi\"}"])),
            (SourceForm::Jsonl, "{\"subject\":\"T4\"}", Err(LineProblem::MissingPart)),
            (SourceForm::Jsonl, "{\"subject\":{},\"predicate\":\"a\",\"object\":\"b\"}", Err(LineProblem::MissingPart)),
            (SourceForm::Jsonl, "\"T4\"", Err(LineProblem::NotJson)),
            (SourceForm::Jsonl, "{", Err(LineProblem::NotJson)),
        ] {
            assert_eq!(triple(&columns, form, record), expected, "{record}");
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(triple(&columns, SourceForm::Csv, &format!("{long},a,b")), Err(LineProblem::TooLong));
        assert_eq!(
            triple(&columns, SourceForm::Csv, &format!("c,a,b{}", ",x".repeat(MAX_ATTRIBUTES + 1))),
            Err(LineProblem::TooLong)
        );
        assert_eq!(columns.triple(SourceForm::Csv, b"a,b,\xff"), Err(LineProblem::NotText));
    }
}
