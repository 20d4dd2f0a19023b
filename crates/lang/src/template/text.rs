//! Author texts (content, tone, exit, strategy …): lenient templates. Unknown names, nulls and their attributes
//! are written as nothing (docs/language.md "Texts").

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};

use crate::expr::failure::ExpressionDialect;
use crate::expr::tree::ExprNode;
use crate::template::environment::{Bounded, environment};
use crate::template::error::{RenderError, render_error};
use crate::template::features::{FeatureKind, MAX_OUTPUT};
use crate::template::limits::{RejectedSyntax, check_limits};
use crate::template::missing::{Marks, Substitute, as_value};
use crate::template::names::TemplateNames;
use crate::template::operations::Operations;
use crate::template::rewrite::{find_expressions, rejected_expressions};
use crate::template::text_mistakes::explain_mistake;
use crate::template::unknown::SourceRepair;
use crate::template::uses::{NameUse, TargetKind, find};

/// The maximum length of an author text, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextErrorKind {
    /// The text is not a valid template.
    Syntax,
    /// The text uses a feature that texts may not use, or an unknown filter, test or function.
    Rejected,
    TooLong,
    Rendering,
    /// The text was added to other [`AuthorTexts`].
    Foreign,
}

/// An error in an author text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct TextError {
    pub kind: TextErrorKind,
    pub message: Message,
    /// The byte range in the text.
    pub range: Option<Range<usize>>,
    pub help: Option<Message>,
    /// Whether an unknown feature is a filter, a test or a function; `None` for other errors.
    pub unknown: Option<FeatureKind>,
    /// The edit of the text that corrects it.
    pub repair: Option<Box<SourceRepair>>,
}

/// A parsed author text. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Text(Arc<ParsedText>);

#[derive(Debug)]
struct ParsedText {
    source: String,
    names: Vec<NameUse>,
    /// The template's name in the environment; `None` for a plain text, which is not passed to minijinja.
    template: Option<String>,
}

impl Text {
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The names that the text does not set itself, with their ranges in [`source`](Self::source).
    pub fn names(&self) -> &[NameUse] {
        &self.0.names
    }

    /// The operations in the text, outermost only: the tree of each, whose ranges are relative to it, and its range in
    /// [`source`](Self::source).
    pub fn operations(&self) -> Vec<(ExprNode, Range<usize>)> {
        let found = if self.is_plain() { Vec::new() } else { find_expressions(&self.0.source) };
        found.into_iter().map(|expression| (expression.root, expression.range)).collect()
    }

    /// Whether the text is the same for all names.
    pub fn is_plain(&self) -> bool {
        self.0.template.is_none()
    }

    /// The rendered text, if it is the same for all names.
    pub fn plain(&self) -> Option<&str> {
        self.is_plain().then(|| without_last_newline(&self.0.source))
    }
}

/// All author texts of a program, in one environment.
#[derive(Debug)]
pub struct AuthorTexts {
    environment: Environment<'static>,
    texts: HashMap<String, Text>,
    /// The templates by name. They are compiled on first rendering, because a check renders none.
    sources: Arc<Mutex<HashMap<String, Text>>>,
    operations: Arc<Operations>,
    /// Records the missing names of texts in prompts that are displayed and not sent.
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
        let operations = Operations::install(&mut environment, ExpressionDialect::Text);
        let (known, rewriting) = (Arc::clone(&sources), Arc::clone(&operations));
        environment.set_loader(move |name| {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(known.get(name).map(|text| rewriting.rewrite(name, &text.0.source)))
        });
        Self { environment, texts: HashMap::new(), sources, operations, marks: None }
    }

    /// Records unknown names and variables without a value in `marks` from now on. The rendered texts do not change.
    pub fn record_in(&mut self, marks: Arc<Marks>) {
        self.marks = Some(marks);
    }

    /// Parses a text. The same source returns the same [`Text`].
    /// Errors: A syntax error; an unknown filter, test or function; `include`, `extends`, `import` and `block`, which are only for
    /// prompt templates; a text longer than [`MAX_TEXT_BYTES`].
    pub fn add(&mut self, source: &str) -> Result<Text, TextError> {
        if let Some(text) = self.texts.get(source) {
            return Ok(text.clone());
        }
        if source.len() > MAX_TEXT_BYTES {
            let message = msg!("this text is longer than {MAX_TEXT_BYTES} bytes");
            return Err(failed(TextErrorKind::TooLong, message, None));
        }
        let (names, template) = if is_plain(source) {
            (Vec::new(), None)
        } else {
            (self.read_template(source)?, Some(format!("text {}", self.texts.len())))
        };
        let text = Text(Arc::new(ParsedText { source: source.to_owned(), names, template }));
        if let Some(name) = &text.0.template {
            self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), text.clone());
        }
        self.texts.insert(source.to_owned(), text.clone());
        Ok(text)
    }

    fn read_template(&self, source: &str) -> Result<Vec<NameUse>, TextError> {
        check_limits(source, false).map_err(rejected)?;
        let tree = parse(source, "text", SyntaxConfig::default()).map_err(|error| {
            let error = render_error(&error).within(source);
            explain_mistake(source, error.range.as_ref().map_or(source.len(), |range| range.start))
                .unwrap_or_else(|| render_failed(TextErrorKind::Syntax, error))
        })?;
        let uses = find(&tree, &self.environment);
        if let Some(first) = uses.rejected.into_iter().chain(rejected_expressions(source)).next() {
            return Err(rejected(first));
        }
        if let Some(target) = uses.targets.first() {
            let what = match target.kind {
                TargetKind::Extends => "extends",
                TargetKind::Include | TargetKind::IncludeIfPresent => "include",
                TargetKind::Import => "import",
            };
            return Err(rejected(RejectedSyntax {
                message: msg!("`{what}` can only be used in prompt templates; an author text is self-contained"),
                range: target.range.clone(),
                help: None,
                instead: None,
                unknown: None,
            }));
        }
        Ok(uses.names)
    }

    /// Renders the text with these names. Values are never rendered themselves. An operation that is null or fails is rendered as nothing,
    /// and `names` gets a warning.
    /// Errors: An exceeded limit of [`environment`](crate::template::environment), or a text of another [`AuthorTexts`].
    pub fn render(&self, text: &Text, names: &TemplateNames) -> Result<String, TextError> {
        let Some(template) = &text.0.template else {
            return Ok(text.plain().unwrap_or_default().to_owned());
        };
        let template = match self.texts.get(&text.0.source) {
            Some(known) if Arc::ptr_eq(&known.0, &text.0) => self.environment.get_template(template),
            _ => {
                let message = msg!("this text belongs to another program");
                return Err(failed(TextErrorKind::Foreign, message, None));
            }
        };
        let mut bounded = Bounded::new(MAX_OUTPUT);
        let context = as_value(names, self.marks.as_ref(), Substitute::Nothing);
        let rendered = template.and_then(|template| template.render_captured_to(context, &mut bounded));
        let captured = rendered.map_err(|error| self.rendering_error(text, &error))?;
        Operations::warnings(captured.state()).iter().for_each(|warning| names.warn(warning.message.clone()));
        drop(captured);
        Ok(bounded.text().into_owned())
    }
}

