//! Invariants for arbitrary input: nothing panics, nothing breaks a notebook, and nothing makes its state grow without limit.

use bcc_runtime::notebook::action::fields::{MAX_CONTENT_BYTES, MAX_EXTRA_BYTES};
use bcc_runtime::notebook::action::{NAMES, Read, read};
use bcc_runtime::notebook::effects::{MAX_HISTORY, MAX_QUOTED_BYTES};
use bcc_runtime::notebook::workflow::{MAX_PLAN_BYTES, MAX_STAGES, MAX_STEPS};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::notebook::book::{AT, Book};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop_oneof!["add", "exec", "code", "true", "lastAddedCellId", "## x", "```"].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let key = prop_oneof![
            "[a-zA-Z_#\u{4e00}]{0,8}",
            prop::sample::select(&[
                "action",
                "type",
                "content",
                "metadata",
                "shot_type",
                "store_id",
                "codecell_id",
                "updated_workflow",
                "stages",
                "steps",
                "id",
                "section_id",
                "section_number",
                "text_array",
                "title",
                "stage_id",
                "updated_steps",
                "step_id",
                "event_type",
                "extra",
                "is_section",
                "shouldExecute",
            ])
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A readable action. It has few names, so that they collide.
fn any_action() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(&["a", "b", "cell-1", "cell-2", "cell-5", "cell-9", "lastAddedCellId"][..6]);
    let text = || prop_oneof!["\\PC{0,12}", Just("# head\nmore".to_owned()), Just("```py\nx\n```".to_owned())];
    let shot = prop::sample::select(&["dialogue", "action", "code", "text"][..]);
    let heading = prop::sample::select(&["new_chapter", "new_section", "new_step"][..]);
    let ids = || prop::collection::btree_set(prop::sample::select(&["s", "t", "u", "v", "w"][..]), 1..4);
    prop_oneof![
        4 => (text(), shot, prop::option::of(name()), any::<[bool; 3]>()).prop_map(|(content, shot, id, [run, section, chapter])| json!({
            "action": "add", "content": content, "shot_type": shot, "store_id": id, "should_execute": run,
            "metadata": {"is_section": section, "is_chapter": chapter},
        })),
        2 => prop_oneof![name(), Just("lastAddedCellId")].prop_map(|id| json!({"action": "exec", "codecell_id": id})),
        2 => (heading, "[a-z# ]{0,5}[a-z]", prop::option::of(name())).prop_map(|(kind, content, id)| json!({
            "action": kind, "content": content, "section_id": id,
        })),
        1 => text().prop_map(|text| json!({"action": "is_thinking", "thinking_text": text})),
        1 => Just(json!({"action": "finish_thinking"})),
        1 => "[a-z\u{4e00}]{1,9}".prop_map(|title| json!({"action": "update_title", "title": title})),
        1 => (ids(), ids()).prop_map(|(stages, steps)| {
            let stages: Vec<_> = stages.into_iter().enumerate().map(|(at, id)| {
                let steps: Vec<_> = if at == 0 { steps.iter().collect() } else { vec![] };
                json!({"id": id, "steps": steps})
            }).collect();
            json!({"action": "update_workflow", "updated_workflow": stages})
        }),
        1 => (ids(), ids()).prop_map(|(stage, steps)| json!({
            "action": "update_stage_steps", "stage_id": stage.first(), "updated_steps": steps,
        })),
        1 => prop::option::of(ids()).prop_map(|step| json!({"action": "end_phase", "step_id": step.map(|step| *step.first().unwrap())})),
        1 => "[a-zA-Z_0-9]{1,9}".prop_map(|event| json!({"action": "next_event", "event_type": event})),
        1 => Just(json!("begin")),
        1 => Just(json!("end")),
        1 => ids().prop_map(|step| json!([step.first()])),
    ]
}

