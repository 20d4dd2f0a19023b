//! Tests that no text of a script, a person, a model or a file can act where it is shown: on a terminal, in Markdown and in HTML. JSON
//! keeps the exact text.

use std::path::Path;

use bcc_lang::source::render::visible::visible_json;
use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::{Value, json};

use crate::process::{Finished, Home};
use crate::pseudo_terminal::{CTRL_D, Terminal};

/// What each of these texts would do if it was not shown but obeyed, and what Markdown and HTML would make of it.
const ACTIVE: &str = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}gnp.exe\u{202c}\u{2066}\u{feff}\u{7f}**b** <b>i</b> ![x](http://evil/a.png) [l](javascript:x)";

/// Text that must stay as it is.
const LEGITIMATE: &str = "שלום مرحبا می\u{200c}خواهم 👩\u{200d}👧 ❤\u{fe0f} 葛\u{e0100} é";

/// A text as a quoted scalar of YAML, which allows no control characters.
fn quoted(text: &str) -> String {
    visible_json(&serde_json::to_string(text).unwrap()).into_owned()
}

/// A script whose names and texts are all active.
fn script() -> String {
    let text = |start: &str| quoted(&format!("{start}{ACTIVE}{LEGITIMATE}"));
    format!(
        "session:
  session_id: nasty
  session_name: {name}
  declare: [{{ var: 称呼, type: string, define: {about} }}]
  phases:
    - phase_id: p
      phase_name: {phase}
      topics:
        - topic_id: t
          topic_name: {topic}
          actions:
            - {{ action_type: ai_ask, action_id: ask, config: {{ content: {question}, output: [{{ get: 称呼, type: string }}] }} }}
            - {{ action_type: ai_say, action_id: bye, config: {{ content: \"再见，{{{{ 称呼 }}}}。\" }} }}
",
        name = text("名"),
        about = text("关于"),
        phase = text("段"),
        topic = text("题"),
        question = text("问"),
    )
}

/// The first character that a terminal would obey, or that hides something or changes the order of others.
fn harmful(text: &str) -> Option<char> {
    text.chars().find(|c| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    })
}

fn check(what: &str, shown: &Finished) {
    for text in [&shown.out, &shown.err] {
        assert_eq!(harmful(text), None, "{what}: {text:?}");
    }
}

/// A completed session with the id `s` of the script, answered with active text.
fn session(answer: &str) -> Home {
    let home = Home::new();
    home.file("nasty.yaml", &script());
    let line = format!("{}\n", json!({ "user": answer }));
    let ran = home.finish(["run", "nasty.yaml", "--session", "s", "--user", "u\u{1b}[31m\u{202e}", "--json"], &line);
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    check("--json", &ran);
    let said = ran.events().into_iter().filter_map(|event| event["text"].as_str().map(str::to_owned));
    assert!(said.into_iter().any(|text| text.contains(ACTIVE)), "JSON is exact: {}", ran.out);
    home
}

#[test]
fn no_command_shows_what_a_terminal_would_obey_or_hide() {
    let home = session(&format!("小林{ACTIVE}{LEGITIMATE}"));
    let bad = home
        .file("bad\u{1b}[31m\u{202e}.yaml", &script().replace("action_type: ai_say", "action_tpye\u{202e}: ai_say"));
    let bad = bad.to_str().unwrap();
    let test = format!(
        "test: {title}\nscript: nasty.yaml\ndialogue:\n  - user: {title}\n  - ai: {{ contains: {title} }}\n",
        title = quoted(ACTIVE)
    );
    home.file("nasty_test.yaml", &test);
    let commands: [&[&str]; 20] = [
        &["sessions", "list"],
        &["sessions", "show", "s"],
        &["sessions", "show", "s", "--calls"],
        &["sessions", "export", "s", "--format", "md"],
        &["sessions", "export", "s", "--format", "html"],
        &["sessions", "export", "s", "--calls"],
        &["run", "nasty.yaml"],
        &["run", bad],
        &["validate", bad],
        &["validate", bad, "--format", "json"],
        &["validate", bad, "--format", "sarif"],
        &["validate", bad, "--format", "github"],
        &["validate", "no\u{1b}]0;t\u{7}\u{202e}.yaml"],
        &["graph", "nasty.yaml"],
        &["graph", "nasty.yaml", "--format", "dot"],
        &["test", "nasty_test.yaml", "--coverage"],
        &["test", "nasty_test.yaml", "--format", "json"],
        &["test", "nasty_test.yaml", "--junit", "report.xml", "--coverage=html"],
        &["templates", "render", "--script", "nasty.yaml", "--action", "ask"],
        &["migrate", "nasty.yaml"],
    ];
    for command in commands {
        let shown = home.finish(command, "小林\u{1b}[31m\n");
        check(&format!("{command:?}"), &shown);
    }
    let report = std::fs::read_to_string(home.path().join("report.xml")).unwrap();
    assert_eq!(harmful(&report), None, "{report:?}");
    let shown = home.finish(["sessions", "show", "s"], "").out;
    for kept in ["␛]0;title␇␛[2J\\u{9b}31m\\u{202e}gnp.exe\\u{202c}\\u{2066}\\u{feff}␡**b** <b>i</b>", LEGITIMATE]
    {
        assert!(shown.contains(kept), "{kept} in {shown}");
    }
}

#[test]
fn json_contains_the_exact_text() {
    let answer = format!("小林{ACTIVE}{LEGITIMATE}");
    let home = session(&answer);
    let exported = home.export("s");
    assert_eq!(exported["variables"]["session"]["称呼"]["value"], json!(answer));
    let out = home.finish(["sessions", "export", "s", "-o", "s.json"], "");
    assert_eq!(out.code, Some(0), "{}", out.err);
    let file: Value = serde_json::from_slice(&std::fs::read(home.path().join("s.json")).unwrap()).unwrap();
    assert_eq!(file["transcript"], exported["transcript"]);
}

/// The text of a Markdown document; panics if it contains anything that is not text in paragraphs, headings and lists.
fn literal(document: &str) -> String {
    let mut text = String::new();
    for event in Parser::new_ext(document, Options::all() - Options::ENABLE_SMART_PUNCTUATION) {
        match event {
            Event::Text(piece) | Event::Code(piece) => text += &piece,
            Event::SoftBreak | Event::HardBreak | Event::End(_) => text.push('\n'),
            Event::Start(
                Tag::Paragraph | Tag::Heading { .. } | Tag::List(None) | Tag::Item | Tag::Strong | Tag::Emphasis,
            ) => {}
            other => panic!("{other:?} in {document}"),
        }
    }
    text
}

#[test]
fn a_markdown_export_shows_every_text_literally() {
    let answer = "# 标题\n1. 一\n2. 二\n\n- [ ] 事\n> 引\n    代码\n***\n| a | b |\n|---|---|\n<img src=http://evil/x>\n![x](http://evil/a.png) [l](javascript:x) <http://evil>\n[a]: http://evil\n`c` **b** _i_ ~~s~~ &lt; a_b $x$ C#";
    let home = session(answer);
    let document = home.finish(["sessions", "export", "s", "--format", "md"], "").out;
    let text = literal(&document);
    for line in answer.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(text.lines().any(|shown| shown.contains(line)), "{line:?} in {text}\n{document}");
    }
    assert!(document.contains("1\\. 一  \n  2\\. 二\n"), "lines stay lines: {document}");
    assert!(text.contains(LEGITIMATE), "{text}");
}

/// The tags of a page, without their text. Attribute values contain no quote and no `<`.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|tag| tag.split_once('>').unwrap().0).collect()
}

#[test]
fn an_html_export_has_only_its_own_tags() {
    let home = session(ACTIVE);
    let page = home.finish(["sessions", "export", "s", "--format", "html"], "").out;
    let (_, body) = page.split_once("</style>").unwrap();
    for tag in tags(body) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        let own = [
            "head", "body", "main", "h1", "h2", "h3", "section", "ul", "li", "p", "strong", "em", "code", "br",
            "footer", "html",
        ];
        assert!(own.contains(&name), "<{tag}> in {body}");
        assert!(!tag.contains("href") && !tag.contains("src") && !tag.contains(" on"), "<{tag}>");
    }
    assert!(body.contains("&lt;b&gt;i&lt;/b&gt;") && body.contains("![x](http"), "{body}");
}

#[test]
fn a_live_message_and_the_commands_of_a_conversation_show_no_active_text() {
    let home = Home::new();
    home.file("nasty.yaml", &script());
    let mut terminal = Terminal::start(&home, &["run", "nasty.yaml", "--session", "s"], true);
    terminal.until("␛[2J");
    // What the commands show contains the characters of the prompt, and keys that are typed before the line editor reads are lost. It
    // marks pastes while it reads.
    for command in ["/vars", "/where", "/why all raw", "/plan", "/prompt", "/no\u{202e}such", "/quit"] {
        terminal.until("\u{1b}[?2004h");
        terminal.answers(command);
    }
    assert_eq!(terminal.end(), Some(3));
    // The line editor and colors write sequences of their own.
    let shown = terminal.all_output();
    let typed = shown.replace("/no\u{202e}such", "");
    for obeyed in ["\u{1b}]0;", "\u{1b}[2J", "\u{9b}", "\u{7}", "\u{202c}", "\u{2066}", "\u{feff}"] {
        assert!(!typed.contains(obeyed), "{obeyed:?} in {typed:?}");
    }
    assert!(shown.contains("\\u{202e}gnp.exe\\u{202c}\\u{2066}\\u{feff}␡") && shown.contains(LEGITIMATE), "{shown:?}");
}

#[test]
fn a_reply_that_is_streamed_piece_by_piece_is_shown_like_the_complete_one() {
    let home = Home::new();
    home.file("nasty.yaml", &script());
    let content = format!("先说{ACTIVE}\r\n{LEGITIMATE}\r");
    let reply = json!({ "safety_risk": { "detected": false }, "content": content, "EXIT": "NO" }).to_string();
    let replies = home.file("replies.yaml", &format!("replies:\n  ask:\n    - {}\n", quoted(&reply)));
    let model = format!("replay:{}", replies.display());
    let mut terminal = Terminal::start(&home, &["run", "nasty.yaml", "--model", &model], false);
    terminal.until("先说␛]0;title␇␛[2J\\u{9b}31m\\u{202e}gnp.exe\\u{202c}\\u{2066}\\u{feff}␡**b** <b>i</b>");
    terminal.until(LEGITIMATE);
    terminal.prompt();
    terminal.types(CTRL_D);
    assert_eq!(terminal.end(), Some(3));
    assert!(!terminal.all_output().contains("\u{1b}]0;"));
}

#[test]
fn the_names_of_files_are_shown_harmlessly() {
    let home = Home::new();
    let name = "d\u{1b}]0;t\u{7}\u{202e}\n::error::x.yaml";
    home.put(&format!("folder/{name}"), "session: { session_id: x, phases: [] }\n");
    assert!(Path::new(&home.path().join("folder").join(name)).exists());
    for format in ["human", "json", "sarif", "github"] {
        let shown = home.finish(["validate", "folder", "--format", format], "");
        check(format, &shown);
        let injected = |text: &str| text.lines().any(|line| line.starts_with("::error::"));
        assert!(!injected(&shown.out) && !injected(&shown.err), "{format}: {} {}", shown.out, shown.err);
    }
}
