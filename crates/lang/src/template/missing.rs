//! What a prompt lacks when it is looked at instead of sent: names that nobody knows, marked at their place, and variables
//! that have no value.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};

use crate::template::features::FUNCTIONS;
use crate::template::names::TemplateNames;

/// What stands before and behind a name that is unknown, at its place in a text.
pub const AROUND: (&str, &str) = ("⟦", "?⟧");

/// How deep in lists and mappings marks are looked for.
const MOST_NESTED: usize = 8;

/// What renderings lacked so far.
#[derive(Debug, Default)]
pub struct Marks(Mutex<Lacking>);

#[derive(Debug, Default)]
struct Lacking {
    unknown: BTreeSet<String>,
    empty: BTreeSet<String>,
    /// What the environment calls the template that was rendered last, and its names.
    rendered: Option<(String, TemplateNames)>,
}

impl Marks {
    /// What the environment calls the template that was rendered last.
    pub(crate) fn template(&self) -> Option<String> {
        self.lacking().rendered.as_ref().map(|(key, _)| key.clone())
    }

    pub fn names(&self) -> TemplateNames {
        self.lacking().rendered.as_ref().map(|(_, names)| names.clone()).unwrap_or_default()
    }

    pub(crate) fn renders(&self, key: &str, names: &TemplateNames) {
        self.lacking().rendered = Some((key.to_owned(), names.clone()));
    }

    /// The names that were looked up and that nobody knows.
    pub fn unknown(&self) -> BTreeSet<String> {
        self.lacking().unknown.clone()
    }

    /// The variables that were looked up, are known, and have no value.
    pub fn empty(&self) -> BTreeSet<String> {
        self.lacking().empty.clone()
    }

    /// Forgets what was lacking so far.
    pub fn clear(&self) {
        *self.lacking() = Lacking::default();
    }

    fn lacking(&self) -> MutexGuard<'_, Lacking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a text shows in the place of a name that is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPlace {
    Marked,
    /// What it shows without marks.
    Nothing,
}

/// Names as a rendering sees them: with `marks`, those that it lacks are noted there.
pub(crate) fn as_value(names: &TemplateNames, marks: Option<&Arc<Marks>>, in_place: InPlace) -> Value {
    match marks {
        None => Value::from_object(names.clone()),
        Some(marks) => Value::from_object(Noting { names: names.clone(), marks: Arc::clone(marks), in_place }),
    }
}

/// Whether a value only stands in the place of a name that is unknown.
pub(crate) fn is_unknown(value: &Value) -> bool {
    value.downcast_object_ref::<Unknown>().is_some()
}

/// The mark, where a value only stands in the place of a name that is unknown.
pub(crate) fn marked(value: &Value) -> Option<String> {
    value.downcast_object_ref::<Unknown>().map(ToString::to_string)
}

