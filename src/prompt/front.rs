//! The front matter of a template: a `---` … `---` block of YAML at its very start (LANGUAGE.md section 7).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{Entry, parse};

/// How long a front matter may be, in bytes.
pub const MAX_FRONT_BYTES: usize = 16 * 1024;

/// The keys that a front matter may have.
pub const KEYS: &[&str] =
    &["description", "output_schema", "model", "temperature", "max_tokens", "history", "fallback"];

/// How the talk so far reaches the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryMode {
    /// As text inside the prompt, where the template writes `chat_history`.
    #[default]
    Inline,
    /// As messages of their own.
    Messages,
}

/// What a template says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// A file in `schemas/replies/`, without a folder.
    #[serde(default)]
    pub output_schema: Option<String>,
    /// A model of the project's configuration.
    #[serde(default)]
    pub model: Option<String>,
    /// 0 to 2.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// At least 1.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// How the talk so far reaches the model.
    #[serde(default)]
    pub history: HistoryMode,
    /// The words said when a reply cannot be read, before the question again.
    #[serde(default)]
    pub fallback: Option<String>,
}

/// What is wrong with a front matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontFault {
    /// What is wrong.
    pub message: String,
    /// The line of the file, from 1.
    pub line: usize,
    /// What to do.
    pub help: Option<String>,
}

/// A file cut in two.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// What the front matter says; the defaults where there is none.
    pub front: Front,
    /// Where the template begins, in bytes of the file.
    pub body: usize,
    /// How many lines of the file stand before it.
    pub lines: usize,
}

/// Reads the front matter of a file and says where the template begins. A byte-order mark at the start is skipped.
///
/// # Errors
/// [`FrontFault`]: a block that is not closed, not YAML or not a table; an unknown key; a value out of its range.
pub fn cut(file: &str) -> Result<Cut, FrontFault> {
    let text = file.strip_prefix('\u{feff}').unwrap_or(file);
    let skipped = file.len() - text.len();
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(Cut { front: Front::default(), body: skipped, lines: 0 });
    };
    let mut length = first.len();
    for (count, line) in (2..).zip(lines) {
        if line.trim_end() == "---" {
            let yaml = text.get(first.len()..length).unwrap_or_default();
            return Ok(Cut { front: read(yaml)?, body: skipped + length + line.len(), lines: count });
        }
        length += line.len();
        if length > MAX_FRONT_BYTES {
            break;
        }
    }
    Err(FrontFault {
        message: "the front matter that opens here is not closed".to_owned(),
        line: 1,
        help: Some(format!("end it with a line `---` within {MAX_FRONT_BYTES} bytes")),
    })
}

/// `yaml` begins on line 2 of the file.
fn read(yaml: &str) -> Result<Front, FrontFault> {
    let file = Arc::new(SourceFile::new("front matter", yaml));
    let line_of = |span: Span| file.line_column(span.start).0 + 1;
    let parsed = parse(&file);
    if parsed.diagnostics.iter().any(|found| found.rule == "empty-document") {
        return Ok(Front::default());
    }
    if let Some(found) = parsed.diagnostics.into_iter().find(Diagnostic::is_error) {
        let message = format!("the front matter cannot be read: {}", found.message);
        return Err(FrontFault { message, line: line_of(found.span), help: found.help });
    }
    let Some(root) = parsed.root.filter(|root| !root.to_json().is_null()) else { return Ok(Front::default()) };
    let Some(entries) = root.as_mapping() else {
        let message = "the front matter must be a table of keys and values".to_owned();
        return Err(FrontFault { message, line: line_of(root.span), help: None });
    };
    let mut table = serde_json::Map::new();
    for Entry { key, value } in entries {
        let name = key.value.as_str();
        let fault = |message: String, help: Option<String>| FrontFault { message, line: line_of(key.span), help };
        if !KEYS.contains(&name) {
            let help = near_miss(name, KEYS.iter().copied())
                .map_or_else(|| format!("keys are {}", KEYS.join(", ")), |near| format!("did you mean `{near}`?"));
            return Err(fault(format!("the front matter has no key `{name}`"), Some(help)));
        }
        let value = value.to_json();
        let alone = serde_json::Map::from_iter([(name.to_owned(), value.clone())]);
        let front: Front = serde_json::from_value(Value::Object(alone))
            .map_err(|error| fault(format!("the front matter cannot be read: `{name}`: {error}"), None))?;
        check(&front).map_err(|message| fault(message.to_owned(), None))?;
        table.insert(name.to_owned(), value);
    }
    // Each of its keys was read alone before.
    serde_json::from_value(Value::Object(table)).map_err(|error| FrontFault {
        message: format!("the front matter cannot be read: {error}"),
        line: 2,
        help: None,
    })
}

