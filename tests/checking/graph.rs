//! Tests of the control flow graph, which rules about the order of actions use.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bcc_check::checker::Checker;
use bcc_check::context::CheckContext;
use bcc_check::edges;
use bcc_check::graph::{ControlFlowGraph, NodeWork};
use bcc_check::library::SkillLibrary;
use bcc_check::semantic_model::SemanticModel;
use bcc_check::walk;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::read;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::TemplateFile;
use bcc_lang::template::templates::Templates;
use bcc_runtime::actions::KINDS;

/// Calls `inspect` with the graph of a script that has one phase with these topics.
fn graph<T>(topics: &str, inspect: impl FnOnce(&ControlFlowGraph, &dyn Fn(&str) -> usize) -> T) -> T {
    let text = format!("session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n{topics}");
    let file = Arc::new(SourceFile::new("s.yaml", text));
    let templates = ["ai_ask", "ai_say"].map(|kind| TemplateFile {
        place: "default".into(),
        name: format!("{kind}_v1.md"),
        text: "{{ task }}".into(),
    });
    let templates = Arc::new(Templates::new(&templates, "0123456789abcdef0123456789abcdef").unwrap());
    let (schemas, library) = (BTreeMap::new(), SkillLibrary::default());
    let against = CheckContext {
        kinds: KINDS,
        custom: &Default::default(),
        templates,
        reply_schemas: &schemas,
        library: &library,
        models: None,
    };
    let findings = Findings::new();
    let script = read(&file, &parse(&file).root.unwrap(), &findings).unwrap();
    let mut checker = Checker::new(&file, &against, &findings);
    walk::script(&mut checker, &script, &[]);
    let model = SemanticModel::new(&file, Some(&script), &[], &against, checker.collected);
    let number = |id: &str| model.collected.actions.iter().position(|action| action.id.value == id).unwrap();
    inspect(edges::graph(&model), &number)
}

fn ask(id: &str, more: &str) -> String {
    format!("            - {{ action_type: ai_ask, action_id: {id}, {more}config: {{ content: a }} }}\n")
}

fn topic(id: &str, actions: &str) -> String {
    format!("        - topic_id: {id}\n          actions:\n{actions}")
}

#[test]
fn actions_that_every_path_skips_are_unreachable_and_cost_nothing() {
    let on = "on_exit: { exit_criteria_met: { goto: v }, max_rounds_reached: { goto: v } }, ";
    let end = "on_exit: { exit_criteria_met: end, max_rounds_reached: end }, ";
    let topics = topic("t", &ask("a", on)) + &topic("u", &ask("b", end)) + &topic("v", &ask("c", ""));
    graph(&topics, |graph, number| {
        assert!(!graph.reached_action(number("b")) && graph.reached_action(number("c")));
        let turns = |work| u64::from(matches!(work, NodeWork::Action(_)));
        assert_eq!(graph.cheapest(turns), Some(2));
    });
}

#[test]
fn a_graph_of_two_thousand_linked_topics_is_fast() {
    let mut topics = String::new();
    for number in 0..2_000 {
        let on = format!("on_exit: {{ user_blocked: {{ goto: t{} }} }}, ", (number * 7) % 2_000);
        write!(topics, "{}", topic(&format!("t{number}"), &ask(&format!("a{number}"), &on))).unwrap();
    }
    graph(&topics, |graph, number| {
        assert!(graph.reached_action(number("a1999")));
        assert!(graph.endless().is_empty());
    });
}
