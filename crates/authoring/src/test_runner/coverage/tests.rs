//! Tests of the coverage counts with real sessions.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_runner::coverage::coverage::{Coverage, Figure};
use crate::test_runner::coverage::item::{CoverageItem, ItemKind};
use crate::test_runner::played::{Played, play};

/// Everything that ran, as `part ×count`, with the file name as prefix unless it is the script.
fn ran(played: &Played) -> Vec<String> {
    let mut coverage = Coverage::default();
    coverage.add(&played.program, &played.events);
    covered_lines(&coverage)
}

fn covered_lines(coverage: &Coverage) -> Vec<String> {
    let mut lines = Vec::new();
    for covered in coverage.files() {
        let name = covered.outline.file.name().rsplit(['/', '\\']).next().unwrap().to_owned();
        let file = if name == "script.yaml" { String::new() } else { format!("{name}: ") };
        for item in covered.items() {
            let tally = covered.tally(item);
            let words = item.key.words().to_string();
            if tally.ran > 0 {
                lines.push(format!("{file}{words} ×{}", tally.ran));
            }
            if tally.skipped > 0 {
                lines.push(format!("{file}{words} skipped ×{}", tally.skipped));
            }
            for ((action, reason), times) in &covered.counts.exits {
                if item.key.what() == ItemKind::Action && item.key.id() == action {
                    lines.push(format!("{file}{words} ends {reason} ×{times}"));
                }
            }
        }
    }
    lines
}

/// A script with these lines below `session:`.
fn script(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("  {line}\n")).collect();
    format!("session:\n  session_id: s\n{lines}")
}

/// A script of one topic with these actions, in flow style.
fn topic(head: &str, actions: &str) -> String {
    let actions: String = actions.lines().map(|line| format!("          - {line}\n")).collect();
    let head: String = head.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "session:\n  session_id: s\n{head}  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{actions}"
    )
}

const YES: &str = "{content: 好, EXIT: 'YES'}";
const BLOCKED: &str = "{content: 嗯, EXIT: 'NO', progress_suggestion: blocked}";
const ASK: &str = "{content: 问, EXIT: 'NO'}";

#[test]
fn parts_with_a_false_condition_are_skipped_and_not_covered() {
    let text = script(
        "declare: [{ var: grown, value: false }]
phases:
  - phase_id: first
    topics:
      - topic_id: hello
        actions:
          - { action_type: set, action_id: one, config: { values: { x: 1 } } }
          - { action_type: set, action_id: two, condition: grown, config: { values: { x: 2 } } }
      - { topic_id: work, condition: grown, actions: [{ action_type: set, action_id: three, config: { values: { x: 3 } } }] }
  - phase_id: second
    condition: grown
    topics: [{ topic_id: later, actions: [{ action_type: set, action_id: four, config: { values: { x: 4 } } }] }]",
    );
    let played = play(&[("script.yaml", &text)], "", &[]);
    let expected = [
        "phase first ×1",
        "topic hello ×1",
        "action one ×1",
        "action one ends exit_criteria_met ×1",
        "action two skipped ×1",
        "topic work skipped ×1",
        "phase second skipped ×1",
    ];
    assert_eq!(ran(&played), expected);
}

