//! What the API has for the page: events in pages, outlines, sources, fixes, notebooks, and the page itself.

use serde_json::json;

use crate::access::tokens;
use crate::process::Home;
use crate::served::{Serving, TALK};

fn project() -> Home {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home
}

#[tokio::test]
async fn events_are_read_in_pages_from_the_last_one_back() {
    let home = project();
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    let stream: Vec<_> = {
        serving.say(&id, "tea").await;
        serving.events(&id, None).await.rest().await.iter().map(|event| event.json()).collect()
    };
    let (mut read, mut before) = (Vec::new(), None);
    loop {
        let more = before.map_or(String::new(), |before: u64| format!("&before={before}"));
        let page = serving.get(&format!("/v1/sessions/{id}/journal?limit=7{more}")).await.json();
        assert_eq!(page["last_seq"], stream.len());
        let mut events = page["events"].as_array().unwrap().clone();
        assert!(!events.is_empty() && events.len() <= 7);
        events.append(&mut read);
        read = events;
        before = page["before"].as_u64();
        if before.is_none() {
            break;
        }
    }
    assert_eq!(read, stream);
    let prompts = |events: &[serde_json::Value]| {
        events.iter().filter(|event| event["debug_info"].get("llm_prompt").is_some()).count()
    };
    assert!(prompts(&read) > 0);
    let brief = serving.get(&format!("/v1/sessions/{id}/journal?brief=true")).await.json();
    let brief = brief["events"].as_array().unwrap();
    assert_eq!((brief.len(), prompts(brief)), (read.len(), 0));
    assert_eq!(brief.iter().filter(|event| event["debug_info"]["left_out"] == true).count(), prompts(&read));
    // A single event, and an empty page.
    let one = serving.get(&format!("/v1/sessions/{id}/journal?after=3&before=5&limit=1")).await.json();
    assert_eq!((&one["events"][0]["seq"], &one["events"][1], &one["before"]), (&json!(4), &json!(null), &json!(null)));
    for empty in ["before=1", "after=9223372036854775807", "before=0"] {
        let page = serving.get(&format!("/v1/sessions/{id}/journal?{empty}")).await.json();
        assert_eq!((&page["events"], &page["before"]), (&json!([]), &json!(null)), "{empty}");
    }
    for refused in ["limit=0", "before=9223372036854775808", "after=9223372036854775808"] {
        assert_eq!(serving.get(&format!("/v1/sessions/{id}/journal?{refused}")).await.status, 400, "{refused}");
    }
    assert_eq!(serving.get("/v1/sessions/none/journal").await.status, 404);
}

#[tokio::test]
async fn an_outline_lists_the_parts_of_the_script_of_a_session() {
    let home = project();
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    // Of the script with which it started.
    home.put("scripts/talk.yaml", TALK.replace("ask_likes", "ask_other"));
    let outline = serving.get(&format!("/v1/sessions/{id}/outline")).await.json();
    assert_eq!((&outline["script"], &outline["user"]), (&json!("talk"), &json!(id)));
    let topic = &outline["phases"][0]["topics"][0];
    assert_eq!((&topic["id"], &topic["repeats"]), (&json!("t"), &json!(false)));
    assert_eq!(topic["actions"][2]["id"], "ask_likes");
    assert_eq!(topic["actions"][2]["action_type"], "ai_ask");
    assert_eq!(serving.get("/v1/sessions/none/outline").await.status, 404);
    assert_eq!(serving.get(&format!("/v1/sessions/{id}/notebook")).await.json(), json!({ "notebook": null }));
    assert_eq!(serving.get("/v1/sessions/none/notebook").await.status, 404);
}

