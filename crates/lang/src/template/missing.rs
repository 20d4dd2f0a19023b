//! Records what is missing in a prompt that is displayed instead of sent: unknown names, which are marked in the text, and variables
//! without a value.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};

use crate::template::features::FUNCTIONS;
use crate::template::names::TemplateNames;

/// The delimiters around an unknown name in a text.
pub const MARK_DELIMITERS: (&str, &str) = ("⟦", "?⟧");

/// The maximum depth in lists and mappings at which marks are searched for.
const MAX_MARK_DEPTH: usize = 8;

/// The missing names of renderings.
#[derive(Debug, Default)]
pub struct Marks(Mutex<MissingNames>);

#[derive(Debug, Default)]
struct MissingNames {
    unknown: BTreeSet<String>,
    empty: BTreeSet<String>,
    /// The key of the last rendered template in the environment, and its names.
    rendered: Option<(String, TemplateNames)>,
}

impl Marks {
    /// The key of the last rendered template in the environment.
    pub(crate) fn template(&self) -> Option<String> {
        self.lock().rendered.as_ref().map(|(key, _)| key.clone())
    }

    pub fn names(&self) -> TemplateNames {
        self.lock().rendered.as_ref().map(|(_, names)| names.clone()).unwrap_or_default()
    }

    pub(crate) fn set_rendered(&self, key: &str, names: &TemplateNames) {
        self.lock().rendered = Some((key.to_owned(), names.clone()));
    }

    /// The unknown names that were looked up.
    pub fn unknown(&self) -> BTreeSet<String> {
        self.lock().unknown.clone()
    }

    /// The known variables without a value that were looked up.
    pub fn empty(&self) -> BTreeSet<String> {
        self.lock().empty.clone()
    }

    pub fn clear(&self) {
        *self.lock() = MissingNames::default();
    }

    fn lock(&self) -> MutexGuard<'_, MissingNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The substitute for an unknown name in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Substitute {
    Mark,
    /// The same output as without marks.
    Nothing,
}

/// The names as a value for rendering. With `marks`, missing names are recorded there.
pub(crate) fn as_value(names: &TemplateNames, marks: Option<&Arc<Marks>>, substitute: Substitute) -> Value {
    match marks {
        None => Value::from_object(names.clone()),
        Some(marks) => Value::from_object(NameRecorder { names: names.clone(), marks: Arc::clone(marks), substitute }),
    }
}

/// Whether a value is the substitute for an unknown name.
pub(crate) fn is_unknown(value: &Value) -> bool {
    value.downcast_object_ref::<Unknown>().is_some()
}

/// The mark, if a value is the substitute for an unknown name.
pub(crate) fn marked(value: &Value) -> Option<String> {
    value.downcast_object_ref::<Unknown>().map(ToString::to_string)
}

/// The value with the marks of unknown names inside it as texts; `None` if it contains no unknown names.
pub(crate) fn with_marks(value: &Value) -> Option<Value> {
    if !contains_unknown(value, MAX_MARK_DEPTH) {
        return None;
    }
    Some(match value.kind() {
        _ if is_unknown(value) => Value::from(marked(value)?),
        ValueKind::Seq => Value::from_iter(value.try_iter().ok()?.map(|item| with_marks(&item).unwrap_or(item))),
        _ => {
            let entry = |key: Value| {
                let item = value.get_item(&key).unwrap_or_default();
                (key, with_marks(&item).unwrap_or(item))
            };
            Value::from(value.try_iter().ok()?.map(entry).collect::<IndexMap<Value, Value>>())
        }
    })
}

fn contains_unknown(value: &Value, depth: usize) -> bool {
    let items = || value.try_iter().into_iter().flatten();
    match value.kind() {
        _ if is_unknown(value) => true,
        _ if depth == 0 => false,
        ValueKind::Seq => items().any(|item| contains_unknown(&item, depth - 1)),
        ValueKind::Map => items().any(|key| value.get_item(&key).is_ok_and(|item| contains_unknown(&item, depth - 1))),
        _ => false,
    }
}

#[derive(Debug)]
struct NameRecorder {
    names: TemplateNames,
    marks: Arc<Marks>,
    substitute: Substitute,
}

impl NameRecorder {
    fn look_up(&self, name: &str) -> Option<Value> {
        match self.names.get(name) {
            None if FUNCTIONS.contains(&name) => None,
            None => {
                self.marks.lock().unknown.insert(name.to_owned());
                (self.substitute == Substitute::Mark).then(|| Value::from_object(Unknown(name.to_owned())))
            }
            Some(value) => {
                if value.is_none() && !self.names.is_set(name) {
                    self.marks.lock().empty.insert(name.to_owned());
                }
                Some(value)
            }
        }
    }
}

