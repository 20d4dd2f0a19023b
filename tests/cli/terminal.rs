//! Tests of `run` in a terminal: output, input and interrupts.

use crate::process;
use crate::pseudo_terminal as terminal;
use crate::server;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use process::{Home, POLL_INTERVAL, TIMEOUT, fixture};
use server::{Server, ServerBehavior};
use terminal::{BACKSPACE, CTRL_C, CTRL_D, HOME, LEFT, Terminal, UP};

/// A terminal with the conversation of `two_phases.yaml` as session `t`.
fn talk(home: &Home) -> Terminal {
    let script = home.script("two_phases.yaml");
    Terminal::start(home, &["run", script.to_str().unwrap(), "--session", "t"], false)
}

fn resumed(home: &Home, command: &[String]) -> Terminal {
    Terminal::start(home, &command.iter().map(String::as_str).collect::<Vec<_>>(), false)
}

fn variable(home: &Home, name: &str) -> Value {
    home.export("t")["variables"]["session"][name]["value"].clone()
}

#[test]
fn a_person_completes_a_conversation_and_sees_its_progress() {
    let home = Home::new();
    let mut terminal = talk(&home);
    terminal.until("/help lists the commands, /quit saves and leaves");
    terminal.until("no model is configured");
    terminal.until("── 第一段 › 打招呼 ──");
    terminal.until("你好。");
    terminal.until("怎么称呼你？");
    terminal.answers("小林");
    terminal.until("── 第一段 › 数字 ──");
    terminal.until("小林，你几岁？");
    terminal.answers("不说");
    terminal.until("小林，你几岁？");
    terminal.answers("35");
    terminal.answers("芝麻开门");
    terminal.until("── 第二段 › 故事 ──");
    terminal.until("讲个故事吧。");
    terminal.answers("从前");
    terminal.until("再见，小林。");
    terminal.until("── session t is complete ──");
    assert_eq!(terminal.end(), Some(0));
    let shown = terminal.all_output();
    for once in ["第一段 › 打招呼", "第一段 › 数字", "第二段 › 故事", "你好。", "怎么称呼你？", "/help"]
    {
        assert_eq!(shown.matches(once).count(), 1, "{once} in {shown}");
    }
}

