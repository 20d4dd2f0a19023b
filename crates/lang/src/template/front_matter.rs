//! Parses the front matter of a template: a `---` … `---` block of YAML at the start of the file (docs/templates.md).

use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source::compose::parse;
use crate::source::diagnostic::Diagnostic;
use crate::source::misreading::help_for;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};
use crate::template::language::PromptLanguage;

/// The maximum length of a front matter, in bytes.
pub(crate) const MAX_FRONT_BYTES: usize = 16 * 1024;

/// The valid keys of a front matter.
pub const KEYS: &[&str] = &[
    "description",
    "language",
    "output_schema",
    "model",
    "temperature",
    "max_tokens",
    "history",
    "opening_fallback",
    "fallback",
    "partial_fallback",
    "safety_fallback",
    "crisis_fallback",
    "feedback",
];

/// The expected value of each of [`KEYS`].
const EXPECTED: [(&str, &str); 13] = [
    ("description", "a string"),
    ("language", "`zh` or `en`"),
    ("output_schema", "the name of a file in schemas/replies/"),
    ("model", "the name of a model in bcc-script.toml"),
    ("temperature", "a number from 0 to 2"),
    ("max_tokens", "a whole number of at least 1"),
    ("history", "`inline` or `messages`"),
    ("opening_fallback", "a string or a list of strings"),
    ("fallback", "a string or a list of strings"),
    ("partial_fallback", "a string or a list of strings"),
    ("safety_fallback", "a string or a list of strings"),
    ("crisis_fallback", "a string or a list of strings"),
    ("feedback", "a mapping with the strings `heading`, `details` and `closing`"),
];

/// The form in which the model receives the conversation history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryMode {
    /// As text inside the prompt, at `chat_history` in the template.
    #[default]
    Inline,
    /// As separate messages.
    Messages,
}

/// The texts around a monitor's advice to the action (docs/monitors.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackTexts {
    /// The text before the advice.
    pub heading: String,
    /// The text before the alternative approach, or the example.
    pub details: String,
    /// The text after it.
    pub closing: String,
}

/// Texts with the same meaning, so that none has to be sent twice in a row. In the file: one string, or a list of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct TextVariants(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for TextVariants {
    fn from(read: OneOrMany) -> Self {
        let texts = match read {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        };
        Self(texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect())
    }
}

/// The texts of a template that are sent to the person instead of a reply; each list may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FallbackTexts {
    /// Instead of an unreadable opening: a notice that asks the person to write anything.
    pub opening: Vec<String>,
    /// Instead of an unreadable later reply: an apology, which is followed by the last question or message.
    pub later: Vec<String>,
    /// Instead of an unusable reply of an `ai_act` after operations of the same round.
    pub partial: Vec<String>,
    /// Instead of a reply that was held back.
    pub safety: Vec<String>,
    /// The same, if the reply reports a crisis: with the numbers of hotlines.
    pub crisis: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontMatter {
    #[serde(default)]
    pub description: Option<String>,
    /// The language of the prompt; `None` if the file does not state it.
    #[serde(default)]
    pub language: Option<PromptLanguage>,
    /// A file in `schemas/replies/`, without a folder.
    #[serde(default)]
    pub output_schema: Option<String>,
    /// The name of a model in the project's configuration.
    #[serde(default)]
    pub model: Option<String>,
    /// 0 to 2.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// At least 1.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    #[serde(default)]
    pub history: HistoryMode,
    #[serde(default)]
    pub opening_fallback: Option<TextVariants>,
    #[serde(default)]
    pub fallback: Option<TextVariants>,
    #[serde(default)]
    pub partial_fallback: Option<TextVariants>,
    #[serde(default)]
    pub safety_fallback: Option<TextVariants>,
    #[serde(default)]
    pub crisis_fallback: Option<TextVariants>,
    /// For a monitor's template: the texts around its advice to the action.
    #[serde(default)]
    pub feedback: Option<FeedbackTexts>,
}