/// The same value with the marks of the names that are unknown inside of it as texts; none where there is no such name.
pub(crate) fn with_marks(value: &Value) -> Option<Value> {
    if !holds_unknown(value, MOST_NESTED) {
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

fn holds_unknown(value: &Value, depth: usize) -> bool {
    let items = || value.try_iter().into_iter().flatten();
    match value.kind() {
        _ if is_unknown(value) => true,
        _ if depth == 0 => false,
        ValueKind::Seq => items().any(|item| holds_unknown(&item, depth - 1)),
        ValueKind::Map => items().any(|key| value.get_item(&key).is_ok_and(|item| holds_unknown(&item, depth - 1))),
        _ => false,
    }
}

#[derive(Debug)]
struct Noting {
    names: TemplateNames,
    marks: Arc<Marks>,
    in_place: InPlace,
}

impl Noting {
    fn look_up(&self, name: &str) -> Option<Value> {
        match self.names.get(name) {
            None if FUNCTIONS.contains(&name) => None,
            None => {
                self.marks.lacking().unknown.insert(name.to_owned());
                (self.in_place == InPlace::Marked).then(|| Value::from_object(Unknown(name.to_owned())))
            }
            Some(value) => {
                if value.is_none() && !self.names.is_given(name) {
                    self.marks.lacking().empty.insert(name.to_owned());
                }
                Some(value)
            }
        }
    }
}

impl Object for Noting {
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

/// A name that nobody knows, and what is asked of it: false, without elements, and written as its mark.
#[derive(Debug)]
struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", AROUND.0, self.0, AROUND.1)
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

    const MARK: &str = "00112233445566778899aabbccddeeff";

    fn rendered(source: &str) -> (String, Marks) {
        let file = TemplateFile { place: "default".into(), name: "t_v1.md".into(), text: format!("{source}.") };
        let part = TemplateFile { place: "default".into(), name: "part.md".into(), text: "[{{ 用户命 }}]".into() };
        let marks = Arc::new(Marks::default());
        let templates = Templates::new(&[file, part], MARK).unwrap().marking(Arc::clone(&marks));
        let names = session_names(json!({ "用户名": "小林", "nothing": null, "object": { "a": 1 } }));
        let template = templates.get("t", 1).unwrap();
        let text = template.render(&names).unwrap_or_else(|error| panic!("{source}: {error}")).remove(0).content;
        drop(templates);
        (text.strip_suffix('.').unwrap().to_owned(), Arc::into_inner(marks).unwrap())
    }

    #[test]
    fn a_name_that_nobody_knows_is_marked_at_its_place() {
        for (source, text) in [
            ("您好{{ 用户命 }}！", "您好⟦用户命?⟧！"),
            ("{{ 用户名 }}{{ nothing }}{{ range(2) }}", "小林[0,1]"),
            ("{{ x.a }} {{ x['b'] }}", "⟦x.a?⟧ ⟦x.b?⟧"),
            ("{{ x ~ '!' }}{{ x | upper }}", "⟦x?⟧!⟦X?⟧"),
            ("{% if x %}a{% else %}b{% endif %}{% for y in x %}c{% endfor %}", "b"),
            ("{{ x | default('d') }}{{ x is defined }}{{ x is undefined }}{{ x or 'e' }}", "dfalsetruee"),
            ("{% if x is defined and x %}a{% endif %}{{ x | length }}", "0"),
            ("{% include 'part.md' %}", "[⟦用户命?⟧]"),
            ("{% macro hi() %}{{ x }}{% endmacro %}{{ hi() }}", "⟦x?⟧"),
            ("{% set x = 1 %}{{ x }}", "1"),
            ("{{ [x, 1] }}{{ {'a': [x.y]} }}{{ [1, [2]] }}", "[\"⟦x?⟧\",1]{\"a\":[\"⟦x.y?⟧\"]}[1,[2]]"),
            ("{{ x == 'a' }}{{ 'a' in x }}", "falsefalse"),
        ] {
            assert_eq!(rendered(source).0, text, "{source}");
        }
    }

    #[test]
    fn unknown_names_and_variables_without_a_value_are_told_apart() {
        let (_, marks) = rendered("{{ y }}{{ nothing }}{{ nothing | default('z') }}{{ 用户名 }}{{ range(1) }}");
        assert_eq!(marks.unknown().into_iter().collect::<Vec<_>>(), ["y"]);
        assert_eq!(marks.empty().into_iter().collect::<Vec<_>>(), ["nothing"]);
        marks.clear();
        assert!(marks.unknown().is_empty() && marks.empty().is_empty());
    }

    #[test]
    fn a_text_of_the_author_stays_what_it_is_and_what_it_lacks_is_noted() {
        let marks = Arc::new(Marks::default());
        let mut texts = AuthorTexts::new();
        let text = texts.add("您好{{ x }}{{ x.y }}{{ nothing }}").unwrap();
        texts.note_in(Arc::clone(&marks));
        assert_eq!(texts.render(&text, &session_names(json!({ "nothing": null }))).unwrap(), "您好");
        assert_eq!((marks.unknown().len(), marks.empty().len()), (1, 1));
    }

    #[test]
    fn templates_that_are_looked_at_ask_for_no_name() {
        let file = TemplateFile { place: "default".into(), name: "t_v1.md".into(), text: "{{ x }}".into() };
        let templates = Templates::new(&[file], MARK).unwrap();
        assert!(templates.get("t", 1).unwrap().mentioned().all(|(_, needed)| needed));
        let templates = templates.marking(Arc::default());
        assert!(templates.get("t", 1).unwrap().mentioned().all(|(_, needed)| !needed));
    }
}