#[tokio::test]
async fn a_source_is_given_as_it_is_and_fixes_belong_to_problems() {
    let home = project();
    let wrong =
        TALK.replace("session_id: talk", "session_id: 错误").replace("action_type: ai_ask", "action_type: ai_aks");
    home.put("scripts/wrong.yaml", &wrong);
    let serving = Serving::start(&home);
    let source = serving.get("/v1/scripts/scripts%2Fwrong.yaml/source").await;
    assert_eq!(
        (source.status, source.header("content-type"), source.text.as_str()),
        (200, "application/yaml", wrong.as_str())
    );
    assert_eq!(serving.get("/v1/scripts/none/source").await.status, 404);
    let checked = serving.get("/v1/scripts/scripts%2Fwrong.yaml").await.json();
    let found = &checked["diagnostics"][0];
    let edit = &found["fixes"][0]["edits"][0];
    let place = |name: &str| usize::try_from(edit[name].as_u64().unwrap()).unwrap();
    // The offsets are those of the text as it is.
    assert_eq!(wrong.get(place("byte_start")..place("byte_end")), Some("ai_aks"), "{found}");
    assert_eq!((&edit["text"], &found["end_line"]), (&json!("ai_ask"), &found["line"]));
}

#[tokio::test]
async fn a_script_that_cannot_be_read_is_listed_and_says_why() {
    let home = Home::new();
    home.put("scripts/cut.yaml", "session:\n  session_id: cut\n  phases: [{ phase_id: p\n");
    home.put("scripts/nameless.yaml", "session:\n  phases: []\n");
    home.put("scripts/other.yaml", "a: [1\n");
    home.put("scripts/data.yaml", "a: 1\n");
    let serving = Serving::start(&home);
    let list = serving.get("/v1/scripts").await.json();
    let names: Vec<&str> =
        list["scripts"].as_array().unwrap().iter().map(|script| script["session_id"].as_str().unwrap()).collect();
    assert_eq!(names, ["scripts/cut.yaml", "scripts/nameless.yaml"]);
    for (name, rule) in [("scripts%2Fcut.yaml", "yaml-syntax"), ("scripts%2Fnameless.yaml", "missing-key")] {
        let checked = serving.get(&format!("/v1/scripts/{name}")).await.json();
        assert_eq!(
            (&checked["is_valid"], &checked["diagnostics"][0]["rule"]),
            (&json!(false), &json!(rule)),
            "{checked}"
        );
    }
    let refused = serving.post("/v1/sessions", json!({ "script": "scripts/cut.yaml" })).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
}

#[tokio::test]
async fn the_page_needs_no_token_and_what_it_shows_does() {
    let home = project();
    tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    let page = serving.get("/studio").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self';",
        "style-src 'self';",
        "frame-ancestors 'none'",
        "trusted-types lit-html",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!page.text.contains("style=") && !page.text.contains("onclick") && !page.text.contains("talk.yaml"));
    let (_, script) = page.text.split_once("type=\"module\" src=\"").unwrap();
    let script = script.split('"').next().unwrap();
    let loaded = serving.get(script).await;
    assert_eq!((loaded.status, loaded.header("cache-control")), (200, "public, max-age=31536000, immutable"));
    let folder = script.strip_suffix("studio.js").unwrap();
    for library in ["libraries/lit-html.js", "libraries/uPlot.iife.min.js", "libraries/dagre.esm.js"] {
        assert_eq!(serving.get(&format!("{folder}{library}")).await.status, 200, "{library}");
    }
    let licences = serving.get(&format!("{folder}libraries/LICENSES")).await.text;
    assert!(
        licences.contains("Leon Sorokin") && licences.contains("Google") && licences.contains("Pettitt"),
        "{licences}"
    );
    // A page of another release gets the files of this one, and asks again.
    let other = serving.get("/studio/parts/0000/studio.js").await;
    assert_eq!((other.status, other.header("cache-control")), (200, "no-store"));
    assert_eq!(serving.get("/studio/parts/0000/none.js").await.status, 404);
    for path in
        ["/v1/sessions/x/journal", "/v1/sessions/x/outline", "/v1/sessions/x/notebook", "/v1/scripts/talk/source"]
    {
        assert_eq!(serving.get(path).await.status, 401, "{path}");
    }
}
