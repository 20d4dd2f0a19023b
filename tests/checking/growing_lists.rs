//! The lists that a script only appends to.

use std::collections::BTreeMap;
use std::sync::Arc;

use bcc_check::check::check;
use bcc_check::context::CheckContext;
use bcc_check::library::SkillLibrary;
use bcc_lang::schema::embedded::reply_rules;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::TemplateFile;
use bcc_lang::template::templates::Templates;
use bcc_runtime::actions::KINDS;

/// Whether `reply` is one in a script with this declaration, these keys of the topic and these actions.
fn grows(declare: &str, topic: &str, actions: &[&str]) -> bool {
    let actions: String = actions.iter().map(|action| format!("            - {action}\n")).collect();
    let text = format!(
        "session:\n  session_id: s\n  declare: [{declare}]\n  phases:\n    - phase_id: p\n      topics:\n        \
         - topic_id: t\n{topic}          actions:\n{actions}"
    );
    let file = Arc::new(SourceFile::new("s.yaml", text.clone()));
    let template = |name: &str| TemplateFile { place: "default".into(), name: name.into(), text: "{{ task }}".into() };
    let kinds = ["ai_think", "behavior", "reflection", "topic_orchestrator"];
    let templates = kinds.map(|kind| template(&format!("{kind}_v1.md")));
    let templates = Arc::new(Templates::new(&templates, "0123456789abcdef0123456789abcdef").unwrap());
    let schemas = kinds.into_iter().filter_map(|kind| Some((kind.to_owned(), reply_rules(kind)?)));
    let (schemas, library) = (schemas.collect(), SkillLibrary::default());
    let context = CheckContext {
        kinds: KINDS,
        custom: &BTreeMap::default(),
        templates,
        reply_schemas: &schemas,
        library: &library,
        models: None,
    };
    let (program, found) = check(&file, parse(&file), &context);
    let program = program.unwrap_or_else(|| {
        panic!("{text}\n{:?}", found.iter().map(|found| found.message.to_string()).collect::<Vec<_>>())
    });
    program.growing_lists.contains("reply")
}

const LIST: &str = "{ var: reply, type: list, value: [] }";
const WITH_MORE: &str = "{ var: reply, type: list, value: [] }, { var: more }";
const APPENDS: &str = "{ action_type: set, action_id: a, config: { values: { reply: \"{{ reply + [{'action': 'finish_thinking'}] }}\" } } }";

#[test]
fn a_list_grows_if_every_writer_appends() {
    let extracts = "{ action_type: ai_think, action_id: b, config: { content: Think, output: [{ get: reply, define: X, append: true }] } }";
    let or_empty = "{ action_type: condition, action_id: c, config: { cases: [{ when: \"true\", set: { reply: \"{{ reply | default([]) + [1] + [2] }}\" } }] } }";
    let more =
        "{ action_type: set, action_id: e, config: { values: { reply: \"{{ reply + more | default([]) }}\" } } }";
    let other = "{ action_type: set, action_id: d, config: { values: { note: \"{{ reply + [1] }}\" } } }";
    for (declare, actions) in [
        (LIST, vec![APPENDS]),
        (LIST, vec![APPENDS, extracts, or_empty]),
        ("{ var: reply, type: list }", vec![or_empty]),
        (WITH_MORE, vec![APPENDS, more]),
        ("{ var: reply, type: list, value: [] }, { var: note }", vec![APPENDS, other]),
    ] {
        assert!(grows(declare, "", &actions), "{declare} {actions:?}");
    }
}

#[test]
fn a_list_that_something_may_replace_does_not_grow() {
    let topic_list = "          declare: [{ var: reply, type: list, value: [] }]\n";
    let orchestrated = "          strategy: { text: Ask less, orchestration: on }\n";
    let replaces =
        |value: &str| format!("{{ action_type: set, action_id: b, config: {{ values: {{ reply: {value} }} }} }}");
    let extracts =
        "{ action_type: ai_think, action_id: b, config: { content: Think, output: [{ get: reply, define: X }] } }";
    let reads = "{ action_type: read_file, action_id: b, config: { path: a.txt, output: reply } }";
    let parallel = format!(
        "{{ action_type: parallel, action_id: b, config: {{ branches: [{{ id: one, actions: [{}] }}] }} }}",
        APPENDS.replace("action_id: a", "action_id: c")
    );
    let behaves = "{ action_type: behavior_loop, action_id: b, config: { target: T, source: model } }";
    for (declare, topic, second) in [
        (LIST, "", replaces("[]")),
        (LIST, "", replaces("null")),
        (LIST, "", replaces("\"{{ [1] + reply }}\"")),
        (LIST, "", replaces("\"{{ (reply | default([1])) + [2] }}\"")),
        (LIST, "", replaces("\"{{ reply + [1] if reply else [] }}\"")),
        (LIST, "", extracts.to_owned()),
        (LIST, "", reads.to_owned()),
        (LIST, "", behaves.to_owned()),
        (LIST, "", parallel),
        (WITH_MORE, "", replaces("\"{{ reply + more }}\"")),
        (WITH_MORE, "", replaces("\"{{ reply + [1] + more }}\"")),
        (WITH_MORE, "", replaces("\"{{ reply + more | default(more) }}\"")),
        (LIST, topic_list, APPENDS.replace("action_id: a", "action_id: b")),
        (LIST, orchestrated, APPENDS.replace("action_id: a", "action_id: b")),
        ("{ var: reply }", "", APPENDS.replace("action_id: a", "action_id: b")),
        ("{ var: reply, type: list, scope: global, value: [] }", "", APPENDS.replace("action_id: a", "action_id: b")),
    ] {
        assert!(!grows(declare, topic, &[APPENDS, &second]), "{declare} {topic} {second}");
    }
}
