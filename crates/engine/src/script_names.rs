//! The display names of a session: its speakers, phases, topics and list elements.

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::source::compose::parse;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::program::Program;
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;

use crate::pin::Pinned;

/// The names that a script gives. Parts without a name are shown by their ids.
#[derive(Clone, Debug, Default)]
pub struct ScriptNames {
    ai: Option<String>,
    person: Option<String>,
    phases: BTreeMap<String, String>,
    /// By phase and topic.
    topics: BTreeMap<(String, String), String>,
    skills: BTreeSet<String>,
}

impl ScriptNames {
    pub fn of(program: &Program) -> Self {
        let mut names = Self {
            ai: Some(program.who.clone()),
            person: Some(program.user.clone()),
            skills: program.skills.keys().cloned().collect(),
            ..Self::default()
        };
        for phase in &program.phases {
            if let Some(name) = given(phase.name.as_deref()) {
                names.phases.insert(phase.id.clone(), name);
            }
            for topic in &phase.topics {
                if let Some(name) = given(topic.name.as_deref()) {
                    names.topics.insert((phase.id.clone(), topic.id.clone()), name);
                }
            }
        }
        names
    }

    /// The names of the script that a stored session started with. If this release can no longer read the script, there are none,
    /// so that the session can still be shown.
    pub async fn of_session(store: &dyn Store, row: &SessionRow) -> Self {
        let Ok(pinned) = Pinned::load(store, &row.manifest).await else { return Self::default() };
        let program = pinned.check(parse(&pinned.script)).ok().and_then(|(program, _)| program);
        program.as_ref().map(Self::of).unwrap_or_default()
    }

    /// The name of a speaker, from the role of a message.
    pub fn speaker<'n>(&'n self, role: &'n str) -> &'n str {
        let name = if role == Speaker::User.name() { &self.person } else { &self.ai };
        given_or(name.as_deref(), role)
    }

    pub fn phase<'n>(&'n self, id: &'n str) -> &'n str {
        given_or(self.phases.get(id).map(String::as_str), id)
    }

    /// The name of a topic, with the element that it runs for. `path` is the instance path of the location.
    pub fn topic(&self, phase: &str, id: &str, path: &str) -> String {
        let name = self.topics.get(&(phase.to_owned(), id.to_owned()));
        let name = given_or(name.map(String::as_str), id);
        with_element(name, path)
    }

    /// The phase, the topic and the skills of a location, outermost first, without its actions.
    pub fn place(&self, phase: Option<&str>, topic: Option<&str>, path: &str) -> Vec<String> {
        let mut parts: Vec<String> = phase.map(|id| self.phase(id).to_owned()).into_iter().collect();
        parts.extend(topic.map(|id| self.topic(phase.unwrap_or_default(), id, path)));
        // The first component is the topic, and the last one an action, which may have the id of a skill.
        let inner = path.split('/').skip(1).collect::<Vec<_>>();
        let inner = inner.split_last().map(|(_, around)| around).unwrap_or_default();
        let skills = inner.iter().filter_map(|component| component.split('#').next());
        parts.extend(skills.filter(|id| self.skills.contains(*id)).map(str::to_owned));
        parts
    }
}

fn given(name: Option<&str>) -> Option<String> {
    name.filter(|name| !name.trim().is_empty()).map(str::to_owned)
}

fn given_or<'n>(name: Option<&'n str>, id: &'n str) -> &'n str {
    name.filter(|name| !name.is_empty()).unwrap_or(id)
}

/// The name of a topic, with the element that it runs for, from an instance path: `topic@element#2/action`.
pub fn with_element(name: &str, path: &str) -> String {
    match element(path) {
        Some(element) => format!("{name} ({element})"),
        None => name.to_owned(),
    }
}

/// The element that a topic runs for, from an instance path.
fn element(path: &str) -> Option<&str> {
    let (_, element) = path.split('/').next()?.split_once('@')?;
    element.split('#').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ScriptNames {
        let text = |text: &str| text.to_owned();
        ScriptNames {
            ai: Some(text("咨询师")),
            phases: [(text("first"), text("第一段"))].into(),
            topics: [((text("first"), text("people")), text("家人"))].into(),
            skills: [text("comfort")].into(),
            ..ScriptNames::default()
        }
    }

    #[test]
    fn a_place_has_the_names_of_its_parts_and_ids_where_there_is_no_name() {
        let table = [
            (Some("first"), Some("people"), "people@母亲#2/ask", "第一段 › 家人 (母亲)"),
            (Some("first"), Some("people"), "people#2/ask/comfort#3/breathe", "第一段 › 家人 › comfort"),
            (Some("first"), Some("people"), "people/check/=case.0/comfort", "第一段 › 家人"),
            (Some("second"), Some("people"), "people/ask", "second › people"),
            (Some("first"), None, "", "第一段"),
            (None, None, "", ""),
        ];
        for (phase, topic, path, expected) in table {
            assert_eq!(names().place(phase, topic, path).join(" › "), expected, "{path}");
        }
    }

    #[test]
    fn the_element_of_a_topic_is_read_from_its_path() {
        let table = [("care@母亲", Some("母亲")), ("care@2#3/ask", Some("2")), ("care#2/ask", None), ("", None)];
        for (path, expected) in table {
            assert_eq!(element(path), expected, "{path}");
        }
    }

    #[test]
    fn a_speaker_without_a_name_is_shown_by_the_role() {
        assert_eq!((names().speaker("ai"), names().speaker("user")), ("咨询师", "user"));
    }
}