#[test]
fn a_route_is_covered_only_in_the_table_that_it_was_taken_from() {
    let text = script(
        "on_exit: { user_blocked: skip_topic, max_rounds_reached: next, exit_criteria_met: end }
phases:
  - phase_id: p
    on_exit: { user_blocked: next, max_rounds_reached: next }
    topics:
      - topic_id: t
        on_exit: { user_blocked: next }
        actions:
          - action_type: ai_ask
            action_id: a
            on_exit: { user_blocked: next, exit_criteria_met: next }
            config: { content: 一, max_rounds: 2 }
          - { action_type: ai_ask, action_id: b, config: { content: 二, max_rounds: 2 } }
          - { action_type: ai_ask, action_id: c, config: { content: 三, max_rounds: 2 } }
          - { action_type: ai_ask, action_id: d, config: { content: 四, max_rounds: 2 } }",
    );
    let replies = format!("a: [{ASK}, {BLOCKED}]\nb: [{ASK}, {BLOCKED}]\nc: [{ASK}, {ASK}, {ASK}]\nd: [{ASK}, {YES}]");
    let played = play(&[("script.yaml", &text)], &replies, &["1", "2", "3", "4", "5"]);
    let routes: Vec<String> = ran(&played).into_iter().filter(|line| line.starts_with("route")).collect();
    let expected = [
        "route exit_criteria_met of session s ×1",
        "route max_rounds_reached of phase p ×1",
        "route user_blocked of topic t ×1",
        "route user_blocked of action a ×1",
    ];
    assert_eq!(routes, expected);
}

#[test]
fn each_case_of_a_condition_is_a_separate_branch() {
    let cases = "cases: [{ when: x == 1, set: { y: 1 } }, { when: x == 2, set: { y: 1 } }, { when: x == 3, goto: t }, \
                 { when: x == 4, actions: [{ action_type: set, action_id: inner, config: { values: { y: 2 } } }] }], \
                 else: { set: { y: 1 } }";
    let text = |x: u8| {
        let choose =
            "{ action_type: condition, action_id: choose, on_exit: { exit_criteria_met: next }, config: { CASES } }";
        let text = topic(
            &format!("declare: [{{ var: x, value: {x} }}]"),
            &format!(
                "{}\n{{ action_type: set, action_id: out, config: {{ values: {{ x: 9 }} }} }}",
                choose.replace("CASES", cases)
            ),
        );
        // A `goto` back would loop forever.
        text.replace("          actions:\n", "          condition: x != 9\n          actions:\n")
            .replace("when: x == 3, goto: t", "when: x == 3, goto: u")
            + "        - topic_id: u\n          actions: [{ action_type: set, action_id: last, config: { values: { y: 5 } } }]\n"
    };
    let of = |x: u8| {
        let played = play(&[("script.yaml", &text(x))], "", &[]);
        let is_relevant =
            |line: &String| ["case", "else", "action inner ×", "route"].iter().any(|start| line.starts_with(start));
        ran(&played).into_iter().filter(is_relevant).collect::<Vec<_>>()
    };
    let taken = "route exit_criteria_met of action choose ×1";
    assert_eq!(of(1), [taken, "case 1 of choose ×1"]);
    assert_eq!(of(2), [taken, "case 2 of choose ×1"]);
    // The case itself has a target: no route table is used.
    assert_eq!(of(3), ["case 3 of choose ×1"]);
    assert_eq!(of(4), [taken, "case 4 of choose ×1", "action inner ×1"]);
    assert_eq!(of(5), [taken, "else of choose ×1"]);
}

#[test]
fn a_case_counts_even_if_the_session_ends_at_its_first_action() {
    let text = topic(
        "",
        "{ action_type: condition, action_id: choose, config: { cases: [{ when: true, actions: [{ action_type: ai_ask, action_id: inner, config: { content: 问, delivery: verbatim } }] }] } }",
    );
    let played = play(&[("script.yaml", &text)], "", &[]);
    let expected = ["phase p ×1", "topic t ×1", "action choose ×1", "case 1 of choose ×1", "action inner ×1"];
    assert_eq!(ran(&played), expected);
}

const CALM: &str = "skill:
  skill_id: calm
  actions:
    - action_type: ai_say
      action_id: a
      config: { content: 没关系, delivery: verbatim }
    - { action_type: set, action_id: rest, condition: false, config: { values: { z: 1 } } }
";

