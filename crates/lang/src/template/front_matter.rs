//! The front matter of a template: a `---` … `---` block of YAML at its very start (docs/templates.md).

use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source::compose::parse;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

/// How long a front matter may be, in bytes.
pub const MAX_FRONT_BYTES: usize = 16 * 1024;

/// The keys that a front matter may have.
pub const KEYS: &[&str] =
    &["description", "output_schema", "model", "temperature", "max_tokens", "history", "fallback", "feedback"];

/// What each of [`KEYS`] takes.
const WANTED: [(&str, &str); 8] = [
    ("description", "a string"),
    ("output_schema", "the name of a file in schemas/replies/"),
    ("model", "the name of a model in bcc-script.toml"),
    ("temperature", "a number from 0 to 2"),
    ("max_tokens", "a whole number of at least 1"),
    ("history", "`inline` or `messages`"),
    ("fallback", "a string"),
    ("feedback", "a mapping with the strings `heading`, `details` and `closing`"),
];

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

/// How a monitor's advice is put to the action that it is for (docs/monitors.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackTexts {
    /// Stands above the advice.
    pub heading: String,
    /// Stands above the other approach, or the example.
    pub details: String,
    /// Stands below.
    pub closing: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontMatter {
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
    /// Of a monitor's template: how its advice is put to the action.
    #[serde(default)]
    pub feedback: Option<FeedbackTexts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatterError {
    pub message: Message,
    /// The line of the file, from 1.
    pub line: usize,
    /// Where in the file, in bytes.
    pub range: Range<usize>,
    pub help: Option<Message>,
    /// The one text that was probably meant in the place of `range`.
    pub instead: Option<String>,
}

/// A key of a front matter as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatterKey {
    pub key: String,
    /// Where its value stands, in bytes of the file.
    pub value: Range<usize>,
}

/// A file cut in two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SplitTemplate {
    /// What the front matter says; the defaults where there is none.
    pub front: FrontMatter,
    /// Where the template begins, in bytes of the file.
    pub body: usize,
    /// The keys that could be read, in the order of the file.
    pub written: Vec<FrontMatterKey>,
}

/// Reads the front matter of a file and says where the template begins. A byte-order mark at the start is skipped.
/// Errors: The first of the faults that [`cut_all`] gives.
pub fn cut(file: &str) -> Result<SplitTemplate, FrontMatterError> {
    let (cut, faults) = cut_all(file);
    faults.into_iter().next().map_or(Ok(cut), Err)
}

/// As [`cut`], with every fault: a block that is not closed, not YAML or not a table; an unknown key; a value out of its
/// range. What could be read is read; after a block that is not closed the template is empty.
pub fn cut_all(file: &str) -> (SplitTemplate, Vec<FrontMatterError>) {
    let text = file.strip_prefix('\u{feff}').unwrap_or(file);
    let skipped = file.len() - text.len();
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return (SplitTemplate { body: skipped, ..SplitTemplate::default() }, Vec::new());
    };
    let mut length = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            let yaml = text.get(first.len()..length).unwrap_or_default();
            let mut reading = Reading {
                file: Arc::new(SourceFile::new("front matter", yaml)),
                before: skipped + first.len(),
                cut: SplitTemplate { body: skipped + length + line.len(), ..SplitTemplate::default() },
                faults: Vec::new(),
            };
            reading.read();
            return (reading.cut, reading.faults);
        }
        length += line.len();
        if length > MAX_FRONT_BYTES {
            break;
        }
    }
    let fault = FrontMatterError {
        message: msg!("the front matter that starts here is not closed"),
        line: 1,
        range: skipped..skipped + first.trim_end().len(),
        help: Some(msg!("end it with a line `---` within {MAX_FRONT_BYTES} bytes")),
        instead: None,
    };
    (SplitTemplate { body: file.len(), ..SplitTemplate::default() }, vec![fault])
}

struct Reading {
    /// What stands between the two lines `---`; it begins on line 2 of the template's file.
    file: Arc<SourceFile>,
    /// How many bytes of the template's file stand before it.
    before: usize,
    cut: SplitTemplate,
    faults: Vec<FrontMatterError>,
}

impl Reading {
    fn read(&mut self) {
        let parsed = parse(&self.file);
        if parsed.diagnostics.iter().any(|found| found.rule == "empty-document") {
            return;
        }
        for found in parsed.diagnostics.into_iter().filter(Diagnostic::is_error) {
            self.fault(msg!("the front matter cannot be read: {}", found.message), found.span, found.help);
        }
        let Some(root) = parsed.root.filter(|root| !root.to_json().is_null()) else { return };
        let Some(entries) = root.as_mapping() else {
            let message = msg!("the front matter must be a mapping of keys to values");
            self.fault(
                message,
                root.span,
                Some(msg!("write one `key: value` per line; valid keys are {}", KEYS.join(", "))),
            );
            return;
        };
        let mut table = serde_json::Map::new();
        for YamlEntry { key, value } in entries {
            self.entry(key, value, &mut table);
        }
        // Each of its keys was read alone before.
        match serde_json::from_value(Value::Object(table)) {
            Ok(front) => self.cut.front = front,
            Err(error) => self.fault(msg!("the front matter cannot be read: {error}"), root.span, None),
        }
    }

