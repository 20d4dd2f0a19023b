//! Tests of pipes: one line is one answer, and only the messages of the AI are printed.

use super::*;

#[test]
fn only_the_messages_of_the_ai_go_to_standard_output() {
    let home = Home::new();
    let finished = talk(&home, &[], ANSWERS);
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let words = "你好。\n怎么称呼你？\n小林，你几岁？\n你的密码？\n讲个故事吧。\n再见，小林。\n";
    assert_eq!(finished.out, words);
    assert_eq!(finished.err.lines().count(), 2, "{}", finished.err);
    for notice in ["no model is configured", "no template scheme is named"] {
        assert!(finished.err.contains(notice), "{}", finished.err);
    }
}

#[test]
fn a_line_is_an_answer_whatever_ends_it_and_an_empty_line_is_one_too() {
    let home = Home::new();
    let finished = talk(&home, &[], "小林\r\n\n35\n  \n芝麻开门\nno end");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(user_messages(&home), ["小林", "", "35", "  ", "***", "no end"]);
}

#[test]
fn the_end_of_input_saves_the_session_and_it_can_be_continued() {
    let home = Home::new();
    let finished = talk(&home, &[], "小林\n35\n");
    assert_eq!(finished.code, Some(3));
    assert!(finished.err.contains("Resume with: bcc-script sessions resume t\n"), "{}", finished.err);
    let finished = home.finish(["sessions", "resume", "t"], "芝麻开门\n");
    assert_eq!((finished.code, finished.out.as_str()), (Some(3), "讲个故事吧。\n"), "{}", finished.err);
    let finished = talk(&home, &[], "从前\n");
    assert_eq!((finished.code, finished.out.as_str()), (Some(0), "再见，小林。\n"), "{}", finished.err);
    assert_eq!(user_messages(&home), ["小林", "35", "***", "从前"]);
}

#[test]
fn input_lines_wait_for_their_question_and_unused_ones_are_reported() {
    let home = Home::new();
    let finished = talk(&home, &[], format!("{ANSWERS}one too many\n"));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(user_messages(&home), ["小林", "35", "***", "从前"]);
    assert!(finished.err.contains("warning: unused lines of input: 1; the session asked"), "{}", finished.err);
    assert!(!finished.err.contains("one too many"), "{}", finished.err);
}

#[test]
fn a_failed_session_prints_the_reason_to_standard_error_and_exits_with_1() {
    let home = Home::new();
    let finished = run(&home, "failing.yaml", &[], "不说\n");
    assert_eq!(finished.code, Some(1));
    assert_eq!(finished.out, "你几岁？\n");
    assert!(finished.err.contains("`age >= 18`"), "{}", finished.err);
    // A failed session cannot be resumed.
    assert_eq!(sessions(&home, &["resume", "t"]).code, Some(4));
}

#[test]
fn only_the_owner_can_read_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    talk(&home, &[], "小林\n");
    let mode = std::fs::metadata(home.store()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