impl FrontMatter {
    pub fn fallbacks(&self) -> FallbackTexts {
        let texts = |variants: &Option<TextVariants>| variants.clone().unwrap_or_default().0;
        FallbackTexts {
            opening: texts(&self.opening_fallback),
            later: texts(&self.fallback),
            partial: texts(&self.partial_fallback),
            safety: texts(&self.safety_fallback),
            crisis: texts(&self.crisis_fallback),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatterError {
    pub message: Message,
    /// The line of the file, from 1.
    pub line: usize,
    /// The byte range in the file.
    pub range: Range<usize>,
    pub help: Option<Message>,
    /// The suggested replacement for `range`, if there is only one.
    pub instead: Option<String>,
}

/// A key of a front matter, with the position of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatterKey {
    pub key: String,
    /// The byte range of the value in the file.
    pub value: Range<usize>,
}

/// A file split into front matter and template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SplitTemplate {
    /// The front matter, with defaults for missing keys.
    pub front: FrontMatter,
    /// The byte offset of the template in the file.
    pub body: usize,
    /// The valid keys, in file order.
    pub written: Vec<FrontMatterKey>,
}

/// Parses the front matter of a file and locates the start of the template. A byte-order mark at the start is skipped.
/// Errors: The first error of [`split_all`].
pub fn split(file: &str) -> Result<SplitTemplate, FrontMatterError> {
    let (split, errors) = split_all(file);
    errors.into_iter().next().map_or(Ok(split), Err)
}

/// Like [`split`], but returns all errors: a block that is not closed, not YAML or not a mapping; an unknown key; an invalid
/// value. The valid keys are returned too; after a block that is not closed the template is empty.
pub fn split_all(file: &str) -> (SplitTemplate, Vec<FrontMatterError>) {
    let text = file.strip_prefix('\u{feff}').unwrap_or(file);
    let skipped = file.len() - text.len();
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        let errors = mistaken_opening(text, skipped).into_iter().collect();
        return (SplitTemplate { body: skipped, ..SplitTemplate::default() }, errors);
    };
    let mut length = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            let yaml = text.get(first.len()..length).unwrap_or_default();
            let mut reader = Reader {
                file: Arc::new(SourceFile::new("front matter", yaml)),
                offset: skipped + first.len(),
                split: SplitTemplate { body: skipped + length + line.len(), ..SplitTemplate::default() },
                errors: Vec::new(),
            };
            reader.read();
            return (reader.split, reader.errors);
        }
        length += line.len();
        if length > MAX_FRONT_BYTES {
            break;
        }
    }
    let error = FrontMatterError {
        message: msg!("the front matter that starts here is not closed"),
        line: 1,
        range: skipped..skipped + first.trim_end().len(),
        help: Some(msg!(
            "end it with a line `---` within {MAX_FRONT_BYTES} bytes, or leave the first line of the file empty if the `---` is part of the prompt"
        )),
        instead: None,
    };
    (SplitTemplate { body: file.len(), ..SplitTemplate::default() }, vec![error])
}

/// A first line that is meant to open a front matter, but is not exactly `---`: a line of a table follows it. Without the
/// error, the model would get the settings as part of its prompt.
fn mistaken_opening(text: &str, skipped: usize) -> Option<FrontMatterError> {
    let is_dash = |c: char| matches!(c, '-' | '－' | '—' | '–' | '−' | '+' | '=' | '─');
    let mut at = skipped;
    let mut line_number = 0;
    let mut lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        line_number += 1;
        (line_number, start, line.trim())
    });
    let (line, start, opening) = lines.find(|(_, _, line)| !line.is_empty())?;
    let marks = opening.chars().take_while(|c| is_dash(*c)).count();
    let rest = opening.trim_start_matches(is_dash).trim_start();
    let is_opening = marks >= 2 || opening.starts_with('—');
    if !is_opening || !(rest.is_empty() || rest.starts_with('#')) {
        return None;
    }
    let (_, _, next) = lines.find(|(_, _, line)| !line.is_empty() && !line.starts_with('#'))?;
    let (key, _) = next.split_once([':', '：', '='])?;
    KEYS.contains(&key.trim()).then(|| FrontMatterError {
        message: msg!("this looks like a front matter, but it does not start with a line `---`"),
        line,
        range: start..start + opening.len(),
        help: Some(msg!("write exactly `---` on the first line of the file, and again after the last key")),
        instead: None,
    })
}