#[test]
fn a_skill_of_another_file_counts_under_its_own_file_despite_equal_ids() {
    let text = topic(
        "triggers: [{ trigger_id: alarm, when: \"last_user_message is regex('怕')\", insert: calm }]",
        "{ action_type: ai_ask, action_id: a, config: { content: 问, delivery: verbatim } }\n{ action_type: use_skill, action_id: u, config: { skill: calm } }",
    );
    let files = [("script.yaml", text.as_str()), ("skills/calm.yaml", CALM)];
    let played = play(&files, &format!("a: [{YES}]"), &["我怕"]);
    let expected = [
        "trigger alarm ×1",
        "phase p ×1",
        "topic t ×1",
        "action a ×1",
        "action a ends exit_criteria_met ×1",
        "action u ×1",
        "action u ends exit_criteria_met ×1",
        "calm.yaml: skill calm ×2",
        "calm.yaml: action a ×2",
        "calm.yaml: action a ends exit_criteria_met ×2",
        "calm.yaml: action rest skipped ×2",
    ];
    assert_eq!(ran(&played), expected);
}

#[test]
fn an_inserted_action_counts_as_the_action_of_the_script() {
    let text = topic(
        "triggers: [{ trigger_id: alarm, when: \"last_user_message is regex('怕')\", insert: help, then: end }]",
        "{ action_type: ai_ask, action_id: a, on_exit: { user_blocked: { insert: help, then: resume } }, config: { content: 问, max_rounds: 3 } }\n\
         { action_type: ai_say, action_id: help, condition: false, config: { content: 帮, delivery: verbatim } }",
    );
    let played = play(&[("script.yaml", &text)], &format!("a: [{ASK}, {BLOCKED}, {ASK}]"), &["1", "我怕"]);
    let expected = [
        "trigger alarm ×1",
        "phase p ×1",
        "topic t ×1",
        "action a ×1",
        "action a ends user_blocked ×1",
        "route user_blocked of action a ×1",
        "action help ×2",
        "action help ends exit_criteria_met ×2",
    ];
    assert_eq!(ran(&played), expected);
}

#[test]
fn a_for_each_body_counts_once_per_element_and_is_skipped_for_an_empty_list() {
    let text = |list: &str| {
        topic(
            &format!("declare: [{{ var: list, value: {list} }}]"),
            "{ action_type: set, action_id: a, config: { values: { y: 1 } } }",
        )
        .replace("          actions:\n", "          for_each: { in: list, as: one }\n          actions:\n")
    };
    let of = |list| ran(&play(&[("script.yaml", &text(list))], "", &[]));
    let expected =
        ["phase p ×1", "topic t ×2", "for_each of topic t ×2", "action a ×2", "action a ends exit_criteria_met ×2"];
    assert_eq!(of("[母亲, 父亲]"), expected);
    assert_eq!(of("[]"), ["phase p ×1", "topic t skipped ×1"]);
}

#[test]
fn insertions_of_a_planned_action_count_but_the_action_itself_does_not() {
    let text = topic(
        "skills: [{ skill_id: calm, actions: [{ action_type: ai_say, action_id: b, config: { content: 好, delivery: verbatim } }] }]",
        "{ action_type: ai_ask, action_id: a, config: { content: 问, delivery: verbatim } }",
    );
    let played = play(&[("script.yaml", &text)], "", &[]);
    let started = |action: &str, path: &str| json!({ "type": "action_started", "location": { "phase_id": "p", "topic_id": "t", "action_id": action, "path": path } });
    let events = [started("new", "t/new"), started("b", "t/new/calm#2/b"), started("a", "t#2/a")];
    let mut coverage = Coverage::default();
    coverage.add(&played.program, &events);
    assert_eq!(covered_lines(&coverage), ["skill calm ×1", "action b ×1", "action a ×1"]);
}

