//! Routes of scripts in the oldest nesting, which named parts: they lead to the ids of these, or the script is left.

use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human::human;

use crate::round_trip::{Place, is_older};

/// A script whose first topic goes on where `route` says, with these phases behind it.
fn leading(route: &str, phases: &str) -> String {
    format!(
        "sessions:\n- session: 谈话\n  phases:\n  - phase: 一\n    steps:\n    - topic: 开始\n      actions:\n      - type: ai_say\n        name: 问好\n        content: 您好\n        on_exit:\n          max_rounds_reached: {{ {route} }}\n{phases}"
    )
}

fn phase(keys: &str, topics: &[&str]) -> String {
    let topic = |keys: &&str| format!("    - {{ {keys}, actions: [{{ type: ai_say, content: 好的 }}] }}\n");
    let keys = keys.replace(", ", "\n    ");
    format!("  - {keys}\n    steps:\n{}", topics.iter().map(topic).collect::<String>())
}

/// Names may repeat, and what a route then means only its author knows, also where one of the parts is nearer than the others.
#[test]
fn a_route_that_may_mean_several_parts_is_left_and_told() {
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
    for (route, phases, told) in table {
        for text in [
            leading(route, &phases),
            leading("goto: 一", &phases).replace(
                "content: 您好",
                &format!("content: 您好\n        config: {{ on_exit: {{ max_rounds_reached: {{ {route} }} }} }}"),
            ),
        ] {
            let place = Place::with(&text);
            let (made, left) = place.migrate();
            let shown = human(&left, false);
            assert_eq!((made, place.text()), (0, text), "{shown}");
            assert!(shown.contains(told) && shown.contains("a unique name"), "{route}\n{shown}");
            assert!(left[0].related.len() >= 2, "{shown}");
        }
    }
}

/// A part that has an id of its own goes by it, and routes that named it lead to it still.
#[test]
fn a_route_leads_to_the_id_of_what_it_named() {
    let table = [
        ("goto: 收 尾", phase("phase: 二", &["topic: 收 尾"]), "goto: 收_尾"),
        ("goto: 收尾", phase("phase: 二", &["topic: 收尾, id: closing", "topic: 再见"]), "goto: closing"),
        ("goto: closing", phase("phase: 二", &["topic: 收尾, id: closing"]), "goto: closing"),
        ("goto: 收尾", phase("phase: 二", &["topic: x, name: 收尾, id: closing"]), "goto: closing"),
        ("goto: 二", phase("phase: 二, id: \"2\"", &["topic: 收尾"]), "goto: \"2\""),
        ("goto: 收尾", phase("phase: 二, id: 两 个", &["topic: 收尾, id: 结 束"]), "goto: 结_束"),
        ("goto: 两 个", phase("phase: 二, id: 两 个", &["topic: 收尾"]), "goto: 两_个"),
        // Repeated names that no route names do no harm, nor does an action's to a route that inserts it.
        ("goto: 再见", phase("phase: 二", &["topic: 收尾", "topic: 收尾", "topic: 再见"]), "goto: 再见"),
        ("insert: 问好", phase("phase: 二", &["topic: 问好"]), "insert: 问好"),
        ("insert: 放松", phase("phase: 二", &["topic: 放松"]), "insert: 放松"),
        ("goto: 没有", phase("phase: 二", &["topic: 收尾"]), "goto: 没有"),
    ];
    for (route, phases, after) in table {
        let place = Place::with(&leading(route, &phases));
        let (made, left) = place.migrate();
        let left: Vec<&Diagnostic> = left.iter().filter(is_older).collect();
        assert!(made > 0 && left.is_empty(), "{route}\n{phases}");
        assert!(place.text().contains(&format!("max_rounds_reached: {{ {after} }}")), "{route}\n{}", place.text());
    }
}
