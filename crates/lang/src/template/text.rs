//! Author texts (content, tone, exit, strategy …): lenient templates. An unknown name, a null and an attribute of
//! either are written as nothing (docs/language.md "Texts").

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};

use crate::template::environment::{Bounded, environment};
use crate::template::error::{RenderError, fault};
use crate::template::features::{FeatureKind, MAX_OUTPUT};
use crate::template::limits::{YamlSyntaxError, admit};
use crate::template::missing::{InPlace, Marks, as_value};
use crate::template::names::TemplateNames;
use crate::template::unknown::SourceRepair;
use crate::template::uses::{NameUse, Pull, find};

/// How long an author text may be, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextErrorKind {
    /// The text is no template.
    Syntax,
    /// The text asks for what texts may not do, or for a filter, test or function that does not exist.
    Refused,
    TooLong,
    Rendering,
    /// The text was added to other [`AuthorTexts`].
    Foreign,
}

/// What is wrong with an author text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct TextError {
    pub kind: TextErrorKind,
    pub message: Message,
    /// Where, in bytes of the text.
    pub range: Option<Range<usize>>,
    pub help: Option<Message>,
    /// For a filter, test or function that does not exist: which of them it is.
    pub unknown: Option<FeatureKind>,
    /// The change of the text that would settle it.
    pub repair: Option<Box<SourceRepair>>,
}

/// An author text that was read. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Text(Arc<Read>);

#[derive(Debug)]
struct Read {
    source: String,
    names: Vec<NameUse>,
    /// The template's name in the environment; none for a plain text, which minijinja never sees.
    template: Option<String>,
}

impl Text {
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The names that the text does not set itself, with their places in [`source`](Self::source).
    pub fn names(&self) -> &[NameUse] {
        &self.0.names
    }

    /// Whether the text is the same for all names.
    pub fn is_plain(&self) -> bool {
        self.0.template.is_none()
    }

    /// What the text is rendered to, when that is the same for all names.
    pub fn plain(&self) -> Option<&str> {
        self.is_plain().then(|| without_last_newline(&self.0.source))
    }
}

/// All author texts of a program, in one environment that is built once.
#[derive(Debug)]
pub struct AuthorTexts {
    environment: Environment<'static>,
    read: HashMap<String, Text>,
    /// The templates by their names, compiled when they are first rendered: a check renders none.
    sources: Arc<Mutex<HashMap<String, Text>>>,
    /// Where what a text lacks is noted, when prompts are looked at and not sent.
    marks: Option<Arc<Marks>>,
}

impl Default for AuthorTexts {
    fn default() -> Self {
        Self::new()
    }
}

impl AuthorTexts {
    pub fn new() -> Self {
        let sources: Arc<Mutex<HashMap<String, Text>>> = Arc::default();
        let mut environment = environment(UndefinedBehavior::Chainable);
        let known = Arc::clone(&sources);
        environment.set_loader(move |name| {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(known.get(name).map(|text| text.0.source.clone()))
        });
        Self { environment, read: HashMap::new(), sources, marks: None }
    }

    /// From here on, names that a text does not get and variables without a value are noted in `marks`. The texts stay what
    /// they are.
    pub fn note_in(&mut self, marks: Arc<Marks>) {
        self.marks = Some(marks);
    }

