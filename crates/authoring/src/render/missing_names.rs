//! Finds where a template uses unknown names, or variables without a value.

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

/// A place where a template uses a name without a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingName {
    pub name: String,
    /// The displayed path of the file; `None` if a text of the script uses the name.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Whether the rendering looked up the name. If not, an `{% if %}` prevented its use.
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

    pub fn describe(&self) -> Message {
        let Self { name, file, line, column, reached } = self;
        match file {
            Some(file) if *reached => msg!("`{name}` at {file}:{line}:{column}"),
            Some(file) => msg!("`{name}` at {file}:{line}:{column} (not reached this time)"),
            None => msg!("`{name}` in a text of the script"),
        }
    }
}

/// Adds the missing names of the last rendered template to `prompt`.
pub fn note(prompt: &mut Prompt, templates: &Templates, marks: &Marks) {
    let Some(root) = templates.last_rendered(marks) else { return };
    let names = marks.names();
    let (reached_unknown, reached_empty) = (marks.unknown(), marks.empty());
    let (mut unknown, mut empty) = (BTreeSet::new(), BTreeSet::new());
    let mut located: BTreeSet<String> = BTreeSet::new();
    visit(templates, root, &mut HashSet::new(), &mut |member| {
        let Some(loaded) = templates.files().get(member.template) else { return };
        for (number, used) in member.names() {
            let name = used.name.as_str();
            // The ranges of the member are relative to the template without its front matter.
            let Some(name_use) = loaded.names().get(number).filter(|_| !FUNCTIONS.contains(&name)) else { continue };
            located.insert(name.to_owned());
            let (into, reached) = match names.get(name) {
                None if used.optional => continue,
                None => (&mut unknown, reached_unknown.contains(name)),
                Some(value) if value.is_none() && !names.is_set(name) => (&mut empty, reached_empty.contains(name)),
                Some(_) => continue,
            };
            let (line, column) = loaded.source().line_column(name_use.range.start);
            let (name, file) = (name.to_owned(), Some(loaded.source().name().to_owned()));
            into.insert(MissingName { name, file, line, column, reached });
        }
    });
    // Names that were looked up by a text of the script, or by a template with a computed name.
    let elsewhere = |names: &BTreeSet<String>, into: &mut BTreeSet<MissingName>| {
        for name in names.difference(&located) {
            into.insert(MissingName { name: name.clone(), file: None, line: 0, column: 0, reached: true });
        }
    };
    elsewhere(&reached_unknown, &mut unknown);
    elsewhere(&reached_empty, &mut empty);
    prompt.unknown = by_place(unknown);
    prompt.empty = by_place(empty);
}

/// Adds the unknown names that were looked up before an error: one of them may be its cause.
pub(crate) fn with_unknown_names(reason: Message, marks: &Marks) -> Message {
    let english = reason.to_string();
    let unknown: Vec<String> =
        marks.unknown().into_iter().filter(|name| !english.contains(&format!("`{name}`"))).collect();
    match unknown.as_slice() {
        [] => reason,
        [name] => msg!("{reason}; `{name}` is not known here"),
        names => {
            let names = listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
            msg!("{reason}; these names are not known here: {names}")
        }
    }
}

fn by_place(names: BTreeSet<MissingName>) -> Vec<MissingName> {
    let mut names: Vec<MissingName> = names.into_iter().collect();
    names.sort_by(|a, b| (&a.file, a.line, a.column, &a.name).cmp(&(&b.file, b.line, b.column, &b.name)));
    names
}
