//! Routes of scripts in the legacy nesting, which named parts: they become routes to the ids of these parts, or the script stays unchanged.

use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human::human;

use crate::round_trip::{ScriptFolder, is_older};

/// A script whose first topic continues at `route`, followed by these phases.
fn script_with_route(route: &str, phases: &str) -> String {
    format!(
        "sessions:\n- session: 谈话\n  phases:\n  - phase: 一\n    steps:\n    - topic: 开始\n      actions:\n      - type: ai_say\n        name: 问好\n        content: 您好\n        on_exit:\n          max_rounds_reached: {{ {route} }}\n{phases}"
    )
}

fn phase(keys: &str, topics: &[&str]) -> String {
    let topic = |keys: &&str| format!("    - {{ {keys}, actions: [{{ type: ai_say, content: 好的 }}] }}\n");
    let keys = keys.replace(", ", "\n    ");
    format!("  - {keys}\n    steps:\n{}", topics.iter().map(topic).collect::<String>())
}

/// Names may repeat. Only the author knows what a route then means, even if one of the parts is nearer than the others.
#[test]
fn an_ambiguous_route_is_left_and_reported() {
    let table = [
        ("goto: 收尾", phase("phase: 二", &["topic: 收尾"]) + &phase("phase: 三", &["topic: 收尾"]), "several parts"),
        ("goto: 收尾", phase("phase: 收尾", &["topic: 收尾"]), "several parts"),
        ("goto: 收尾", phase("phase: 收尾", &["topic: 再见, id: 收尾"]), "several parts"),
        ("goto: 再见", phase("phase: 收尾", &["topic: a, name: 再见", "topic: 再见, id: b"]), "several parts"),
        ("goto: 问好", phase("phase: 二", &["topic: 问好"]), "several parts"),
        ("goto: 收_尾", phase("phase: 二", &["topic: 收 尾"]), "nothing is called `收_尾`"),
        ("goto: 收尾_2", phase("phase: 收尾", &["topic: 收尾"]), "nothing is called `收尾_2`"),
        ("insert: 问好", phase("phase: 二, id: 问好", &["topic: 收尾"]), "this may refer to a skill"),
    ];
    for (route, phases, message) in table {
        for text in [
            script_with_route(route, &phases),
            script_with_route("goto: 一", &phases).replace(
                "content: 您好",
                &format!("content: 您好\n        config: {{ on_exit: {{ max_rounds_reached: {{ {route} }} }} }}"),
            ),
        ] {
            let folder = ScriptFolder::with_text(&text);
            let (fixed, left) = folder.migrate();
            let shown = human(&left, false);
            assert_eq!((fixed, folder.text()), (0, text), "{shown}");
            assert!(shown.contains(message) && shown.contains("a unique name"), "{route}\n{shown}");
            assert!(left[0].related.len() >= 2, "{shown}");
        }
    }
}

/// A part with its own id keeps it, and routes that named the part still lead to it.
#[test]
fn a_route_leads_to_the_id_of_the_part_that_it_named() {
    let table = [
        ("goto: 收 尾", phase("phase: 二", &["topic: 收 尾"]), "goto: 收_尾"),
        ("goto: 收尾", phase("phase: 二", &["topic: 收尾, id: closing", "topic: 再见"]), "goto: closing"),
        ("goto: closing", phase("phase: 二", &["topic: 收尾, id: closing"]), "goto: closing"),
        ("goto: 收尾", phase("phase: 二", &["topic: x, name: 收尾, id: closing"]), "goto: closing"),
        ("goto: 二", phase("phase: 二, id: \"2\"", &["topic: 收尾"]), "goto: \"2\""),
        ("goto: 收尾", phase("phase: 二, id: 两 个", &["topic: 收尾, id: 结 束"]), "goto: 结_束"),
        ("goto: 两 个", phase("phase: 二, id: 两 个", &["topic: 收尾"]), "goto: 两_个"),
        // Repeated names do no harm if no route uses them, nor does the name of an action in a route that inserts it.
        ("goto: 再见", phase("phase: 二", &["topic: 收尾", "topic: 收尾", "topic: 再见"]), "goto: 再见"),
        ("insert: 问好", phase("phase: 二", &["topic: 问好"]), "insert: 问好"),
        ("insert: 放松", phase("phase: 二", &["topic: 放松"]), "insert: 放松"),
        ("goto: 没有", phase("phase: 二", &["topic: 收尾"]), "goto: 没有"),
    ];
    for (route, phases, after) in table {
        let folder = ScriptFolder::with_text(&script_with_route(route, &phases));
        let (fixed, left) = folder.migrate();
        let left: Vec<&Diagnostic> = left.iter().filter(is_older).collect();
        assert!(fixed > 0 && left.is_empty(), "{route}\n{phases}");
        assert!(folder.text().contains(&format!("max_rounds_reached: {{ {after} }}")), "{route}\n{}", folder.text());
    }
}
