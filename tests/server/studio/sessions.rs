//! A session on the page: the tree, the talk, and the inspector; also with hostile texts, and with many events.

use serde_json::json;

use crate::browser::{Browser, Look, PHONE};
use crate::process::Home;
use crate::served::{Serving, TALK};
use crate::studio::author::{WIDE, answer, choose, has, open_session, open_tab};

#[tokio::test]
async fn a_session_shows_its_tree_talk_variables_and_calls() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    browser.open(&format!("{}/studio", serving.url)).await;
    has(&browser, ".script .status", "No problems").await;
    browser.click("Start a session").await;
    has(&browser, "talk-pane .message.ai .text", "Who are you?").await;
    has(&browser, ".node.waiting .name", "ask_name").await;
    has(&browser, ".node.pending .name", "ask_likes").await;
    answer(&browser, "Ann").await;
    has(&browser, ".node.done .name", "ask_name").await;
    has(&browser, "talk-pane .message.ai .text", "What do you like?").await;
    open_tab(&browser, "variables").await;
    has(&browser, ".variable", "Ann").await;
    has(&browser, ".variable .place", "ask_name").await;
    open_tab(&browser, "calls").await;
    has(&browser, ".call .name", "ask_name").await;
    has(&browser, ".detail .raw", "content").await;
    has(&browser, ".prompt-message .hint", "System").await;
    open_tab(&browser, "workflow").await;
    has(&browser, ".step text", "ask_name").await;
    for tab in ["requests", "metrics", "monitors", "plan", "notebook"] {
        open_tab(&browser, tab).await;
        browser.element("[role=tabpanel] > *").await;
    }
    // Back to the first question: the answer is gone, and a session begins again from there.
    browser.element("button[aria-label='One turn back']").await.click().await.unwrap();
    browser.element(".past-note").await;
    has(&browser, ".node.waiting .name", "ask_name").await;
    browser.vanishes("talk-pane .message.user").await;
    let before = browser.address().await;
    browser.click("Begin again from here").await;
    // The calls are told before; with the same files there are none.
    has(&browser, ".again-plan", "Answers that are given again: 1").await;
    has(&browser, ".again-plan", "No model is asked.").await;
    home.put("scripts/talk.yaml", TALK.replace("What do you like?", "What do you enjoy?"));
    choose(&browser, "#again-0-script", "scripts/talk.yaml").await;
    has(&browser, ".again-plan", "A model is asked about").await;
    has(&browser, ".again-plan", "ask_likes").await;
    browser.element("dialog button.main:not(:disabled)").await.click().await.unwrap();
    has(&browser, "a", "continues another session").await;
    assert_ne!(browser.address().await, before);
    // It was given the answer, and asks the edited question.
    has(&browser, "talk-pane .message.user .text", "Ann").await;
    has(&browser, "talk-pane .message.ai .text", "What do you enjoy?").await;
    answer(&browser, "tea").await;
    has(&browser, "talk-pane .message.user .text", "tea").await;
    // Both are listed.
    browser.element("a.back").await.click().await.unwrap();
    has(&browser, "tbody tr:nth-child(2) a", "talk").await;
}

const HOSTILE: &str = "<script>document.title='run'</script><b>bold</b> a\u{202e}b";

const UNDOING: &str = "\
session:
  session_id: booking
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_say
              action_id: book
              compensate: [{ action_type: ai_say, action_id: release, config: { content: The room is free again., delivery: verbatim } }]
              config: { content: The room is booked., delivery: verbatim }
            - action_type: ai_say
              action_id: wrong
              on_exit: { exit_criteria_met: fail }
              config: { content: This does not work., delivery: verbatim }
";

#[tokio::test]
async fn a_session_shows_what_was_undone() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/booking.yaml", UNDOING);
    let serving = Serving::start(&home);
    let id = serving.session("booking").await;
    open_session(&browser, &serving, &id).await;
    has(&browser, ".message .text", "The room is free again.").await;
    has(&browser, ".note", "Undone: book").await;
    has(&browser, ".node.undone", "book").await;
    open_tab(&browser, "workflow").await;
    has(&browser, "workflow-tab .undone", "book").await;
}

#[tokio::test]
async fn markup_and_marks_of_direction_are_text() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    let script = TALK.replace("session_id: talk", &format!("session_id: talk\n  session_name: {}", json!(HOSTILE)));
    home.put("scripts/talk.yaml", script);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    serving.say(&id, HOSTILE).await;
    open_session(&browser, &serving, &id).await;
    let shown = "<script>document.title='run'</script><b>bold</b> a⟦U+202E⟧b";
    has(&browser, ".message.user .text", shown).await;
    has(&browser, "h1", shown).await;
    open_tab(&browser, "variables").await;
    has(&browser, ".variable", shown).await;
    open_tab(&browser, "calls").await;
    has(&browser, ".detail .raw", "<script>").await;
    let elements = "return document.querySelectorAll('studio-app script, studio-app b').length";
    assert_eq!(browser.run(elements).await, 0);
    assert!(!browser.run("return document.title").await.as_str().unwrap().starts_with("run"));
    let raw = "return document.body.innerText.includes('\\u202e')";
    assert_eq!(browser.run(raw).await, false);
}