#[test]
fn the_text_of_a_retried_reply_is_erased_before_the_next_is_shown() {
    let home = Home::new();
    let action = "{ action_type: ai_ask, action_id: ask, config: { content: 问, reask: 1 } }";
    let text = format!(
        "session:\n  session_id: again\n  phases: [{{ phase_id: p, topics: [{{ topic_id: t, actions: [{action}] }}] }}]\n"
    );
    let script = home.file("again.yaml", &text);
    let broken = "{\"safety_risk\":{\"detected\":false},\"content\":\"先这样说。\",\"EXIT\":";
    let good = "{ safety_risk: { detected: false }, content: 那就这样问。, EXIT: NO }";
    let replies = home.file("replies.yaml", &format!("replies:\n  ask:\n    - '{broken}'\n    - {good}\n"));
    let model = format!("replay:{}", replies.display());
    let mut terminal = Terminal::start(&home, &["run", script.to_str().unwrap(), "--model", &model], false);
    terminal.until("先这样说。");
    terminal.until("(the text above was discarded)");
    terminal.until("那就这样问。");
    terminal.prompt();
    let shown = terminal.all_output();
    assert_eq!(shown.matches("(the text above was discarded)").count(), 1, "{shown}");
    assert_eq!(shown.matches("那就这样问。").count(), 1, "{shown}");
    terminal.types(CTRL_D);
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn chinese_text_is_edited_by_whole_characters() {
    let home = Home::new();
    let mut terminal = talk(&home);
    terminal.prompt();
    terminal.types("小林木");
    terminal.until("小林木");
    terminal.types(BACKSPACE);
    terminal.types(LEFT);
    // The cursor is on a character that is two columns wide.
    terminal.until("\u{1b}[2D");
    terminal.types("森");
    terminal.types(HOME);
    terminal.types("大\r");
    terminal.until("大小森林，你几岁？");
    terminal.prompt();
    // The arrow up recalls the previous answer, which can be edited, too.
    terminal.types(&format!("{UP}{BACKSPACE}木35\r"));
    terminal.until("你的密码？");
    terminal.answers(CTRL_D);
    assert_eq!(terminal.end(), Some(3));
    assert_eq!(variable(&home, "name"), "大小森林");
    assert_eq!(variable(&home, "age"), 35);
    let transcript = home.export("t")["transcript"].clone();
    assert_eq!(transcript[4]["text"], "大小森木35", "{transcript}");
}

#[test]
fn a_backslash_at_the_end_continues_the_line_and_an_empty_line_says_nothing() {
    let home = Home::new();
    let mut terminal = talk(&home);
    terminal.answers("");
    terminal.answers("   ");
    terminal.answers("第一行\\");
    terminal.until("… ");
    terminal.types("第二行\\\r");
    terminal.until("… ");
    terminal.types("第三行\r");
    terminal.until("你几岁？");
    terminal.answers("//quit is what I said");
    terminal.until("你几岁？");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    assert_eq!(variable(&home, "name"), "第一行\n第二行\n第三行");
    let transcript = home.export("t")["transcript"].clone();
    assert_eq!(transcript[4]["text"], "/quit is what I said", "{transcript}");
    assert_eq!(transcript.as_array().unwrap().len(), 6, "{transcript}");
}

#[test]
fn commands_answer_the_author_and_send_nothing_to_the_ai() {
    let home = Home::new();
    let mut terminal = talk(&home);
    terminal.answers("/vars");
    terminal.until("no variable has a value yet");
    terminal.answers("/help");
    for command in ["/vars", "/where", "/why", "/why raw", "/plan", "/prompt", "/back", "/quit"] {
        terminal.until(command);
    }
    terminal.answers("/nothing");
    terminal.until("there is no command /nothing; /help lists the commands");
    terminal.answers("小林");
    terminal.answers("35");
    terminal.answers("芝麻开门");
    terminal.answers("/vars");
    terminal.until("name = \"小林\"   (ask_name, round 1)");
    terminal.until("age = 35   (ask_age, round 1)");
    terminal.until("code = ***");
    terminal.answers("/where");
    terminal.until("second › stories › ask_story, round 1");
    terminal.answers("从前\\");
    terminal.until("… ");
    terminal.types(CTRL_C);
    assert_eq!(terminal.end(), Some(130));
    assert!(!terminal.all_output().contains("芝麻开门\""), "a sensitive value is shown");
    assert_eq!(home.export("t")["transcript"].as_array().unwrap().len(), 8);
}

#[test]
fn back_takes_the_last_answer_back_and_shows_its_question_again() {
    let home = Home::new();
    let mut terminal = talk(&home);
    terminal.until("怎么称呼你？");
    terminal.answers("/back");
    terminal.until("there is no answer to take back");
    terminal.answers("小林");
    terminal.until("小林，你几岁？");
    terminal.answers("35");
    terminal.until("你的密码？");
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    terminal.until("小林，你几岁？");
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    terminal.until("── 第一段 › 打招呼 ──");
    terminal.until("怎么称呼你？");
    terminal.answers("大林");
    terminal.until("大林，你几岁？");
    terminal.answers("/why all");
    terminal.until("taken back");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    assert_eq!(variable(&home, "name"), "大林");
    let transcript = home.export("t")["transcript"].clone();
    let texts: Vec<&str> = transcript.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["你好。", "怎么称呼你？", "大林", "大林，你几岁？"]);
}