    /// Reads a text. The same text again gives the same [`Text`].
    /// Errors: A syntax error; an unknown filter, test or function; `include`, `extends`, `import` and `block`, which are for
    /// prompt templates; a text longer than [`MAX_TEXT_BYTES`].
    pub fn add(&mut self, source: &str) -> Result<Text, TextError> {
        if let Some(text) = self.read.get(source) {
            return Ok(text.clone());
        }
        if source.len() > MAX_TEXT_BYTES {
            let message = msg!("this text is longer than {MAX_TEXT_BYTES} bytes");
            return Err(failed(TextErrorKind::TooLong, message, None));
        }
        let (names, template) = if is_plain(source) {
            (Vec::new(), None)
        } else {
            (self.read_template(source)?, Some(format!("text {}", self.read.len())))
        };
        let text = Text(Arc::new(Read { source: source.to_owned(), names, template }));
        if let Some(name) = &text.0.template {
            self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), text.clone());
        }
        self.read.insert(source.to_owned(), text.clone());
        Ok(text)
    }

    fn read_template(&self, source: &str) -> Result<Vec<NameUse>, TextError> {
        admit(source, false).map_err(refused)?;
        let tree = parse(source, "text", SyntaxConfig::default()).map_err(|error| {
            else_if(source).unwrap_or_else(|| fallen(TextErrorKind::Syntax, fault(&error).within(source)))
        })?;
        let uses = find(&tree, &self.environment);
        if let Some(first) = uses.refused.into_iter().next() {
            return Err(refused(first));
        }
        if let Some(target) = uses.targets.first() {
            let what = match target.pull {
                Pull::Extends => "extends",
                Pull::Include | Pull::IncludeIfThere => "include",
                Pull::Import => "import",
            };
            return Err(refused(YamlSyntaxError {
                message: msg!("`{what}` can only be used in prompt templates; an author text is self-contained"),
                range: target.range.clone(),
                help: None,
                instead: None,
                unknown: None,
            }));
        }
        Ok(uses.names)
    }

    /// The text with these names in place. What a value holds is never rendered again.
    /// Errors: A mistake at run time (adding a text to a number), a limit of [`environment`](crate::template::environment), or a
    /// text that was added elsewhere.
    pub fn render(&self, text: &Text, names: &TemplateNames) -> Result<String, TextError> {
        let Some(template) = &text.0.template else {
            return Ok(text.plain().unwrap_or_default().to_owned());
        };
        let template = match self.read.get(&text.0.source) {
            Some(known) if Arc::ptr_eq(&known.0, &text.0) => self.environment.get_template(template),
            _ => {
                let message = msg!("this text belongs to another program");
                return Err(failed(TextErrorKind::Foreign, message, None));
            }
        };
        let mut bounded = Bounded::new(MAX_OUTPUT);
        let seen = as_value(names, self.marks.as_ref(), InPlace::Nothing);
        template
            .and_then(|template| template.render_captured_to(seen, &mut bounded).map(drop))
            .map_err(|error| fallen(TextErrorKind::Rendering, fault(&error).within(&text.0.source)))?;
        Ok(bounded.text().into_owned())
    }
}

fn is_plain(source: &str) -> bool {
    !["{{", "{%", "{#"].iter().any(|opening| source.contains(opening))
}

/// As minijinja does for templates, so that a text means the same with and without a name in it.
fn without_last_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn refused(refused: YamlSyntaxError) -> TextError {
    let YamlSyntaxError { message, range, help, instead, unknown } = refused;
    let repair = instead.map(|instead| Box::new(SourceRepair::one(msg!("use `{instead}`"), range.clone(), instead)));
    TextError { kind: TextErrorKind::Refused, message, range: Some(range), help, unknown, repair }
}

/// `{% else if … %}`, which is what other languages write, in a text that cannot be read.
fn else_if(source: &str) -> Option<TextError> {
    let range = source.match_indices("else").find_map(|(at, word)| {
        let opens = source.get(..at)?.trim_end().trim_end_matches('-').ends_with("{%");
        let rest = source.get(at + word.len()..)?;
        let inner = rest.trim_start();
        let ends = inner.strip_prefix("if")?.starts_with(char::is_whitespace);
        (opens && ends && inner.len() < rest.len()).then(|| at..at + word.len() + (rest.len() - inner.len()) + 2)
    })?;
    let repair = Some(Box::new(SourceRepair::one("write `elif`", range.clone(), "elif").surely()));
    let (message, help) = (msg!("`else if` is not a tag"), Some(msg!("write `elif`")));
    Some(TextError { kind: TextErrorKind::Syntax, message, range: Some(range), help, unknown: None, repair })
}

fn fallen(kind: TextErrorKind, fault: RenderError) -> TextError {
    failed(kind, fault.message, fault.range)
}