#[test]
fn every_part_has_its_source_lines() {
    let text = "session:
  session_id: s
  onExit:
    off_topic: next
    user_blocked:
      insert: calm
  triggers:
    - trigger_id: alarm
      when: last_user_message == 'x'
      insert: calm
  phases:
    - phase_name: 开场
      phase_id: p
      topics:
        - topic_id: t
          for_each: { in: list, as: one }
          actions:
            - action_type: condition
              action_id: choose
              config:
                cases:
                  - when: 1 == 1
                    actions:
                      - action_type: set
                        action_id: inner
                        config: { values: { topic_id: 5 } }
                else:
                  set: { x: 2 }
  declare: [{ var: list, type: list }]
  skills:
    - skill_id: calm
      actions:
        - { action_type: set, action_id: rest, config: { values: { z: 1 } } }
";
    let played = play(&[("script.yaml", text)], "", &[]);
    let mut coverage = Coverage::default();
    coverage.register(&played.program);
    let covered = coverage.files().next().unwrap();
    let lines = |item: &&CoverageItem| format!("{}–{} {}", item.line, item.last_line, item.key.words());
    let lines_of_items: Vec<String> = covered.items().iter().map(lines).collect();
    let expected = [
        "4–4 route off_topic of session s",
        "5–6 route user_blocked of session s",
        "8–10 trigger alarm",
        "12–28 phase p",
        "15–28 topic t",
        "16–16 for_each of topic t",
        "18–28 action choose",
        "22–26 case 1 of choose",
        "24–26 action inner",
        "28–28 else of choose",
        "31–33 skill calm",
        "33–33 action rest",
    ];
    assert_eq!(lines_of_items, expected);
    assert_eq!(coverage.total(), Figure { covered: 0, total: 12 });
}

#[test]
fn endings_are_counted_separately_by_the_possible_exit_reasons() {
    let text = topic(
        "",
        "{ action_type: ai_say, action_id: a, config: { content: 好, delivery: verbatim } }\n{ action_type: ai_ask, action_id: b, config: { content: 问, max_rounds: 3 } }",
    );
    let played = play(&[("script.yaml", &text)], &format!("b: [{ASK}, {BLOCKED}, {YES}]"), &["1", "2"]);
    let mut coverage = Coverage::default();
    coverage.add(&played.program, &played.events);
    let covered = coverage.files().next().unwrap();
    // One of one, and two of four.
    assert_eq!(covered.endings(), Figure { covered: 3, total: 5 });
    assert_eq!((covered.exits("b", "user_blocked"), covered.exits("b", "off_topic")), (1, 0));
    assert_eq!(covered.total(), Figure { covered: 4, total: 4 });
}

#[test]
fn a_share_is_never_rounded_up_to_one_hundred_percent() {
    let percent = |covered, total| Figure { covered, total }.percent();
    assert_eq!(percent(1999, 2000), "99.9%");
    assert_eq!(percent(2, 3), "66.6%");
    assert_eq!((percent(3, 3), percent(0, 7), percent(0, 0)), ("100%".into(), "0.0%".into(), "–".into()));
    let reaches = |covered, total, least| Figure { covered, total }.reaches(least);
    assert!(reaches(2, 3, 66) && !reaches(2, 3, 67) && reaches(0, 0, 100) && !reaches(1999, 2000, 100));
}

/// Some sessions of two scripts that share a skill.
fn some() -> Vec<Played> {
    let one = topic(
        "on_exit: { user_blocked: { insert: calm, then: resume } }",
        "{ action_type: ai_ask, action_id: q, config: { content: 问, max_rounds: 3 } }",
    );
    let two = topic("declare: [{ var: z }]", "{ action_type: use_skill, action_id: u, config: { skill: calm } }");
    let one = [("script.yaml", one.as_str()), ("skills/calm.yaml", CALM)];
    let two = [("script.yaml", two.as_str()), ("skills/calm.yaml", CALM)];
    vec![
        play(&one, &format!("q: [{ASK}]"), &[]),
        play(&one, &format!("q: [{ASK}, {YES}]"), &["1"]),
        play(&one, &format!("q: [{ASK}, {BLOCKED}, {YES}]"), &["1", "2"]),
        play(&two, "", &[]),
    ]
}