    fn entry(&mut self, key: &Spanned<String>, value: &YamlNode, table: &mut serde_json::Map<String, Value>) {
        let name = key.value.as_str();
        let Some((_, wanted)) = WANTED.iter().find(|(known, _)| *known == name) else {
            let near = near_miss(name, KEYS.iter().copied());
            let help =
                near.map_or_else(|| msg!("valid keys are {}", KEYS.join(", ")), |near| msg!("did you mean `{near}`?"));
            self.fault(msg!("the front matter has no key `{name}`"), key.span, Some(help));
            if let Some(fault) = self.faults.last_mut() {
                fault.instead = near.map(str::to_owned);
            }
            return;
        };
        let json = value.to_json();
        let alone = serde_json::Map::from_iter([(name.to_owned(), json.clone())]);
        let place = if value.span.is_empty() { key.span } else { value.span };
        let Ok(front) = serde_json::from_value::<FrontMatter>(Value::Object(alone)) else {
            let message = msg!(
                "`{name}` cannot be read: it must be {wanted}, but this is {}",
                value.describe(),
                wanted = Message::word(wanted)
            );
            self.fault(message, place, Some(msg!("write {wanted}, or omit `{name}`", wanted = Message::word(wanted))));
            return;
        };
        if let Err(message) = check(&front) {
            self.fault(message.into(), place, Some(msg!("write {wanted}, or omit `{name}`")));
            return;
        }
        let range = place.start + self.before..place.end + self.before;
        self.cut.written.push(FrontMatterKey { key: name.to_owned(), value: range });
        table.insert(name.to_owned(), json);
    }

    fn fault(&mut self, message: Message, span: Span, help: Option<Message>) {
        let line = self.file.line_column(span.start).0 + 1;
        let range = span.start + self.before..span.end + self.before;
        self.faults.push(FrontMatterError { message, line, range, help, instead: None });
    }
}

/// Whether what was given may be.
fn check(front: &FrontMatter) -> Result<(), &'static str> {
    if front.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err("`temperature` must be from 0 to 2");
    }
    if front.max_tokens == Some(0) {
        return Err("`max_tokens` must be at least 1");
    }
    let outside = |name: &str| name.is_empty() || name.contains(['/', '\\']) || name.contains("..");
    if front.output_schema.as_deref().is_some_and(outside) {
        return Err("`output_schema` must be the name of a file in schemas/replies/, without a folder");
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
        assert_eq!(cut_file.front.description.as_deref(), Some("提问"));
        assert_eq!(cut_file.front.history, HistoryMode::Messages);
        assert_eq!(cut_file.front.fallback.as_deref(), Some("抱歉"));
        assert_eq!(cut_file.front.temperature, Some(0.5));
    }

    #[test]
    fn files_without_front_matter_with_a_mark_or_with_crlf_work() {
        for (file, body) in [
            ("body", "body"),
            ("\u{feff}body", "body"),
            ("\u{feff}---\nmodel: m\n---\nbody", "body"),
            ("---\r\nmodel: m\r\n---\r\nbody", "body"),
            ("---\n---\nbody", "body"),
            ("---\n# only a comment\n---\nbody", "body"),
            ("--- \n---", ""),
            ("a\n---\nmodel: m\n---\n", "a\n---\nmodel: m\n---\n"),
            ("", ""),
        ] {
            let cut_file = cut(file).unwrap();
            assert_eq!(&file[cut_file.body..], body, "{file:?}");
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
            ("---\n- a\n---\n", 2, "must be a mapping", ""),
            ("---\nmodel: [\n---\n", 2, "cannot be read", ""),
        ];
        for (file, line, message, help) in table {
            let fault = cut(file).unwrap_err();
            assert!(fault.message.to_string().contains(message), "{file}: {}", fault.message);
            assert!(fault.help.unwrap_or_default().to_string().contains(help), "{file}");
            assert!(
                fault.line.abs_diff(line) <= usize::from(message == "cannot be read" && file.contains('[')),
                "{file}: {}",
                fault.line
            );
        }
    }

    #[test]
    fn every_mistake_is_found_where_it_stands_and_what_is_right_is_read() {
        let file = "\u{feff}---\nmodle: m\ntemperature: hot\nhistory: messages\nmax_tokens: 0\n---\n<!-- user -->";
        let (cut_file, faults) = cut_all(file);
        let places: Vec<&str> = faults.iter().map(|fault| &file[fault.range.clone()]).collect();
        assert_eq!(places, ["modle", "hot", "0"]);
        assert_eq!(faults[0].instead.as_deref(), Some("model"));
        assert_eq!(cut_file.front.history, HistoryMode::Messages);
        assert_eq!(&file[cut_file.written[0].value.clone()], "messages");
        assert_eq!(&file[cut_file.body..], "<!-- user -->");
    }

    #[test]
    fn what_a_key_takes_is_known_of_every_key() {
        assert_eq!(WANTED.map(|(key, _)| key), KEYS);
    }
}
