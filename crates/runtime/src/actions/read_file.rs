//! `read_file`: stores the content of a file of the project in a variable.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::actions::failure::failed_flow;
use crate::actions::file_path::{file_path, permission_error};
use crate::program::action::Action;
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::declare::variable_name;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::project_path::PathUse;
use bcc_lang::source::compose::parse;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::text::Text;
use bcc_lang::value::exact::{ExactValue, ExactValues};

/// The permission that it needs.
const PERMISSION: &str = "read_file";

const DEFAULT_MAX_BYTES: u32 = 1024 * 1024;

/// The maximum of `max_bytes`: the content becomes part of the session.
const MAX_BYTES: u32 = 16 * 1024 * 1024;

pub(crate) struct ReadFileKind;

/// How a content becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Yaml,
}

struct ReadFile {
    path: Text,
    /// `None` if the extension decides.
    format: Option<Format>,
    output: String,
    max_bytes: u32,
}

impl Kind for ReadFileKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "read_file",
            schema: include_str!("../../../../schemas/actions/read_file.json"),
            page: include_str!("../../../../docs/actions/read_file.md"),
            exits: &["exit_criteria_met", "failed"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let before = fields.findings().author_errors();
        let path = fields
            .required_content("path")
            .and_then(|words| file_path(&words, ("path", PathUse::Read), fields, checker));
        let format = fields.choice("as", &["text", "json", "yaml"]).map(|format| match format {
            "json" => Format::Json,
            "yaml" => Format::Yaml,
            _ => Format::Text,
        });
        let max_bytes = fields.integer("max_bytes", 1..=MAX_BYTES).unwrap_or(DEFAULT_MAX_BYTES);
        let output = fields.required_text("output").map(|words| Spanned { value: words.text, span: words.node.span });
        let output = output.filter(|name| variable_name(name, fields).is_some());
        if let Some(output) = &output {
            checker.may_have_value(output, None);
        }
        checker.describe(ActionProperties {
            max_rounds: 1,
            outputs: 1,
            needs: vec![PERMISSION.to_owned()],
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        Some(Box::new(ReadFile { path: path?, format, output: output?.value, max_bytes }))
    }
}

#[async_trait]
impl Action for ReadFile {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let host = &turn.services.host;
        if let Some(denied) = permission_error(turn, PERMISSION) {
            return Ok(failed_flow(turn, &denied));
        }
        let path = turn.exact_text(&self.path, &turn.names(1))?;
        let source = self.path.source();
        let bytes = match host.files.read(&host.permissions.directory, &path, self.max_bytes.into()) {
            Ok(bytes) => bytes,
            Err(error) => {
                let failure = msg!("the file `{source}` cannot be read: {error}", error = error.message);
                turn.warn("file-not-read", failure.clone(), error.help);
                return Ok(failed_flow(turn, &failure));
            }
        };
        let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
        let format = self.format.unwrap_or(match extension.as_str() {
            "json" => Format::Json,
            "yaml" | "yml" => Format::Yaml,
            _ => Format::Text,
        });
        let size = bytes.len();
        let value = match value_of(bytes, format) {
            Ok(value) => value,
            Err(reason) => {
                let failure = msg!("the file `{source}` cannot be read: {error}", error = reason);
                return Ok(failed_flow(turn, &failure));
            }
        };
        let mut extracted_variables = ExactValues::new();
        extracted_variables.insert(self.output.clone(), turn.set(&self.output, value, None)?);
        let mut metadata = Map::new();
        metadata.insert("bytes".into(), size.into());
        metadata.insert("success".into(), true.into());
        Ok(Flow::done(Outcome { extracted_variables, metadata, ..Outcome::done(ExitReason::ExitCriteriaMet) }))
    }
}

/// The value of a content. Errors: why it has none, without parts of it.
fn value_of(bytes: Vec<u8>, format: Format) -> Result<ExactValue, Message> {
    let text = String::from_utf8(bytes).map_err(|_| Message::word("it is not UTF-8 text"))?;
    // A mark at the start is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match format {
        Format::Text => Ok(Value::from(text).into()),
        Format::Json => serde_json::from_str(text)
            .map_err(|error| msg!("it is not valid JSON: line {}, column {}", error.line(), error.column())),
        Format::Yaml => {
            let parsed = parse(&Arc::new(SourceFile::new("", text)));
            let broken = parsed.diagnostics.iter().find(|diagnostic| diagnostic.is_error());
            match (broken, parsed.root) {
                (Some(broken), _) => {
                    let line = broken.file.line(broken.span.start);
                    Err(msg!("it is not valid YAML: line {line}"))
                }
                (None, root) => Ok(root.map(|root| root.to_exact()).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_content_is_a_value_or_an_error_that_does_not_show_it() {
        let table = [
            ("a\nb\n", Format::Text, Ok(json!("a\nb\n"))),
            ("\u{feff}{\"a\": [1, null]}", Format::Json, Ok(json!({ "a": [1, null] }))),
            ("{\"a\": secret}", Format::Json, Err("it is not valid JSON: line 1, column 7")),
            ("a: [1, x]\n", Format::Yaml, Ok(json!({ "a": [1, "x"] }))),
            ("a: 1\nb: [secret\n", Format::Yaml, Err("it is not valid YAML: line")),
        ];
        for (text, format, expected) in table {
            match (value_of(text.into(), format), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{text}"),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected) && !error.contains("secret"), "{text}: {error}");
                }
                (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
            }
        }
        assert!(value_of(vec![0xff], Format::Text).is_err());
        let number = value_of(b"{\"n\": 1.10}".to_vec(), Format::Json).unwrap();
        assert_eq!(number.to_string(), "{\"n\":1.10}");
        let deep = "[".repeat(100_000);
        for format in [Format::Json, Format::Yaml] {
            assert!(value_of(deep.clone().into_bytes(), format).is_err());
        }
    }
}