struct Reader {
    /// The text between the two lines `---`; it starts at line 2 of the template file.
    file: Arc<SourceFile>,
    /// The byte offset of that text in the template file.
    offset: usize,
    split: SplitTemplate,
    errors: Vec<FrontMatterError>,
}

impl Reader {
    fn read(&mut self) {
        let parsed = parse(&self.file);
        if parsed.diagnostics.iter().any(|found| found.rule == "empty-document") {
            return;
        }
        for found in parsed.diagnostics.into_iter().filter(Diagnostic::is_error) {
            self.error(msg!("the front matter cannot be read: {}", found.message), found.span, found.help);
        }
        let Some(root) = parsed.root.filter(|root| !root.to_json().is_null()) else { return };
        let Some(entries) = root.as_mapping() else {
            let message = msg!("the front matter must be a mapping of keys to values");
            let help = help_for(&self.file, &root).unwrap_or_else(|| {
                msg!(
                    "write one `key: value` per line (valid keys are {}), or leave the first line of the file empty if the `---` is part of the prompt",
                    Message::names(KEYS)
                )
            });
            self.error(message, root.span, Some(help));
            return;
        };
        let mut table = serde_json::Map::new();
        for YamlEntry { key, value } in entries {
            self.entry(key, value, &mut table);
        }
        // Each key was deserialized separately before.
        match serde_json::from_value(Value::Object(table)) {
            Ok(front) => self.split.front = front,
            Err(error) => self.error(msg!("the front matter cannot be read: {error}"), root.span, None),
        }
    }

    fn entry(&mut self, key: &Spanned<String>, value: &YamlNode, table: &mut serde_json::Map<String, Value>) {
        let name = key.value.as_str();
        let Some((_, wanted)) = EXPECTED.iter().find(|(known, _)| *known == name) else {
            let near = near_miss(name, KEYS.iter().copied());
            let help = near
                .map_or_else(|| msg!("valid keys are {}", Message::names(KEYS)), |near| msg!("did you mean `{near}`?"));
            self.error(msg!("the front matter has no key `{name}`"), key.span, Some(help));
            if let Some(error) = self.errors.last_mut() {
                error.instead = near.map(str::to_owned);
            }
            return;
        };
        let json = value.to_json();
        let alone = serde_json::Map::from_iter([(name.to_owned(), json.clone())]);
        let span = if value.span.is_empty() { key.span } else { value.span };
        let Ok(front) = serde_json::from_value::<FrontMatter>(Value::Object(alone)) else {
            let message = msg!(
                "`{name}` cannot be read: it must be {wanted}, but this is {}",
                value.describe(),
                wanted = Message::word(wanted)
            );
            self.error(message, span, Some(msg!("write {wanted}, or omit `{name}`", wanted = Message::word(wanted))));
            return;
        };
        if let Err(message) = check(&front) {
            self.error(message.into(), span, Some(msg!("write {wanted}, or omit `{name}`")));
            return;
        }
        let range = span.start + self.offset..span.end + self.offset;
        self.split.written.push(FrontMatterKey { key: name.to_owned(), value: range });
        table.insert(name.to_owned(), json);
    }

    fn error(&mut self, message: Message, span: Span, help: Option<Message>) {
        let line = self.file.line_column(span.start).0 + 1;
        let range = span.start + self.offset..span.end + self.offset;
        self.errors.push(FrontMatterError { message, line, range, help, instead: None });
    }
}