/// Whether what was given may be.
fn check(front: &Front) -> Result<(), &'static str> {
    if front.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err("`temperature` goes from 0 to 2");
    }
    if front.max_tokens == Some(0) {
        return Err("`max_tokens` is at least 1");
    }
    let outside = |name: &str| name.is_empty() || name.contains(['/', '\\']) || name.contains("..");
    if front.output_schema.as_deref().is_some_and(outside) {
        return Err("`output_schema` names a file in schemas/replies/, without a folder");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_where_its_front_matter_ends() {
        let file = "---\ndescription: 提问\nmodel: fast\ntemperature: 0.5\nmax_tokens: 100\nhistory: messages\nfallback: 抱歉\noutput_schema: ask.json\n---\nbody\n";
        let cut_file = cut(file).unwrap();
        assert_eq!(&file[cut_file.body..], "body\n");
        assert_eq!(cut_file.lines, 9);
        assert_eq!(cut_file.front.description.as_deref(), Some("提问"));
        assert_eq!(cut_file.front.history, HistoryMode::Messages);
        assert_eq!(cut_file.front.fallback.as_deref(), Some("抱歉"));
        assert_eq!(cut_file.front.temperature, Some(0.5));
    }

    #[test]
    fn files_without_front_matter_with_a_mark_or_with_crlf_work() {
        for (file, body, lines) in [
            ("body", "body", 0),
            ("\u{feff}body", "body", 0),
            ("\u{feff}---\nmodel: m\n---\nbody", "body", 3),
            ("---\r\nmodel: m\r\n---\r\nbody", "body", 3),
            ("---\n---\nbody", "body", 2),
            ("---\n# only a comment\n---\nbody", "body", 3),
            ("--- \n---", "", 2),
            ("a\n---\nmodel: m\n---\n", "a\n---\nmodel: m\n---\n", 0),
            ("", "", 0),
        ] {
            let cut_file = cut(file).unwrap();
            assert_eq!((&file[cut_file.body..], cut_file.lines), (body, lines), "{file:?}");
        }
    }

    #[test]
    fn mistakes_have_lines_and_near_names() {
        let table = [
            ("---\nmodel: m\nbody", 1, "not closed", "end it"),
            ("---\nmodel: m\ntemprature: 1\n---\n", 3, "no key `temprature`", "did you mean `temperature`?"),
            ("---\nmodel: m\nother: 1\n---\n", 3, "no key `other`", "keys are"),
            ("---\nmodel: m\ntemperature: hot\n---\n", 3, "cannot be read", ""),
            ("---\nmodel: m\ntemperature: 3\n---\n", 3, "from 0 to 2", ""),
            ("---\ntemperature: .nan\n---\n", 2, "cannot be read", ""),
            ("---\nmax_tokens: 0\n---\n", 2, "at least 1", ""),
            ("---\nmodel: m\n\nhistory: both\n---\n", 4, "cannot be read", ""),
            ("---\noutput_schema: ../x.json\n---\n", 2, "without a folder", ""),
            ("---\n- a\n---\n", 2, "must be a table", ""),
            ("---\nmodel: [\n---\n", 2, "cannot be read", ""),
        ];
        for (file, line, message, help) in table {
            let fault = cut(file).unwrap_err();
            assert!(fault.message.contains(message), "{file}: {}", fault.message);
            assert!(fault.help.unwrap_or_default().contains(help), "{file}");
            assert!(
                fault.line.abs_diff(line) <= usize::from(message == "cannot be read" && file.contains('[')),
                "{file}: {}",
                fault.line
            );
        }
    }
}
