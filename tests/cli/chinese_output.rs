//! Chinese output, through the program: what was once written in English between Chinese words, numbers as the person wrote them, and
//! errors with the action in which they occur.

use crate::process::{Finished, Home};
use crate::pseudo_terminal::Terminal;

const SCRIPT: &str = "
session:
  session_id: 首访
  declare:
    - { var: 金额, type: number }
    - { var: 分, type: integer, value: 3 }
    - { var: 列, type: list, value: [甲] }
    - { var: 手机, type: string, sensitive: true }
  skills:
    - skill_id: 安慰
      actions:
        - { action_type: ai_say, action_id: 安慰说, config: { content: 慢慢来。 } }
  phases:
    - phase_id: 开场
      topics:
        - topic_id: 花费
          actions:
            - action_type: ai_ask
              action_id: 问金额
              on_exit:
                user_blocked: { insert: 安慰, then: resume }
                off_topic: { goto: 花费 }
              config: { content: 花了多少？, output: [{ get: 金额, define: 金额 }, { get: 手机, define: 手机 }] }
            - { action_type: ai_say, action_id: 说金额, config: { content: '一共 {{ 金额 }} 元', delivery: verbatim } }
            - { action_type: set, action_id: 甲设, config: { values: { 分: '{{ 列 | first }}' } } }
            - { action_type: set, action_id: 乙设, config: { values: { 分: '{{ (列 | first) + 1 }}' } } }
";

const TEST: &str = "
test: 金额
script: 首访.yaml
model:
  问金额: [{ content: 花了多少？ }, { content: 好, EXIT: \"YES\", 金额: 很多, 手机: '13800001111' }]
dialogue:
  - user: 很多
  - expect: { variables: { 手机: 13800001111 } }
";

fn chinese(arguments: &[&str], input: &str) -> Finished {
    let home = Home::new();
    home.file("首访.yaml", SCRIPT);
    home.file("首访_test.yaml", TEST);
    home.finish([&["--lang", "zh"], arguments].concat(), input)
}

#[track_caller]
fn assert_has(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "no `{part}` in\n{shown}");
    }
}

#[test]
fn the_offline_responder_keeps_the_digits_of_the_answer_and_errors_name_their_action() {
    let finished = chinese(&["run", "首访.yaml"], "8500.50\n");
    assert_has(&finished.out, &["一共 8500.50 元"]);
    let errors = [
        "错误：`分` 声明为 integer，不能存放所给的值（动作 `甲设`）",
        "不能用于文本和数字（在 `(列 | first) + 1` 中）（动作 `乙设`）",
    ];
    assert_has(&finished.err, &errors);
}

#[test]
fn reports_of_tests_and_coverage_have_no_english_words() {
    let finished = chinese(&["test", "首访_test.yaml", "--coverage"], "");
    let shown = finished.out + &finished.err;
    assert_has(
        &shown,
        &["变量 `手机` 的值不同", "***（文本）", "动作“问金额”的路由 user_blocked", "技能“安慰”，及其中的内容"],
    );
    assert!(!["route user", "skill 安", "variable "].iter().any(|english| shown.contains(english)), "{shown}");
}

#[test]
fn the_notes_of_a_rendered_prompt_are_chinese_and_its_help_names_no_action_that_is_refused() {
    let render = |action: &str| chinese(&["templates", "render", "--script", "首访.yaml", "--action", action], "");
    assert_has(&render("安慰说").err, &["在技能 `安慰` 中"]);
    let refused = render("说金额").err;
    assert_has(&refused, &["可能调用模型的动作有 `问金额`、`安慰说`"]);
    assert_eq!(refused.matches("`说金额`").count(), 1, "{refused}");
}

#[test]
fn the_commands_of_a_conversation_tell_of_insertions_and_replies_in_chinese() {
    let home = Home::new();
    let ask =
        r#"[{"content": "花了多少？"}, {"content": "再想想？", "progress_suggestion": "blocked", "金额": "很多"}]"#;
    home.file("replies.json", &format!(r#"{{"replies": {{"问金额": {ask}, "安慰说": [{{"content": "慢慢来。"}}]}}}}"#));
    // The skill waits for an answer, so that the session stands in it.
    let script =
        SCRIPT.replace("config: { content: 慢慢来。 }", "config: { content: 慢慢来。, require_acknowledgment: true }");
    home.file("首访.yaml", &script);
    let mut terminal =
        Terminal::start(&home, &["--lang", "zh", "run", "首访.yaml", "--model", "replay:replies.json"], false);
    terminal.until("花了多少？");
    terminal.answers("很多");
    terminal.until("慢慢来。");
    terminal.answers("/where");
    terminal.until("因问金额的 user_blocked 插入，然后：resume");
    terminal.answers("/why");
    terminal.until("应为数字或空值，实际是文本");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
}
