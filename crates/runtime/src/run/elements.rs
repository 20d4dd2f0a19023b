//! `for_each`: a topic runs once for each element of a list (docs/actions/, "Repetition").

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use crate::program::evaluation::{MISTAKEN_EXPRESSION, NULL_VALUE, evaluation_failure};
use crate::program::event::Event;
use crate::program::limits::ForEach;
use crate::program::location::EventLocation;
use crate::program::program::{Phase, Program, Topic};
use crate::run::draft::CommitDraft;
use crate::run::failed_nodes::NOT_A_LIST;
use crate::run::frames::element_component;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::{Scope, Stored};

/// The maximum number of elements that a topic runs for (docs/actions/).
const MAX_ELEMENTS: usize = 1000;

/// The maximum length, in characters, of an element's name in paths.
const MAX_NAME_CHARS: usize = 40;

impl Session {
    /// Takes the next element of the list and enters the topic for it; continues after the topic if there is none. The list is
    /// evaluated again each time, so that added elements are found.
    pub(crate) fn next_element(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        each: &ForEach,
        above: &str,
        place: EventLocation,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let names = self.names_for(program, (Some(phase), Some(topic)));
        let mut items = match items_of(program, topic, each, &names) {
            Ok(items) => items,
            Err(error) => return self.node_failed(program, (phase, Some(topic)), &place, error, draft),
        };
        for message in names.take_warnings() {
            draft.event(&place, Event::Warning { code: NULL_VALUE, message, help: None });
        }
        let taken = self.frames.get(above).map_or(0, |frame| frame.taken) as usize;
        if taken >= MAX_ELEMENTS && items.len() > taken {
            let message = msg!(
                "`{}` ran for {MAX_ELEMENTS} elements; the list has {}, and the rest are skipped",
                topic.id,
                items.len()
            );
            draft.event(&place, Event::Warning { code: "for-each-too-long", message, help: None });
        }
        if taken >= items.len() || taken >= MAX_ELEMENTS {
            if taken == 0 {
                let why = msg!("its list is empty: {}", each.list.source());
                draft.event(&place, Event::Skipped { name: topic.id.clone(), why, skipped: None });
            }
            self.next_child(above);
            return Ok(());
        }
        let element = items.swap_remove(taken);
        let hops = self.head.route_hops;
        if let Some(frame) = self.frames.change(above) {
            if frame.taken == 0 {
                frame.hops = hops;
            }
            // A list is no loop: the routes in one element do not count for the next.
            self.head.route_hops = hops.min(frame.hops);
            frame.taken += 1;
        }
        // The name appears in paths, which are shown with the topic's events.
        // Elements of a sensitive list are sensitive, whatever variable holds them.
        let sensitive = each.list.names().iter().any(|used| self.scopes.is_sensitive(&used.name));
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
        (element, from_sensitive): (ExactValue, bool),
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let at = self.services.clock.at(self.last_seq + 1);
        let stored = Stored { value: element, source: "for_each".into(), round: None, at };
        let unwritable = |error: serde_json::Error| SessionFailure::new(error.to_message());
        let Some(written) = self.scopes.write(&each.element, stored.clone(), Some(Scope::Topic)) else {
            return Err(SessionFailure::new(msg!("`{}` has no scope", each.element)));
        };
        let sensitive = written.sensitive || from_sensitive;
        if sensitive {
            self.scopes.mark_sensitive(&each.element);
            self.hide(&stored.value, draft).map_err(unwritable)?;
        }
        draft.variable(written.scope, &written.path, &each.element, &stored, sensitive).map_err(unwritable)?;
        let value = if sensitive { Value::from(MASK).into() } else { stored.value };
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

/// The elements of the list; none if it is null.
fn items_of(
    program: &Program,
    topic: &Topic,
    each: &ForEach,
    names: &TemplateNames,
) -> Result<Vec<ExactValue>, SessionFailure> {
    let list = each.list.eval(names).map_err(|error| {
        let (code, help) = evaluation_failure(&program.mistaken_expressions, &each.list, &error);
        let message =
            msg!("the list of `{}`, `{}`, cannot be evaluated: {}", topic.id, each.list.source(), error.message);
        SessionFailure { code, message, help }
    })?;
    match &*list {
        Value::Array(_) => Ok(list.items().collect()),
        Value::Null => Ok(vec![]),
        _ => {
            let is_mistaken = program.mistaken_expressions.iter().any(|mistake| mistake.is(&each.list));
            let code = if is_mistaken { MISTAKEN_EXPRESSION } else { NOT_A_LIST };
            let message = msg!("`for_each` of `{}` needs a list, but `{}` is not a list", topic.id, each.list.source());
            let help = Message::word("declare the variable with `type: list`, or extract it with `type: list`");
            Err(SessionFailure { code, message, help: Some(help) })
        }
    }
}
/// The name of an element in paths: its text or its `name`, if valid in a path; else its number, from 1.
fn name_of(element: &Value, taken: usize) -> String {
    let fits = |name: &&str| {
        let is_valid = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(is_valid)
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