impl AuthorTexts {
    fn rendering_error(&self, text: &Text, error: &minijinja::Error) -> TextError {
        let mut error = render_error(error);
        let name = text.0.template.as_deref().unwrap_or_default();
        let compiled = error.range.take().map(|range| self.operations.original(name, &range));
        error.range = error.exact.take().or(compiled);
        render_failed(TextErrorKind::Rendering, error.within(&text.0.source))
    }
}

fn is_plain(source: &str) -> bool {
    !["{{", "{%", "{#"].iter().any(|opening| source.contains(opening))
}

/// Removes the last newline as minijinja does for templates, so that texts with and without names behave the same.
fn without_last_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn rejected(rejected: RejectedSyntax) -> TextError {
    let RejectedSyntax { message, range, help, instead, unknown } = rejected;
    let repair = instead.map(|instead| Box::new(SourceRepair::one(msg!("use `{instead}`"), range.clone(), instead)));
    TextError { kind: TextErrorKind::Rejected, message, range: Some(range), help, unknown, repair }
}

fn render_failed(kind: TextErrorKind, error: RenderError) -> TextError {
    failed(kind, error.message, error.range)
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
            ("{{ unknown or '朋友' }}{{ nothing or 0 }}{{ 用户名 or 'x' }}", "朋友0小林"),
            ("{% for x in nothing %}x{% else %}-{% endfor %}{% set y = 年龄 + 1 %}{{ y }}", "-19"),
            ("{% macro m(a, b=年龄 - 8) %}{{ a ~ b }}{% endmacro %}{{ m('x') }}{{ m(年龄 * 2, b=1) }}", "x10361"),
            (
                "{% macro m(t) %}{{ 用户名 ~ t }}{{ caller() ~ '!' }}{% endmacro %}{% call m('们' ~ '') %}a{% endcall %}",
                "小林们a!",
            ),
            ("{% for x in list if x == 'a' %}{{ loop.index + 1 }}{{ loop.last and 'z' }}{% endfor %}", "2z"),
            ("{% set ns = namespace(n=1) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}", "2"),
        ];
        for (source, expected) in table {
            assert_eq!(render(source).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn errors_are_found_when_a_text_is_added() {
        let table = [
            ("好 {{ 用户名 ", TextErrorKind::Syntax, None),
            ("好 {% if x %}", TextErrorKind::Syntax, None),
            ("好 {% if x %}a{% else if y %}b{% endif %}", TextErrorKind::Syntax, Some("else if")),
            ("好 {{ x | uper }}", TextErrorKind::Rejected, Some("uper")),
            ("好 {{ 用户名.upper() }}", TextErrorKind::Rejected, None),
            ("好 {{ open('/etc/passwd') }}", TextErrorKind::Rejected, Some("open")),
            ("好 {% include 'x' %}", TextErrorKind::Rejected, Some("include 'x'")),
            ("好 {% import 'x' as y %}", TextErrorKind::Rejected, Some("import 'x' as y")),
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
    fn a_text_that_exceeds_a_limit_is_stopped() {
        let loops = "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}";
        assert!(render(loops).unwrap_err().message.to_string().contains("steps"));
        let wide = format!("{{% for a in range(10000) %}}{}{{% endfor %}}", "x".repeat(1_000));
        assert!(render(&wide).unwrap_err().message.to_string().contains("longer than"));
        let deep = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
        assert!(render(deep).unwrap_err().message.to_string().contains("nested more than"));
    }

    #[test]
    fn texts_with_the_maximum_nesting_do_not_overflow() {
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
    fn the_same_text_is_parsed_once() {
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