#[test]
fn cells_that_follow_an_answer_are_shown_again_when_it_was_taken_back() {
    let home = Home::new();
    let ask = |id: &str| {
        format!(
            "{{ action_type: ai_ask, action_id: {id}, config: {{ content: {id}?, delivery: verbatim, max_rounds: 1, monitor: off }} }}"
        )
    };
    let add = "{ action_type: add, action_id: add, config: { content: A new cell. } }";
    let actions = [&ask("First"), add, &ask("Second"), &ask("Third")].join(", ");
    let topic = format!("{{ topic_id: t, actions: [{actions}] }}");
    home.file("nb.yaml", &format!("session: {{ session_id: nb, phases: [{{ phase_id: p, topics: [{topic}] }}] }}"));
    let mut terminal = Terminal::start(&home, &["run", "nb.yaml", "--session", "t", "--model", "offline"], false);
    terminal.until("First?");
    terminal.answers("yes");
    terminal.until("A new cell.");
    terminal.until("Second?");
    terminal.answers("/back");
    terminal.until("First?");
    terminal.answers("no");
    terminal.until("A new cell.");
    terminal.until("Second?");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn back_names_the_variables_of_the_user_that_are_not_undone() {
    let home = Home::new();
    let script = home.file(
        "visits.yaml",
        "session:
  session_id: visits
  declare: [{ var: visits, type: integer, value: 0, scope: global }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: First? } }
            - { action_type: set, action_id: count, config: { values: { visits: '{{ visits + 1 }}' } } }
            - { action_type: ai_ask, action_id: second, config: { content: Second? } }
",
    );
    let arguments = ["--lang", "zh", "run", script.to_str().unwrap(), "--session", "t"];
    let mut terminal = Terminal::start(&home, &arguments, false);
    terminal.until("First?");
    terminal.answers("yes");
    terminal.until("Second?");
    terminal.answers("/back");
    terminal.until("（您上一次的回答已撤回）");
    terminal.until("（以下内容不会撤销：为以后的会话保留的变量 visits）");
    terminal.until("First?");
    // The editor reads from here on.
    terminal.until("> ");
    terminal.types(CTRL_D);
    assert_eq!(terminal.end(), Some(3));
    assert_eq!(home.export("t")["variables"]["global"]["visits"]["value"], 1);
}

#[test]
fn why_tells_how_a_reply_was_read_and_prompt_what_was_sent() {
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    let replies = serde_json::json!({ "replies": {
        "hello": [{ "content": "你好。" }],
        "ask_name": [
            { "content": "怎么称呼你？", "EXIT": "NO" },
            "<<not what was asked for>>",
            { "content": "", "EXIT": "YES", "name": 7, "progress_suggestion": "completed",
              "metrics": { "user_engagement": "很投入" } },
        ],
        "ask_age": [{ "content": "几岁？", "EXIT": "NO" }],
    }});
    let model = format!("replay:{}", home.file("replies.json", &replies.to_string()).display());
    let arguments = ["run", script.to_str().unwrap(), "--session", "t", "--model", &model];
    let mut terminal = Terminal::start(&home, &arguments, false);
    terminal.answers("小林");
    terminal.until("the model's reply could not be read; /why shows details");
    terminal.answers("/why");
    terminal.until("ask_name (round 1 of 3)");
    terminal.until("direct_parse → trim_and_parse → extract_json_block");
    terminal.until("final error");
    assert!(!terminal.all_output().contains("<<not"), "the raw reply is shown unasked");
    terminal.answers("/why raw");
    terminal.until("<<not what was asked for>>");
    terminal.answers("小林");
    terminal.until("几岁？");
    terminal.answers("/prompt");
    terminal.until("[system]");
    terminal.until("怎么称呼你？");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
}

/// A terminal with the conversation of `detours.yaml`, which goes through a skill, a trigger and a list.
fn detours(home: &Home) -> Terminal {
    let script = home.script("detours.yaml");
    let replies = std::fs::read_to_string(fixture("detours.replies.json")).unwrap();
    let model = format!("replay:{}", home.file("replies.json", &replies).display());
    Terminal::start(home, &["run", script.to_str().unwrap(), "--session", "t", "--model", &model], false)
}