/// Executes a value of [`any_action`]: an action, or a move of a behavior.
fn act(book: &mut Book, value: &Value) {
    match value {
        Value::String(command) if command == "begin" => {
            book.state.start_behavior(AT);
        }
        Value::String(_) => {
            book.state.end_behavior(AT);
        }
        Value::Array(step) => {
            let before = book.state.clone();
            if book.state.go_to(None, step[0].as_str(), AT).is_err() {
                assert_eq!(book.state, before);
            }
        }
        action => {
            let before = (book.state.clone(), book.cells.clone());
            if book.try_act(action).is_err() {
                assert_eq!((book.state.clone(), book.cells.clone()), before, "{action}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_json_makes_the_reader_panic(value in any_json(), name in prop::sample::select(&NAMES[..])) {
        let mut fields = value.as_object().cloned().unwrap_or_default();
        let _ = read(&value);
        fields.insert("action".to_owned(), Value::from(name));
        if let Ok(Read::Known(action)) = read(&Value::Object(fields)) {
            let mut book = Book::default();
            let _ = book.execute(&action);
            book.check();
        }
    }

    #[test]
    fn no_action_breaks_a_notebook(actions in prop::collection::vec(any_action(), 1..40)) {
        let mut book = Book::default();
        for action in &actions {
            act(&mut book, action);
            book.check();
        }
        let again: bcc_runtime::notebook::state::NotebookState =
            serde_json::from_value(serde_json::to_value(&book.state).unwrap()).unwrap();
        prop_assert_eq!(again, book.state, "a state is the same after it was stored");
    }
}

#[test]
fn ten_thousand_actions_do_not_make_the_state_grow() {
    let mut book = Book::default();
    let text = "数据".repeat(300);
    let mut sizes = Vec::new();
    for round in 0..10_000_u32 {
        let action = match round % 8 {
            0 => {
                json!({"action": "add", "shot_type": "code", "content": text, "store_id": format!("cell-{}", 90_000 + round)})
            }
            1 => json!({"action": "new_section", "content": text}),
            2 => json!({"action": "is_thinking", "thinking_text": text}),
            3 => json!({"action": "exec", "codecell_id": "lastAddedCellId"}),
            4 => {
                json!({"action": "update_workflow", "updated_workflow": [{"id": format!("s{round}"), "steps": [format!("a{round:05}")]}]})
            }
            5 => json!({"action": "end_phase"}),
            6 => json!({"action": "new_chapter", "content": text, "chapter_id": format!("{round}")}),
            _ => json!({"action": "next_event", "event_type": format!("e{round}")}),
        };
        let _ = book.try_act(&action);
        if round % 1_000 == 999 {
            sizes.push(serde_json::to_string(&book.state).unwrap().len());
        }
    }
    assert!(book.state.effects.history.len() <= MAX_HISTORY);
    assert!(sizes.iter().all(|size| *size < 64 * 1024), "{sizes:?}");
    assert!(sizes[9] < sizes[8] + 256, "nothing grows any more: {sizes:?}");
}

#[test]
fn an_effect_quotes_no_more_than_the_limit() {
    let mut book = Book::default();
    book.act(&json!({"action": "add", "content": "字".repeat(1_000)})).unwrap();
    let effect = &book.state.effects.current[0];
    assert!(
        effect.len() <= "Added content: ".len() + MAX_QUOTED_BYTES + '…'.len_utf8() && effect.ends_with("字…"),
        "{effect}"
    );
}

#[test]
fn content_over_the_limit_is_rejected() {
    let field = |action: &Value| read(action).expect_err("too much").field;
    let max_content = "x".repeat(MAX_CONTENT_BYTES);
    assert!(read(&json!({"action": "add", "content": max_content})).is_ok());
    let too_long = format!("{max_content}x");
    assert_eq!(field(&json!({"action": "add", "content": too_long})), Some("content"));
    assert_eq!(field(&json!({"action": "new_chapter", "content": too_long})), Some("content"));
    assert_eq!(field(&json!({"action": "is_thinking", "thinking_text": too_long})), Some("thinking_text"));
    assert_eq!(field(&json!({"action": "is_thinking", "text_array": [max_content, "x"]})), Some("text_array"));
    assert_eq!(
        field(&json!({"action": "add", "content": "", "metadata": {"a": "x".repeat(MAX_EXTRA_BYTES)}})),
        Some("metadata")
    );
}

#[test]
fn a_plan_that_is_too_large_is_rejected() {
    let mut book = Book::default();
    let steps =
        |count: usize, stage: usize| -> Vec<String> { (0..count).map(|step| format!("{stage}-{step}")).collect() };
    let stages = |count: usize, of: usize| -> Vec<Value> {
        (0..count).map(|stage| json!({"id": format!("s{stage}"), "steps": steps(of, stage)})).collect()
    };
    let mut is_rejected =
        |stages: Value| book.try_act(&json!({"action": "update_workflow", "updated_workflow": stages})).is_err();
    assert!(!is_rejected(json!(stages(MAX_STAGES, 1))));
    assert!(is_rejected(json!(stages(MAX_STAGES + 1, 1))));
    assert!(!is_rejected(json!(stages(1, MAX_STEPS))));
    assert!(is_rejected(json!(stages(1, MAX_STEPS + 1))));
    assert!(is_rejected(json!([{"id": "s", "notes": "x".repeat(MAX_PLAN_BYTES)}])));
}