/// Checks the ranges of the values.
fn check(front: &FrontMatter) -> Result<(), &'static str> {
    if front.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err("`temperature` must be from 0 to 2");
    }
    if front.max_tokens == Some(0) {
        return Err("`max_tokens` must be at least 1");
    }
    let is_path = |name: &str| name.is_empty() || name.contains(['/', '\\']) || name.contains("..");
    if front.output_schema.as_deref().is_some_and(is_path) {
        return Err("`output_schema` must be the name of a file in schemas/replies/, without a folder");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_after_its_front_matter() {
        let file = "---\ndescription: 提问\nmodel: fast\ntemperature: 0.5\nmax_tokens: 100\nhistory: messages\nfallback: 抱歉\noutput_schema: ask.json\n---\nbody\n";
        let split_file = split(file).unwrap();
        assert_eq!(&file[split_file.body..], "body\n");
        assert_eq!(split_file.front.description.as_deref(), Some("提问"));
        assert_eq!(split_file.front.history, HistoryMode::Messages);
        assert_eq!(split_file.front.fallbacks().later, ["抱歉"]);
        assert_eq!(split_file.front.temperature, Some(0.5));
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
            ("\n---\nThe model: a counsellor\n---\n", "\n---\nThe model: a counsellor\n---\n"),
            ("----\n{{ task }}\n", "----\n{{ task }}\n"),
            ("\n---\n\n# Task\n", "\n---\n\n# Task\n"),
            ("", ""),
        ] {
            let split_file = split(file).unwrap();
            assert_eq!(&file[split_file.body..], body, "{file:?}");
        }
    }

    #[test]
    fn errors_have_lines_and_suggestions() {
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
            ("---\n你是一位咨询师。\n---\n", 2, "must be a mapping", "leave the first line"),
            ("---\nmodel：m\n---\n", 2, "must be a mapping", "colon"),
            ("\n---\nmodel: m\n---\n", 2, "does not start with", "exactly `---`"),
            (" ---\nmodel: m\n---\n", 1, "does not start with", "exactly `---`"),
            ("----\nmodel: m\n----\n", 1, "does not start with", "exactly `---`"),
            ("--- # settings\nmodel: m\n---\n", 1, "does not start with", "exactly `---`"),
            ("———\ntemperature: 1\n———\n", 1, "does not start with", "exactly `---`"),
            ("+++\nmodel = \"m\"\n+++\n", 1, "does not start with", "exactly `---`"),
        ];
        for (file, line, message, help) in table {
            let error = split(file).unwrap_err();
            assert!(error.message.to_string().contains(message), "{file}: {}", error.message);
            assert!(error.help.unwrap_or_default().to_string().contains(help), "{file}");
            assert!(
                error.line.abs_diff(line) <= usize::from(message == "cannot be read" && file.contains('[')),
                "{file}: {}",
                error.line
            );
        }
    }

    #[test]
    fn all_errors_have_ranges_and_valid_keys_are_parsed() {
        let file = "\u{feff}---\nmodle: m\ntemperature: hot\nhistory: messages\nmax_tokens: 0\n---\n<!-- user -->";
        let (split_file, errors) = split_all(file);
        let places: Vec<&str> = errors.iter().map(|error| &file[error.range.clone()]).collect();
        assert_eq!(places, ["modle", "hot", "0"]);
        assert_eq!(errors[0].instead.as_deref(), Some("model"));
        assert_eq!(split_file.front.history, HistoryMode::Messages);
        assert_eq!(&file[split_file.written[0].value.clone()], "messages");
        assert_eq!(&file[split_file.body..], "<!-- user -->");
    }

    #[test]
    fn the_texts_sent_instead_of_a_reply_are_one_text_or_a_list() {
        let file = "---\nlanguage: english\nopening_fallback: a\nfallback: [b, ' ', c]\ncrisis_fallback:\n  - d\n---\n";
        let front = split(file).unwrap().front;
        let fallbacks = front.fallbacks();
        assert_eq!((fallbacks.opening, fallbacks.later), (vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!((fallbacks.safety, fallbacks.crisis), (vec![], vec!["d".to_owned()]));
        assert_eq!(front.language, Some(PromptLanguage::En));
        for wrong in ["language: de", "fallback: {a: b}", "safety_fallback: [[a]]"] {
            assert!(split(&format!("---\n{wrong}\n---\n")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_key_has_an_expected_value() {
        assert_eq!(EXPECTED.map(|(key, _)| key), KEYS);
    }
}