impl Object for NameRecorder {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.look_up(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.look_up(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

/// An unknown name and its attributes: false, without items, and written as its mark.
#[derive(Debug)]
struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", MARK_DELIMITERS.0, self.0, MARK_DELIMITERS.1)
    }
}

impl Object for Unknown {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(Value::from_object(Self(format!("{}.{key}", self.0))))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_ref(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::layers::TemplateFile;
    use crate::template::names::session_names;
    use crate::template::templates::Templates;
    use crate::template::text::AuthorTexts;
    use serde_json::json;

    const NONCE: &str = "00112233445566778899aabbccddeeff";

    fn rendered(source: &str) -> (String, Marks) {
        let file = TemplateFile { place: "default".into(), name: "t_v1.md".into(), text: format!("{source}.") };
        let part = TemplateFile { place: "default".into(), name: "part.md".into(), text: "[{{ 用户命 }}]".into() };
        let marks = Arc::new(Marks::default());
        let templates = Templates::new(&[file, part], NONCE).unwrap().with_marks(Arc::clone(&marks));
        let names = session_names(json!({ "用户名": "小林", "nothing": null, "object": { "a": 1 } }));
        let template = templates.get("t", 1).unwrap();
        let text = template.render(&names).unwrap_or_else(|error| panic!("{source}: {error}")).remove(0).content;
        drop(templates);
        (text.strip_suffix('.').unwrap().to_owned(), Arc::into_inner(marks).unwrap())
    }

    #[test]
    fn an_unknown_name_is_marked_in_the_text() {
        for (source, text) in [
            ("您好{{ 用户命 }}！", "您好⟦用户命?⟧！"),
            ("{{ 用户名 }}{{ nothing }}{{ range(2) }}", "小林[0,1]"),
            ("{{ x.a }} {{ x['b'] }}", "⟦x.a?⟧ ⟦x.b?⟧"),
            ("{{ x ~ '!' }}{{ x | upper }}", "⟦x?⟧⟦x?⟧"),
            ("{% if x %}a{% else %}b{% endif %}{% for y in x %}c{% endfor %}", "b"),
            ("{{ x | default('d') }}{{ x is defined }}{{ x is undefined }}{{ x or 'e' }}", "dfalsetruee"),
            ("{% if x is defined and x %}a{% endif %}{{ x | length }}", "⟦x?⟧"),
            ("{% include 'part.md' %}", "[⟦用户命?⟧]"),
            ("{% macro hi() %}{{ x }}{% endmacro %}{{ hi() }}", "⟦x?⟧"),
            ("{% set x = 1 %}{{ x }}", "1"),
            ("{{ [x, 1] }}{{ {'a': [x.y]} }}{{ [1, [2]] }}", "[\"⟦x?⟧\",1]{\"a\":[\"⟦x.y?⟧\"]}[1,[2]]"),
            ("{{ x == 'a' }}{{ 'a' in x }}", "false⟦x?⟧"),
        ] {
            assert_eq!(rendered(source).0, text, "{source}");
        }
    }

    #[test]
    fn unknown_names_and_variables_without_a_value_are_distinguished() {
        let (_, marks) = rendered("{{ y }}{{ nothing }}{{ nothing | default('z') }}{{ 用户名 }}{{ range(1) }}");
        assert_eq!(marks.unknown().into_iter().collect::<Vec<_>>(), ["y"]);
        assert_eq!(marks.empty().into_iter().collect::<Vec<_>>(), ["nothing"]);
        marks.clear();
        assert!(marks.unknown().is_empty() && marks.empty().is_empty());
    }

    #[test]
    fn the_missing_names_of_an_author_text_are_recorded_but_not_marked() {
        let marks = Arc::new(Marks::default());
        let mut texts = AuthorTexts::new();
        let text = texts.add("您好{{ x }}{{ x.y }}{{ nothing }}").unwrap();
        texts.record_in(Arc::clone(&marks));
        assert_eq!(texts.render(&text, &session_names(json!({ "nothing": null }))).unwrap(), "您好");
        assert_eq!((marks.unknown().len(), marks.empty().len()), (1, 1));
    }

    #[test]
    fn templates_with_marks_require_no_name() {
        let file = TemplateFile { place: "default".into(), name: "t_v1.md".into(), text: "{{ x }}".into() };
        let templates = Templates::new(&[file], NONCE).unwrap();
        assert!(templates.get("t", 1).unwrap().mentioned().all(|(_, needed)| needed));
        let templates = templates.with_marks(Arc::default());
        assert!(templates.get("t", 1).unwrap().mentioned().all(|(_, needed)| !needed));
    }
}