#[test]
fn merged_coverage_equals_the_coverage_of_all_sessions() {
    let sessions = some();
    let all = |numbers: &[usize]| {
        let mut coverage = Coverage::default();
        for session in numbers.iter().filter_map(|number| sessions.get(*number)) {
            coverage.add(&session.program, &session.events);
        }
        coverage
    };
    let state = |coverage: &Coverage| {
        let of = |covered: &crate::test_runner::coverage::coverage::Covered| {
            (covered.outline.id.clone(), covered.sessions, covered.total(), covered.endings())
        };
        (coverage.files().map(of).collect::<Vec<_>>(), covered_lines(coverage))
    };
    proptest!(|(numbers in prop::collection::vec((0..4_usize, 0..3_usize), 0..12))| {
        let of = |part: usize| -> Vec<usize> {
            numbers.iter().filter(|(_, of)| *of == part).map(|(number, _)| *number).collect()
        };
        let mut merged = all(&of(0));
        merged.merge(all(&of(1)));
        merged.merge(all(&of(2)));
        let mut backwards = all(&of(2));
        backwards.merge(all(&of(1)));
        backwards.merge(all(&of(0)));
        let all_numbers: Vec<usize> = numbers.iter().map(|(number, _)| *number).collect();
        prop_assert_eq!(state(&merged), state(&all(&all_numbers)));
        prop_assert_eq!(state(&backwards), state(&all(&all_numbers)));
    });
}

#[test]
fn unknown_events_are_ignored() {
    let played = play(
        &[("script.yaml", &topic("", "{ action_type: set, action_id: a, config: { values: { x: 1 } } }"))],
        "",
        &[],
    );
    let strange: Vec<Value> = vec![
        json!(null),
        json!([]),
        json!({ "type": "action_started" }),
        json!({ "type": "action_started", "location": { "action_id": "a", "path": "" } }),
        json!({ "type": "action_started", "location": { "action_id": "a", "topic_id": "gone", "path": "gone/x/y/a" } }),
        json!({ "type": "routed", "location": {}, "reason": "no", "table": "topic" }),
        json!({ "type": "outcome", "location": { "action_id": "a", "topic_id": "t", "path": "t/a" }, "metadata": { "branch": "case 9" } }),
        json!({ "type": "phase_entered", "location": { "phase_id": "gone" } }),
    ];
    let mut coverage = Coverage::default();
    coverage.add(&played.program, &strange);
    assert_eq!(coverage.total().covered, 0);
}

#[test]
#[ignore = "writes the page of the repository's own scripts to $COVERAGE_PAGE, to be looked at"]
fn the_page_of_our_own_scripts() {
    use crate::test_runner::coverage::html::page::html;
    use crate::test_runner::played::play_file;
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut coverage = Coverage::default();
    let empty = tempfile::tempdir().unwrap();
    let none = empty.path().join("replies.yaml");
    std::fs::write(&none, "replies: {}").unwrap();
    let answers = std::fs::read_to_string(root.join("examples/cbt_anxiety.answers.txt")).unwrap();
    let answers: Vec<&str> = answers.lines().take(6).collect();
    for (name, replies, answers) in [
        ("cbt_anxiety", root.join("examples/cbt_anxiety.replies.yaml"), answers.as_slice()),
        ("interview_en", none.clone(), &[]),
        ("cbt_intake", none, &[]),
    ] {
        let played = play_file(&root.join(format!("scripts/{name}.yaml")), &replies, answers);
        coverage.add(&played.program, &played.events);
    }
    let shown = coverage.renamed(|name| name.rsplit("/scripts/").next().map(|end| format!("scripts/{end}")).unwrap());
    let place = std::env::var("COVERAGE_PAGE").unwrap();
    std::fs::write(place, html(&shown)).unwrap();
    println!(
        "{}",
        crate::test_runner::coverage::table::table(&shown, false, bcc_lang::message::language::Language::English)
    );
}