#[test]
fn why_where_and_plan_explain_decisions_and_notices_show_only_moves() {
    let home = Home::new();
    let mut terminal = detours(&home);
    terminal.answers("芝麻开门");
    terminal.until("今天怎么样？");
    let output = terminal.all_output();
    assert!(!output.contains("/why"), "a plain next is no news: {output}");
    terminal.answers("说不出来");
    terminal.until("(user_blocked at ask_mood: insert: comfort, then: resume; /why shows details)");
    terminal.until("先深呼吸一下，好吗？");
    terminal.answers("/why");
    terminal.until("── your answer at start/ask_mood, round 1: \"说不出来\" ──");
    terminal.until("completed    no, exit reason user_blocked");
    terminal.until("user_engagement: 很低，提到***");
    terminal.until("set          father_info = \"未完成\"");
    terminal.until("route        user_blocked → insert: comfort, then: resume   (on_exit of the action `ask_mood`)");
    terminal.until("started      start/ask_mood/comfort/breathe (ai_ask)");
    terminal.answers("/where");
    terminal.until("family › start › breathe, round 1 of 1   (path start/ask_mood/comfort/breathe, session t)");
    terminal.until("outside    ask_mood (ai_ask), round 1 of 3; waiting for the actions inside it");
    terminal.until("skill        comfort, inserted for user_blocked of ask_mood, then: resume");
    terminal.until("routes       1 of at most 100 since your last answer");
    terminal.answers("嗯");
    terminal.until("还能多说一点吗？");
    terminal.answers("我不想活了");
    terminal.until("(trigger crisis: insert: safety, then: resume; /why shows details)");
    terminal.until("你现在安全吗？");
    terminal.answers("/where");
    terminal.until("ask_mood (ai_ask), round 2 of 3, your answer is saved for it");
    terminal.until("inserted by the trigger crisis, then: resume");
    terminal.answers("/why 2");
    terminal.until("── your answer at start/ask_mood/comfort/breathe, round 1: \"嗯\" ──");
    terminal.until("trigger      crisis → insert: safety, then: resume   (`when` holds: last_user_message is regex");
    terminal.answers("安全");
    terminal.until("── 家庭 › 照料者 (母亲) ──");
    terminal.answers("她做饭");
    terminal.until("── 家庭 › 照料者 (外婆) ──");
    terminal.answers("/why");
    terminal.until("skipped      rest: its condition does not hold: tired");
    terminal.answers("/where");
    terminal.until("topic        people (照料者), element 2: 外婆");
    terminal.answers("/plan");
    terminal.until("the topic people@外婆:");
    terminal.until("▸ ask_story (ai_ask)");
    terminal.until("no plan was made for this topic");
    terminal.answers("/why all");
    terminal.until("entered      the phase 家庭 [family]");
    terminal.until("── your answer at start/ask_secret, round 1: \"***\" ──");
    terminal.answers("/why nonsense");
    terminal.until("/why does not accept `nonsense`");
    terminal.answers("她种花");
    terminal.until("is complete");
    assert_eq!(terminal.end(), Some(0));
}

/// The ways to leave the program, each with its exit code.
const EXITS: [(&str, i32); 3] = [(CTRL_C, 130), (CTRL_D, 3), ("/quit\r", 3)];

#[test]
fn leaving_prints_the_resume_command_which_repeats_the_last_question() {
    for (keys, code) in EXITS {
        let home = Home::new();
        let mut terminal = talk(&home);
        terminal.answers("小林");
        terminal.until("你几岁？");
        terminal.prompt();
        assert!(!terminal.is_cooked(), "the prompt does not edit");
        terminal.types(keys);
        let command = terminal.resume_command();
        assert_eq!(terminal.end(), Some(code), "{keys:?}");
        assert_eq!(command, ["sessions", "resume", "t"]);

        let mut terminal = resumed(&home, &command);
        terminal.until("/help lists the commands");
        // The last exchanges, and then the question that waits, under the names of its part.
        terminal
            .until("咨询师: 你好。\r\n咨询师: 怎么称呼你？\r\n来访者: 小林\r\n── 第一段 › 数字 ──\r\n小林，你几岁？");
        terminal.answers("35");
        terminal.answers("芝麻开门");
        terminal.answers("从前");
        terminal.until("is complete");
        assert_eq!(terminal.end(), Some(0));
    }
}

#[test]
fn a_resumed_terminal_shows_two_exchanges_and_no_sensitive_value() {
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    let arguments = ["run", script.to_str().unwrap(), "--session", "t"];
    home.finish(arguments, format!("{}\n35\n芝麻开门\n", "长".repeat(700)));
    for arguments in [&arguments[..], &["sessions", "resume"]] {
        let mut terminal = Terminal::start(&home, arguments, false);
        let shown = terminal.until("── 第二段 › 故事 ──\r\n讲个故事吧。");
        assert!(shown.contains("来访者: 35\r\n咨询师: 你的密码？\r\n来访者: ***\r\n"), "{shown}");
        assert!(!shown.contains("怎么称呼") && !shown.contains("芝麻开门"), "{shown}");
        assert!(shown.contains("长…") || !shown.contains("长长"), "a long message is cut: {shown}");
        terminal.answers(CTRL_D);
        assert_eq!(terminal.end(), Some(3));
    }
}