fn failed(kind: TextErrorKind, message: Message, range: Option<Range<usize>>) -> TextError {
    TextError { kind, message, range, help: None, unknown: None, repair: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::names::session_names;
    use proptest::prelude::*;
    use serde_json::json;

    fn render(source: &str) -> Result<String, TextError> {
        let names = session_names(json!({
            "用户名": "小林", "年龄": 18, "nothing": null, "sneaky": "{{ 用户名 }}{% for x in y %}", "list": ["a"],
            "metadata": { "crisis_signal": false },
        }));
        let mut texts = AuthorTexts::new();
        let text = texts.add(source)?;
        texts.render(&text, &names)
    }

    #[test]
    fn texts_are_lenient_and_values_are_never_rendered_again() {
        let table = [
            ("你好，{{ 用户名 }}！", "你好，小林！"),
            ("[{{ unknown }}{{ unknown.a.b }}{{ nothing }}{{ nothing.a.b }}{{ metadata.x }}]", "[]"),
            ("{{ sneaky }}", "{{ 用户名 }}{% for x in y %}"),
            ("{% if 年龄 >= 18 %}成年{% endif %}", "成年"),
            ("{% for x in unknown %}x{% endfor %}{% for x in list %}{{ x }}{% endfor %}", "a"),
            ("{{ nothing | default('朋友') }}", "朋友"),
            ("no template } { here\n", "no template } { here"),
            ("{{ 用户名 }}\n", "小林"),
            ("{{ '{{' }}{# a comment #}{% raw %}{{ x }}{% endraw %}", "{{{{ x }}"),
            ("", ""),
        ];
        for (source, expected) in table {
            assert_eq!(render(source).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn mistakes_are_found_when_a_text_is_added_and_say_where() {
        let table = [
            ("好 {{ 用户名 ", TextErrorKind::Syntax, None),
            ("好 {% if x %}", TextErrorKind::Syntax, None),
            ("好 {% if x %}a{% else if y %}b{% endif %}", TextErrorKind::Syntax, Some("else if")),
            ("好 {{ x | uper }}", TextErrorKind::Refused, Some("uper")),
            ("好 {{ 用户名.upper() }}", TextErrorKind::Refused, None),
            ("好 {{ open('/etc/passwd') }}", TextErrorKind::Refused, Some("open")),
            ("好 {% include 'x' %}", TextErrorKind::Refused, Some("include 'x'")),
            ("好 {% import 'x' as y %}", TextErrorKind::Refused, Some("import 'x' as y")),
        ];
        for (source, kind, at) in table {
            let error = AuthorTexts::new().add(source).unwrap_err();
            assert_eq!(error.kind, kind, "{source}: {error}");
            if let Some(at) = at {
                assert_eq!(&source[error.range.unwrap()], at, "{source}");
            }
        }
        let error = AuthorTexts::new().add(&"x".repeat(MAX_TEXT_BYTES + 1)).unwrap_err();
        assert_eq!(error.kind, TextErrorKind::TooLong);
    }

    #[test]
    fn mistakes_at_run_time_are_errors_without_values() {
        for source in ["{{ 用户名 + 1 }}", "{{ 年龄 // 0 }}", "{{ list | round }}"] {
            let error = render(source).unwrap_err();
            assert_eq!(error.kind, TextErrorKind::Rendering, "{source}");
            assert!(
                !error.message.to_string().contains("小林") && !error.message.to_string().contains("18"),
                "{error}"
            );
            assert!(error.range.is_some(), "{source}");
        }
    }

    #[test]
    fn a_text_that_runs_too_long_or_too_far_is_stopped() {
        let loops = "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}";
        assert!(render(loops).unwrap_err().message.to_string().contains("steps"));
        let wide = format!("{{% for a in range(10000) %}}{}{{% endfor %}}", "x".repeat(1_000));
        assert!(render(&wide).unwrap_err().message.to_string().contains("longer than"));
        let deep = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
        assert!(render(deep).unwrap_err().message.to_string().contains("nested more than"));
    }

    #[test]
    fn texts_nested_as_deep_as_the_guard_allows_do_not_overflow() {
        let deep = format!("{}x{}", "{% if x %}".repeat(140), "{% endif %}".repeat(140));
        let shapes = [
            deep,
            format!("{{{{ {}1{} }}}}", "(".repeat(70), ")".repeat(70)),
            format!("{{{{ {}1 }}}}", "-".repeat(190)),
            format!("{{{{ {}x }}}}", "not ".repeat(190)),
            format!("{{{{ 1{} }}}}", " + 1".repeat(190)),
            format!("{{{{ x{} }}}}", "|upper".repeat(95)),
            format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(100)),
        ];
        for shape in shapes {
            render(&shape).unwrap();
        }
    }

    #[test]
    fn the_same_text_is_read_once() {
        let mut texts = AuthorTexts::new();
        let (one, two) = (texts.add("{{ x }}").unwrap(), texts.add("{{ x }}").unwrap());
        assert!(Arc::ptr_eq(&one.0, &two.0));
        let error = AuthorTexts::new().render(&one, &TemplateNames::default()).unwrap_err();
        assert_eq!(error.kind, TextErrorKind::Foreign);
    }

    proptest! {
        #[test]
        fn adding_and_rendering_never_panics(source in r"(\PC|\{\{|\}\}|\{%|%\}| |-|if|for|x|in|\||\[|:|\n){0,40}") {
            let _ = render(&source);
        }
    }
}
