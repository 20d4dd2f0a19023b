//! Names that authors may use instead of the name of a field: `id` for `topic_id`, `if` for `when`, `question` for `content`.

use crate::source::yaml::{NodeKind, YamlNode};

const IDS: &[&str] = &["action_id", "topic_id", "phase_id", "session_id", "skill_id", "trigger_id", "technique_id"];
const TITLES: &[&str] = &["session_name", "phase_name", "topic_name", "skill_name", "get", "var"];
const CONTENT: &[&str] = &["content"];
const CONDITION: &[&str] = &["when", "condition"];

/// Other names, each with the fields that it may stand for. The first one that the mapping has applies.
const OTHER_NAMES: [(&str, &[&str]); 36] = [
    ("ask", CONTENT),
    ("choices", &["enum"]),
    ("default", &["value"]),
    ("description", &["define"]),
    ("do", &["actions"]),
    ("get", &["var"]),
    ("goal", &["global_goal", "phase_goal", "topic_goal", "skill_goal"]),
    ("id", IDS),
    ("if", CONDITION),
    ("initial", &["value"]),
    ("kind", &["action_type"]),
    ("message", CONTENT),
    ("name", TITLES),
    ("options", &["enum"]),
    ("outputs", &["output"]),
    ("prompt", CONTENT),
    ("question", CONTENT),
    ("rounds", &["max_rounds"]),
    ("say", CONTENT),
    ("steps", &["actions", "topics", "phases"]),
    ("text", CONTENT),
    ("then", &["actions"]),
    ("title", TITLES),
    ("type", &["action_type"]),
    ("var", &["get"]),
    ("variable", &["get", "var"]),
    ("variables", &["declare", "values"]),
    ("vars", &["declare", "values"]),
    ("when", CONDITION),
    ("内容", CONTENT),
    ("变量", &["declare", "values", "get", "var"]),
    ("名称", TITLES),
    ("条件", CONDITION),
    ("类型", &["action_type", "type"]),
    ("说明", &["define"]),
    ("问题", CONTENT),
];

/// Whether `key` is another name of any field.
pub(crate) fn is_other_name(key: &str) -> bool {
    OTHER_NAMES.iter().any(|(other, _)| *other == key)
}

/// The fields that `key` may stand for.
pub(crate) fn other_name_of(key: &str) -> &'static [&'static str] {
    OTHER_NAMES.iter().find(|(other, _)| *other == key).map_or(&[], |(_, fields)| fields)
}

/// The field of this mapping that `key` with this value stands for. `free`: whether the mapping has such a field and it is
/// not set. `None` if the value fits none of them.
pub(crate) fn field_for(key: &str, value: &YamlNode, free: impl Fn(&str) -> bool) -> Option<&'static str> {
    other_name_of(key).iter().copied().find(|field| free(field) && fits(field, value))
}

fn fits(field: &str, value: &YamlNode) -> bool {
    match field {
        "actions" | "topics" | "phases" | "declare" | "output" | "enum" => matches!(value.kind, NodeKind::Sequence(_)),
        "values" => matches!(value.kind, NodeKind::Mapping(_)),
        "value" => true,
        _ => value.as_scalar().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::compose::parse;
    use crate::source::text::SourceFile;

    #[test]
    fn the_field_that_the_mapping_has_is_found() {
        let table: [(&str, &[&str], Option<&str>); 10] = [
            ("id: x", &["topic_id", "topic_name"], Some("topic_id")),
            ("name: x", &["var", "type"], Some("var")),
            ("if: a > 5", &["when", "actions"], Some("when")),
            ("when: a > 5", &["condition"], Some("condition")),
            ("then: [x]", &["when", "actions"], Some("actions")),
            ("then: x", &["when", "actions"], None),
            ("steps: [x]", &["topics"], Some("topics")),
            ("vars: { a: 1 }", &["declare"], None),
            ("id: x", &["content"], None),
            ("content: x", &["content"], None),
        ];
        for (text, fields, expected) in table {
            let root = parse(&Arc::new(SourceFile::new("a.yaml", text))).root.unwrap();
            let entry = &root.as_mapping().unwrap()[0];
            let found = field_for(&entry.key.value, &entry.value, |field| fields.contains(&field));
            assert_eq!(found, expected, "{text}");
        }
    }
}