#[test]
fn the_resume_command_names_the_store_when_it_would_not_be_found() {
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    let store = home.path().join("another place.db");
    let arguments = ["run", script.to_str().unwrap(), "--session", "t", "--store", store.to_str().unwrap()];
    let mut terminal = Terminal::start(&home, &arguments, false);
    terminal.answers("/quit");
    terminal.until(&format!("sessions resume t --store '{}'", store.display()));
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn a_signal_at_the_prompt_saves_and_leaves_the_terminal_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let home = Home::new();
        let mut terminal = talk(&home);
        terminal.prompt();
        terminal.types("a line that is not finish");
        terminal.until("not finish");
        assert!(!terminal.is_cooked());
        terminal.signal(signal);
        let command = terminal.resume_command();
        assert_eq!(terminal.end(), Some(130), "{signal:?}");
        let mut terminal = resumed(&home, &command);
        terminal.until("怎么称呼你？");
        terminal.prompt();
    }
}

#[test]
fn ctrl_c_ends_a_turn_that_waits_for_the_model_and_the_answer_is_stored() {
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    let opening = ServerBehavior::Answers(
        r#"{"EXIT": "NO", "safety_risk": {"detected": false}, "content": "怎么称呼你？"}"#.into(),
    );
    let server = Server::start(vec![opening.clone(), opening, ServerBehavior::Hangs]);
    let config =
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", server.base_url);
    home.file("bcc-script.toml", &config);
    let arguments = ["run", script.to_str().unwrap(), "--session", "t", "--trust"];
    let mut terminal = Terminal::start(&home, &arguments, false);
    terminal.until("怎么称呼你？");
    terminal.answers("小林");
    let deadline = Instant::now() + TIMEOUT;
    while server.requests().len() < 3 {
        assert!(Instant::now() < deadline, "the model is not asked: {}", terminal.all_output());
        std::thread::sleep(POLL_INTERVAL);
    }
    assert!(terminal.is_cooked(), "a turn runs with the terminal as it was");
    terminal.types(CTRL_C);
    let mut command = terminal.resume_command();
    assert_eq!(terminal.end(), Some(130));

    // The same answer is judged; it is not requested again.
    command.extend(["--model", "offline"].map(str::to_owned));
    let mut terminal = resumed(&home, &command);
    terminal.until("小林，你几岁？");
    terminal.prompt();
}

#[test]
fn nothing_is_coloured_under_no_color_and_no_reply_can_colour_the_screen() {
    let colored = "\u{1b}[2m── 第一段 › 打招呼 ──\u{1b}[0m";
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    let arguments = ["run", script.to_str().unwrap()];
    let mut terminal = Terminal::start(&home, &arguments, true);
    terminal.until(colored);
    terminal.prompt();

    let replies = serde_json::json!({ "replies": {
        "hello": [{ "content": "\u{1b}[31mred\u{7}\r\u{9b}2J你好。" }], "ask_name": [{ "content": "怎么称呼你？" }],
    }});
    let replies = replies.to_string().replace('\u{9b}', "\\u009b");
    let model = format!("replay:{}", home.file("replies.json", &replies).display());
    let mut terminal = Terminal::start(&home, &["run", script.to_str().unwrap(), "--model", &model], false);
    terminal.until("␛[31mred␇␍\\u{9b}2J你好。");
    terminal.prompt();
    let shown = terminal.all_output();
    let sets_colors = shown
        .split("\u{1b}[")
        .skip(1)
        .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'));
    assert!(!sets_colors, "{shown:?}");
    assert!(!shown.contains(['\u{7}', '\u{9b}']), "{shown:?}");
}

#[test]
fn a_session_is_shown_at_a_terminal_without_what_would_move_the_cursor() {
    let home = Home::new();
    let script = home.script("two_phases.yaml");
    home.finish(["run", script.to_str().unwrap(), "--session", "t"], "\u{1b}[31m小\u{7}\u{9b}2J林\n");
    let mut terminal = Terminal::start(&home, &["sessions", "show", "t"], false);
    terminal.until("): ␛[31m小␇\\u{9b}2J林");
    assert_eq!(terminal.end(), Some(0));
    assert!(!terminal.all_output().contains(['\u{1b}', '\u{7}', '\u{9b}']), "{:?}", terminal.all_output());
}
