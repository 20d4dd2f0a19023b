//! Where the parts of a script or a skill stand in its file. A program knows what runs, not where it was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::test_runner::coverage::item::Key;
use bcc_lang::script::older::todays_spelling;
use bcc_lang::source::compose::parse;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{Entry, Node};
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::routes::Level;

/// The place of every part of a file that was checked before; branches, whose actions know them, are not among them.
pub fn places(file: &Arc<SourceFile>) -> BTreeMap<Key, Span> {
    let mut places = Places::default();
    if let Some(root) = parse(file).root {
        places.document(&root);
    }
    places.found
}

#[derive(Default)]
struct Places {
    found: BTreeMap<Key, Span>,
}

impl Places {
    fn document(&mut self, root: &Node) {
        if let Some(session) = value(root, "session") {
            self.session(session);
        } else if let Some(skill) = value(root, "skill") {
            self.skill(skill);
        } else if let Some(id) = text(root, "technique_id") {
            self.put(Key::Skill(id), root.span);
            value(root, "topic").into_iter().for_each(|topic| self.actions(topic));
        }
    }

    fn session(&mut self, session: &Node) {
        if let Some(id) = text(session, "session_id") {
            self.routes(session, Level::Session, &id);
        }
        for trigger in items(session, "triggers") {
            if let Some(id) = text(trigger, "trigger_id") {
                self.put(Key::Trigger(id), trigger.span);
            }
        }
        items(session, "skills").for_each(|skill| self.skill(skill));
        for phase in items(session, "phases") {
            if let Some(id) = text(phase, "phase_id") {
                self.routes(phase, Level::Phase, &id);
                self.put(Key::Phase(id), phase.span);
            }
            items(phase, "topics").for_each(|topic| self.topic(topic));
        }
    }

    fn topic(&mut self, topic: &Node) {
        if let Some(id) = text(topic, "topic_id") {
            self.routes(topic, Level::Topic, &id);
            if let Some(each) = entry(topic, "for_each") {
                self.put(Key::ForEach(id.clone()), each.key.span.join(each.value.span));
            }
            self.put(Key::Topic(id), topic.span);
        }
        self.actions(topic);
    }

    fn skill(&mut self, skill: &Node) {
        if let Some(id) = text(skill, "skill_id") {
            self.put(Key::Skill(id), skill.span);
        }
        self.actions(skill);
    }

    fn actions(&mut self, above: &Node) {
        items(above, "actions").for_each(|action| self.action(action));
    }

    fn action(&mut self, action: &Node) {
        let Some(id) = text(action, "action_id") else { return };
        self.routes(action, Level::Action, &id);
        self.put(Key::Action(id), action.span);
        value(action, "config").into_iter().for_each(|config| self.inside(config));
    }

    /// Goes down a config to whatever is an action, wherever its kind may have put it.
    fn inside(&mut self, node: &Node) {
        if text(node, "action_type").is_some() && text(node, "action_id").is_some() {
            self.action(node);
            return;
        }
        node.as_mapping().unwrap_or_default().iter().for_each(|entry| self.inside(&entry.value));
        node.as_sequence().unwrap_or_default().iter().for_each(|item| self.inside(item));
    }

    fn routes(&mut self, of: &Node, level: Level, id: &str) {
        let Some(table) = value(of, "on_exit") else { return };
        for route in table.as_mapping().unwrap_or_default() {
            if let Some(reason) = ExitReason::parse(&route.key.value) {
                // An alias stands elsewhere; the line of the reason is the author's own.
                let ends = route.value.span.start >= route.key.span.end;
                let span = if ends { route.key.span.join(route.value.span) } else { route.key.span };
                self.put(Key::Route(level, id.to_owned(), reason.name()), span);
            }
        }
    }

    /// Of two of one id, which a check refuses, the first.
    fn put(&mut self, key: Key, span: Span) {
        self.found.entry(key).or_insert(span);
    }
}

fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Entry> {
    let named = |entry: &&Entry| entry.key.value == name || todays_spelling(&entry.key.value).as_deref() == Some(name);
    node.as_mapping()?.iter().find(named)
}

fn value<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    entry(node, name).map(|entry| entry.value.as_ref())
}

fn items<'n>(node: &'n Node, name: &str) -> impl Iterator<Item = &'n Node> {
    value(node, name).and_then(Node::as_sequence).unwrap_or_default().iter().map(AsRef::as_ref)
}

fn text(node: &Node, name: &str) -> Option<String> {
    value(node, name)?.as_scalar().map(|scalar| scalar.text.clone())
}
