//! `for_each`: a topic runs once for each element of a list (docs/actions/, "Repetition").

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use crate::program::event::Event;
use crate::program::limits::ForEach;
use crate::program::location::EventLocation;
use crate::program::program::{Phase, Program, Topic};
use crate::run::draft::CommitDraft;
use crate::run::frames::element_component;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::{Scope, Stored};

/// The most elements that a topic runs for (docs/actions/).
const MOST_ELEMENTS: usize = 1000;

/// The longest element, in characters, that paths are named by.
const LONGEST_NAME: usize = 40;

impl Session {
    /// Takes the next element of the list and enters the topic for it; goes on behind the topic when there is none. The list
    /// is looked at anew each time, so that what was added since is found.
    pub(crate) fn next_element(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        each: &ForEach,
        above: &str,
        place: EventLocation,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let list =
            each.list.eval(&self.names_for(program, (Some(phase), Some(topic)))).map_err(|error| SessionFailure {
                code: "expression-failed",
                message: msg!(
                    "the list of `{}`, `{}`, cannot be evaluated: {}",
                    topic.id,
                    each.list.source(),
                    error.message
                ),
                help: error.help,
            })?;
        let mut items = match list {
            Value::Array(items) => items,
            Value::Null => vec![],
            _ => {
                let message =
                    msg!("`for_each` of `{}` needs a list, but `{}` is not a list", topic.id, each.list.source());
                let help = Message::word("declare the variable with `type: list`, or extract it with `type: list`");
                return Err(SessionFailure { code: "for-each-not-a-list", message, help: Some(help) });
            }
        };
        let taken = self.frames.get(above).map_or(0, |frame| frame.taken) as usize;
        if taken >= MOST_ELEMENTS && items.len() > taken {
            let message = msg!(
                "`{}` ran for {MOST_ELEMENTS} elements; the list has {}, and the rest are skipped",
                topic.id,
                items.len()
            );
            draft.event(&place, Event::Warning { code: "for-each-too-long", message, help: None });
        }
        if taken >= items.len() || taken >= MOST_ELEMENTS {
            if taken == 0 {
                let why = msg!("its list is empty: {}", each.list.source());
                draft.event(&place, Event::Skipped { name: topic.id.clone(), why });
            }
            self.next_child(above);
            return Ok(());
        }
        let element = items.swap_remove(taken);
        if let Some(frame) = self.frames.change(above) {
            frame.taken += 1;
        }
        // A path is shown wherever something is told of the topic.
        // What stands in a sensitive list is sensitive, whatever it is called from here on.
        let declared = |name: &str| self.scopes.declaration(name).is_some_and(|declaration| declaration.sensitive);
        let sensitive = each.list.names().iter().any(|used| declared(&used.name));
        let name = Some(name_of(&element, taken)).filter(|_| !sensitive).filter(|name| self.masker.text(name) == *name);
        let name = name.unwrap_or_else(|| (taken + 1).to_string());
        let component = element_component(&topic.id, &name);
        let key = self.visit("topic", &component, above, draft);
        self.enter_topic(topic, key.clone(), place, draft)?;
        self.give_element(&key, each, (element, sensitive), draft)
    }

    fn give_element(
        &mut self,
        key: &str,
        each: &ForEach,
        (element, from_sensitive): (Value, bool),
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let at = self.services.clock.at(self.last_seq + 1);
        let stored = Stored { value: element, source: "for_each".into(), round: None, at };
        let unwritable = |error: serde_json::Error| SessionFailure::new(Message::text(error.to_string()));
        let Some(written) = self.scopes.write(&each.element, stored.clone(), Some(Scope::Topic)) else {
            return Err(SessionFailure::new(msg!("`{}` has no scope", each.element)));
        };
        let sensitive = written.sensitive || from_sensitive;
        if sensitive {
            self.hide(&stored.value, draft).map_err(unwritable)?;
        }
        draft.variable(written.scope, &written.path, &each.element, &stored, sensitive).map_err(unwritable)?;
        let value = if sensitive { Value::from(MASK) } else { stored.value };
        let event = Event::VariableSet {
            name: each.element.clone(),
            scope: written.scope.name(),
            value,
            source: "for_each".into(),
        };
        draft.event(&self.place_of(key), event);
        Ok(())
    }
}

/// What a path calls an element: its text, or its `name`, when that can stand in a path; else its number, from 1.
fn name_of(element: &Value, taken: usize) -> String {
    let fits = |name: &&str| {
        let sound = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty() && name.chars().count() <= LONGEST_NAME && name.chars().all(sound)
    };
    let name = element.as_str().or_else(|| element.get("name").and_then(Value::as_str));
    name.filter(fits).map_or_else(|| (taken + 1).to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::name_of;
    use serde_json::json;

    #[test]
    fn an_element_is_called_by_its_name_or_by_its_number() {
        let table = [
            (json!("母亲"), "母亲"),
            (json!("../etc"), "3"),
            (json!("a/b"), "3"),
            (json!(""), "3"),
            (json!({ "name": "Anna", "age": 4 }), "Anna"),
            (json!({ "age": 4 }), "3"),
            (json!(7), "3"),
            (json!("长".repeat(41)), "3"),
        ];
        for (element, name) in table {
            assert_eq!(name_of(&element, 2), name, "{element}");
        }
    }
}
