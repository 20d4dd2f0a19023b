//! Where a template uses what it does not get: names that nobody knows, and variables without a value.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::render::find_action::listed;
use crate::render::prompt::Prompt;
use bcc_lang::template::features::FUNCTIONS;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::templates::Templates;

/// A place where a template uses a name that it does not get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingName {
    pub name: String,
    /// The file, as people are shown it; none where an author's text uses the name.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Whether this rendering came to look the name up. Where it did not, an `{% if %}` keeps it from being used.
    pub reached: bool,
}

impl MissingName {
    pub fn as_value(&self) -> Value {
        let Self { name, file, line, column, reached } = self;
        let place = file.as_ref().map(|_| (line, column));
        json!({
            "name": name, "file": file, "line": place.map(|place| place.0), "column": place.map(|place| place.1),
            "reached": reached,
        })
    }

    pub fn told(&self) -> String {
        let Self { name, file, line, column, reached } = self;
        match file {
            Some(file) if *reached => format!("`{name}` at {file}:{line}:{column}"),
            Some(file) => format!("`{name}` at {file}:{line}:{column} (not reached this time)"),
            None => format!("`{name}` in a text of the script"),
        }
    }
}

/// Notes in `prompt` what its template, which was rendered last, lacks.
pub fn note(prompt: &mut Prompt, templates: &Templates, marks: &Marks) {
    let Some(root) = templates.rendered_last(marks) else { return };
    let names = marks.names();
    let (reached_unknown, reached_empty) = (marks.unknown(), marks.empty());
    let (mut unknown, mut empty) = (BTreeSet::new(), BTreeSet::new());
    let mut placed: BTreeSet<String> = BTreeSet::new();
    visit(templates, root, &mut HashSet::new(), &mut |member| {
        let Some(loaded) = templates.files().get(member.template) else { return };
        for (number, used) in member.names() {
            let name = used.name.as_str();
            // The member's ranges are those of the template without its front matter.
            let Some(whole) = loaded.names().get(number).filter(|_| !FUNCTIONS.contains(&name)) else { continue };
            placed.insert(name.to_owned());
            let (into, reached) = match names.get(name) {
                None if used.optional => continue,
                None => (&mut unknown, reached_unknown.contains(name)),
                Some(value) if value.is_none() && !names.is_given(name) => (&mut empty, reached_empty.contains(name)),
                Some(_) => continue,
            };
            let (line, column) = loaded.source().line_column(whole.range.start);
            let (name, file) = (name.to_owned(), Some(loaded.source().name().to_owned()));
            into.insert(MissingName { name, file, line, column, reached });
        }
    });
    // What a text of the author looked up, or a template whose name is computed.
    let elsewhere = |names: &BTreeSet<String>, into: &mut BTreeSet<MissingName>| {
        for name in names.difference(&placed) {
            into.insert(MissingName { name: name.clone(), file: None, line: 0, column: 0, reached: true });
        }
    };
    elsewhere(&reached_unknown, &mut unknown);
    elsewhere(&reached_empty, &mut empty);
    prompt.unknown = by_place(unknown);
    prompt.empty = by_place(empty);
}

/// Why nothing could be rendered, with the names that were looked up until then and that nobody knows: one of them may be what a
/// filter could not take.
pub fn told(why: Message, marks: &Marks) -> Message {
    let english = why.to_string();
    let unknown: Vec<String> =
        marks.unknown().into_iter().filter(|name| !english.contains(&format!("`{name}`"))).collect();
    match unknown.as_slice() {
        [] => why,
        [name] => msg!("{why}; `{name}` is not known here"),
        names => {
            let names = listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
            msg!("{why}; these names are not known here: {names}")
        }
    }
}

fn by_place(lacks: BTreeSet<MissingName>) -> Vec<MissingName> {
    let mut lacks: Vec<MissingName> = lacks.into_iter().collect();
    lacks.sort_by(|a, b| (&a.file, a.line, a.column, &a.name).cmp(&(&b.file, b.line, b.column, &b.name)));
    lacks
}