/// A script with this number of elements, for each of which it says two things and sets forty variables: about 50 events each.
pub fn long_script(elements: usize) -> String {
    let numbers = (0..elements).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let declared: String = (0..40).map(|number| format!("    - {{ var: v{number}, type: string }}\n")).collect();
    let set = (0..40).map(|number| format!("v{number}: '{{{{ item }}}}'")).collect::<Vec<_>>().join(", ");
    let say = |number: usize| {
        format!(
            "            - {{ action_type: ai_say, action_id: say_{number}, config: {{ delivery: verbatim, content: 'Line {number} of {{{{ item }}}}' }} }}\n"
        )
    };
    format!(
        "session:\n  session_id: long\n  declare:\n    - {{ var: items, type: list, value: [{numbers}] }}\n{declared}  phases:\n    - phase_id: p\n      \
         topics:\n        - topic_id: t\n          for_each: {{ in: items, as: item }}\n          actions:\n{}{}            \
         - {{ action_type: set, action_id: count, config: {{ values: {{ {set} }} }} }}\n        - topic_id: end\n          actions:\n            \
         - {{ action_type: ai_ask, action_id: ask, config: {{ content: 'Is that all?' }} }}\n",
        say(0),
        say(1)
    )
}

#[tokio::test]
async fn of_ten_thousand_events_only_a_window_is_in_the_page() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/long.yaml", long_script(210));
    let serving = Serving::start(&home);
    let id = serving.session("long").await;
    let state = serving.get(&format!("/v1/sessions/{id}")).await.json();
    assert!(state["last_seq"].as_u64().unwrap() >= 10_000, "{}", state["last_seq"]);
    open_session(&browser, &serving, &id).await;
    // The newest are drawn first, and the earlier ones are there when somebody scrolls.
    has(&browser, ".message .text", "Is that all?").await;
    has(&browser, ".connection", "Live").await;
    let rows = "return [document.querySelectorAll('.virtual-row').length, document.querySelectorAll('*').length, \
        Number(document.querySelector('.talk-list .virtual-row').getAttribute('aria-setsize'))]";
    let counted = browser.run(rows).await;
    let counts: Vec<u64> = counted.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
    assert!(counts[0] < 120 && counts[1] < 2500 && counts[2] > 600, "{counts:?}");
    browser.run("document.querySelector('.talk-list').scrollTop = 0").await;
    has(&browser, ".message .text", "Line 0 of 0").await;
    let counted = browser.run(rows).await;
    assert!(counted[0].as_u64().unwrap() < 120, "{counted}");
}

#[tokio::test]
async fn an_answer_of_a_megabyte_is_shown_in_part_and_on_demand_as_a_whole() {
    let Some(browser) = Browser::start(WIDE).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let text = format!("{}THE END", "long ".repeat(190_000));
    serving.say(&id, &text).await;
    open_session(&browser, &serving, &id).await;
    browser.run("document.querySelector('.talk-list').scrollTop = 0").await;
    has(&browser, ".message.user .text", "long long").await;
    browser.click("Show all 950,007 characters").await;
    has(&browser, ".message.user .text", "THE END").await;
}

#[tokio::test]
async fn a_phone_shows_one_pane_at_a_time() {
    let Some(browser) = Browser::start(Look { width: 360, ..PHONE }).await else { return };
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    open_session(&browser, &serving, &id).await;
    let panes = "return [...document.querySelectorAll('.pane')].filter((pane) => pane.offsetWidth > 0).length";
    let fits = "return document.documentElement.scrollWidth <= innerWidth";
    for (pane, seen) in [("Tree", "[role=tree]"), ("Inspector", "[role=tablist]"), ("Talk", ".message")] {
        browser.element_with("nav//button", pane).await.click().await.unwrap();
        browser.element(seen).await;
        assert_eq!(browser.run(panes).await, 1, "{pane}");
        assert_eq!(browser.run(fits).await, true, "{pane}");
    }
    for view in ["scripts", "sessions", "scripts/scripts%2Ftalk.yaml"] {
        browser.open(&format!("{}/studio#/{view}", serving.url)).await;
        browser.element("main h1, main h2").await;
        assert_eq!(browser.run(fits).await, true, "{view}");
    }
}
