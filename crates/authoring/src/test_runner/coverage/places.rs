//! Finds the positions of the parts of a script or a skill in its file. A program does not contain them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::test_runner::coverage::item::{ItemKey, change_reason};
use bcc_lang::script::legacy_fields::current_spelling;
use bcc_lang::source::compose::parse;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{YamlEntry, YamlNode};
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::route_table::RouteLevel;

/// The position of every part of a checked file, except branches, whose actions know their positions.
pub fn places(file: &Arc<SourceFile>) -> BTreeMap<ItemKey, Span> {
    let mut places = Places::default();
    if let Some(root) = parse(file).root {
        places.document(&root);
    }
    places.found
}

#[derive(Default)]
struct Places {
    found: BTreeMap<ItemKey, Span>,
}

impl Places {
    fn document(&mut self, root: &YamlNode) {
        if let Some(session) = value(root, "session") {
            self.session(session);
        } else if let Some(skill) = value(root, "skill") {
            self.skill(skill);
        } else if let Some(id) = text(root, "technique_id") {
            self.put(ItemKey::Skill(id), root.span);
            value(root, "topic").into_iter().for_each(|topic| self.actions(topic));
        }
    }

    fn session(&mut self, session: &YamlNode) {
        if let Some(id) = text(session, "session_id") {
            self.routes(session, RouteLevel::Session, &id);
        }
        for trigger in items(session, "triggers") {
            if let Some(id) = text(trigger, "trigger_id") {
                self.put(ItemKey::Trigger(id), trigger.span);
            }
        }
        items(session, "skills").for_each(|skill| self.skill(skill));
        for phase in items(session, "phases") {
            if let Some(id) = text(phase, "phase_id") {
                self.routes(phase, RouteLevel::Phase, &id);
                self.put(ItemKey::Phase(id), phase.span);
            }
            items(phase, "topics").for_each(|topic| self.topic(topic));
        }
    }

    fn topic(&mut self, topic: &YamlNode) {
        if let Some(id) = text(topic, "topic_id") {
            self.routes(topic, RouteLevel::Topic, &id);
            if let Some(each) = entry(topic, "for_each") {
                self.put(ItemKey::ForEach(id.clone()), each.key.span.join(each.value.span));
            }
            self.put(ItemKey::Topic(id), topic.span);
        }
        self.actions(topic);
        items(topic, "finally").for_each(|action| self.action(action));
    }

    fn skill(&mut self, skill: &YamlNode) {
        if let Some(id) = text(skill, "skill_id") {
            self.put(ItemKey::Skill(id), skill.span);
        }
        self.actions(skill);
        for topic in items(skill, "topics") {
            let Some(id) = text(topic, "topic_id") else { continue };
            self.routes(topic, RouteLevel::Topic, &id);
            self.put(ItemKey::Action(id), topic.span);
            self.actions(topic);
        }
    }

    fn actions(&mut self, above: &YamlNode) {
        items(above, "actions").for_each(|action| self.action(action));
    }

    fn action(&mut self, action: &YamlNode) {
        let Some(id) = text(action, "action_id") else { return };
        self.routes(action, RouteLevel::Action, &id);
        // It is short for the routes of these reasons.
        if let Some(on_failure) = entry(action, "on_failure") {
            let span = on_failure.key.span.join(on_failure.value.span);
            let reasons = ExitReason::ALL.into_iter().filter(|reason| reason.fails());
            reasons.for_each(|reason| {
                self.put(ItemKey::Route(RouteLevel::Action, id.clone(), reason.name().to_owned()), span)
            });
        }
        self.put(ItemKey::Action(id), action.span);
        items(action, "compensate").for_each(|undo| self.action(undo));
        value(action, "config").into_iter().for_each(|config| self.inside(config));
    }

    /// Searches a config for actions, wherever its action type puts them.
    fn inside(&mut self, node: &YamlNode) {
        if text(node, "action_type").is_some() && text(node, "action_id").is_some() {
            self.action(node);
            return;
        }
        node.as_mapping().unwrap_or_default().iter().for_each(|entry| self.inside(&entry.value));
        node.as_sequence().unwrap_or_default().iter().for_each(|item| self.inside(item));
    }

    fn routes(&mut self, of: &YamlNode, level: RouteLevel, id: &str) {
        let table = |name| value(of, name).and_then(YamlNode::as_mapping).unwrap_or_default();
        let exits = table("on_exit").iter().filter_map(|route| Some((route, ExitReason::parse(&route.key.value)?)));
        let exits = exits.map(|(route, reason)| (route, reason.name().to_owned()));
        let changes = table("on_change").iter().map(|route| (route, change_reason(&route.key.value)));
        for (route, reason) in exits.chain(changes) {
            // An alias refers to another place; the line of the reason is the author's own.
            let follows_key = route.value.span.start >= route.key.span.end;
            let span = if follows_key { route.key.span.join(route.value.span) } else { route.key.span };
            self.put(ItemKey::Route(level, id.to_owned(), reason), span);
        }
    }

    /// Of two parts with the same id, which a check rejects, the first is used.
    fn put(&mut self, key: ItemKey, span: Span) {
        self.found.entry(key).or_insert(span);
    }
}

fn entry<'n>(node: &'n YamlNode, name: &str) -> Option<&'n YamlEntry> {
    let named =
        |entry: &&YamlEntry| entry.key.value == name || current_spelling(&entry.key.value).as_deref() == Some(name);
    node.as_mapping()?.iter().find(named)
}

fn value<'n>(node: &'n YamlNode, name: &str) -> Option<&'n YamlNode> {
    entry(node, name).map(|entry| entry.value.as_ref())
}

fn items<'n>(node: &'n YamlNode, name: &str) -> impl Iterator<Item = &'n YamlNode> {
    value(node, name).and_then(YamlNode::as_sequence).unwrap_or_default().iter().map(AsRef::as_ref)
}

fn text(node: &YamlNode, name: &str) -> Option<String> {
    value(node, name)?.as_scalar().map(|scalar| scalar.text.clone())
}
