//! Tabs of the inspector with what sessions work on: a plan that a model made and executed, and cells that a real kernel ran.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::given_states::{session_of, state};
use crate::process::{Home, Running};
use crate::served::Serving;
use crate::studio::author::{WIDE, answer, has, open_session, open_tab};
use crate::test_kernel::{kernel_python, kernel_variables};

const REPORT: &str = "
session:
  session_id: report
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: create_plan, action_id: make, config: { goal: A report on sleep } }
            - { action_type: ai_ask, action_id: go, config: { content: Shall I execute it? } }
            - { action_type: execute_plan, action_id: execute }
            - { action_type: ai_ask, action_id: more, config: { content: Anything else? } }
";

#[tokio::test]
async fn a_plan_is_drawn_as_its_tasks_are_executed() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/report.yaml", REPORT);
    let said = |text: &str| json!({ "content": text, "name": null });
    let replies = |go: &[Value]| {
        json!({ "replies": {
        "make": [{ "title": "Report", "tasks": [
            { "name": "Data <b>", "instruction": "Collect it." },
            { "name": "Advice", "instruction": "Advise.", "depends_on": ["Data <b>"] },
        ] }],
        "execute/Data <b>": [{ "done": true, "problem": null, "result": "Seven hours." }],
        "execute/Advice": [{ "done": false, "problem": "There is no diary.", "result": null }],
        "go": go,
        "more": [said("Is that all?")],
    } })
        .to_string()
    };
    home.put("replies.yaml", replies(&[said("Shall I?")]));
    let serving = Serving::with(&home, &["--model", "replay:replies.yaml"]);
    let id = serving.session("report").await;
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "plan").await;
    has(&browser, "plan-tab h2", "Report").await;
    has(&browser, "plan-tab .tasks li", "not started Data <b>").await;
    let mut events = serving.events(&id, None).await;
    answer(&browser, "Yes").await;
    // There is no second reply for the question: the session stops, and goes on when there is one.
    has(&browser, ".composer .hint", "The session has stopped.").await;
    events.until("session_stopped").await;
    browser.click("Continue the session").await;
    events.until("session_stopped").await;
    // The list stays at its end, although what is below it is lower for a moment.
    let done = json!({ "content": "Thank you.", "EXIT": "YES" });
    home.put("replies.yaml", replies(&[said("Shall I?"), done]));
    browser.click("Continue the session").await;
    // What has happened to it is shown without another look.
    has(&browser, "plan-tab .tasks li", "completed Data <b>").await;
    has(&browser, "plan-tab .tasks li", "failed Advice").await;
    has(&browser, "plan-tab .tasks .warning", "There is no diary.").await;
    has(&browser, "talk-pane .message.ai .text", "Is that all?").await;
    browser.vanishes("tree-pane .node.stopped").await;
}

/// A code cell that draws a red point, and one that fails.
const DRAWING: &str = r#"
session:
  session_id: drawing
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: add, action_id: head, config: { shot_type: dialogue, content: What the week looked like } }
            - action_type: add
              action_id: add_picture
              config:
                shot_type: action
                store_id: picture
                content: |
                  import struct, zlib
                  from IPython.display import Image, display
                  def part(kind, data):
                      return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
                  header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
                  rows = zlib.compress(b"\x00\xff\x00\x00")
                  png = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", rows) + part(b"IEND", b"")
                  print("one point")
                  display(Image(data=png))
            - { action_type: exec, action_id: run_picture, config: { codecell_id: picture } }
            - { action_type: add, action_id: add_wrong, config: { shot_type: action, store_id: wrong, content: "1 / 0" } }
            - { action_type: exec, action_id: run_wrong, config: { codecell_id: wrong } }
            - { action_type: ai_ask, action_id: ask, config: { content: Is it right? } }
"#;

/// The size of the picture of a notebook, when it is drawn.
const DRAWN: &str = "const done = arguments[0]; const look = () => { const picture = document.querySelector('img.picture'); \
                     picture?.complete ? done([picture.naturalWidth, picture.naturalHeight]) : setTimeout(look, 20); }; look();";

#[tokio::test]
async fn a_large_picture_is_loaded_from_its_address() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let serving = Serving::with(&home, &["--model", "offline"]);
    let id = session_of(&serving, state()).await;
    // Nothing was said in it.
    browser.open(&format!("{}/studio#/sessions/{id}", serving.url)).await;
    open_tab(&browser, "notebook").await;
    browser.element("notebook-tab img.picture").await;
    assert_eq!(browser.run_async(DRAWN).await, json!([1, 1]));
    has(&browser, "notebook-tab .cell", "image/svg+xml").await;
}

#[tokio::test]
async fn a_notebook_shows_the_pictures_and_errors_of_a_kernel() {
    let (Some(browser), Some(python)) = (Browser::start(WIDE).await, kernel_python()) else { return };
    let home = Home::new();
    home.put("scripts/drawing.yaml", DRAWING);
    home.put("bcc-script.toml", "[project]\nscheme = \"english\"\nallow = [\"exec\"]\n");
    let mut command = home.command(["serve", "--addr", "127.0.0.1:0", "--trust"]);
    command.envs(kernel_variables(&python));
    let serving = Serving::of(Running::start(command));
    let id = serving.session("drawing").await;
    open_session(&browser, &serving, &id).await;
    open_tab(&browser, "notebook").await;
    has(&browser, "notebook-tab .cell", "What the week looked like").await;
    has(&browser, "notebook-tab .cell .raw", "one point").await;
    browser.element("notebook-tab img.picture").await;
    // The policy of the page lets it be drawn.
    assert_eq!(browser.run_async(DRAWN).await, json!([1, 1]));
    // Without the colors that the kernel writes for terminals.
    has(&browser, "notebook-tab .cell .raw.failed", "\nZeroDivisionError: division by zero").await;
    let marks = "return document.querySelector('notebook-tab').textContent.includes('U+001B')";
    assert_eq!(browser.run(marks).await, false);
}
