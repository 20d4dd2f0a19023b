//! What authors need over HTTP: graphs, schemas, templates, prompts, tests, uploads and plans.

use reqwest::Method;
use serde_json::json;

use crate::process::Home;
use crate::served::{Serving, TALK};

const TEST: &str = "
test: somebody says a name
script: ../scripts/talk.yaml
model:
  ask_name: [{ content: Who are you?, name: null }, { content: I see., name: Ann, EXIT: 'YES' }]
  ask_likes: [{ content: What do you like?, likes: null }, { content: I see., likes: tea, EXIT: 'YES' }]
  '*': [{ content: All right. }, { content: All right. }]
dialogue:
  - user: Ann
  - user: tea
  - expect: { variables: { likes: tea } }
";

fn project() -> Home {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("tests/talk.yaml", TEST);
    home.put("bcc-script.toml", "");
    home
}

async fn put(serving: &Serving, name: &str, kind: &str, text: &str) -> crate::served::Reply {
    let path = format!("/v1/scripts/{name}");
    serving.send(Method::PUT, &path, &[("content-type", kind)], Some(text.as_bytes().to_vec())).await
}

#[tokio::test]
async fn a_script_that_somebody_else_has_changed_is_not_replaced() {
    let home = project();
    let serving = Serving::start(&home);
    let path = "/v1/scripts/scripts%2Ftalk.yaml";
    let read = serving.get(&format!("{path}/source")).await;
    let version = read.header("etag").to_owned();
    let mine = TALK.replace("Who are you?", "What is your name?");
    let put = async |version: &str, text: &str| {
        let headers = [("content-type", "application/yaml"), ("if-match", version)];
        serving.send(Method::PUT, path, &headers, Some(text.as_bytes().to_vec())).await
    };
    let stored = put(&version, &mine).await;
    assert_eq!(stored.status, 200, "{stored:?}");
    let newer = stored.header("etag").to_owned();
    assert_eq!(serving.get(&format!("{path}/source")).await.header("etag"), newer);
    // Whoever still has the version before it learns of the change.
    let theirs = TALK.replace("Who are you?", "And you?");
    let refused = put(&version, &theirs).await;
    assert_eq!((refused.status, &refused.json()["type"]), (412, &json!("/problems/changed")), "{refused:?}");
    assert_eq!(std::fs::read_to_string(home.path().join("scripts/talk.yaml")).unwrap(), mine);
    // Of those who save at the same time, one does.
    let texts: Vec<String> = (0..6).map(|number| TALK.replace("Who are you?", &format!("Who {number}?"))).collect();
    let replies = futures_util::future::join_all(texts.iter().map(|text| put(&newer, text))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1, "{replies:?}");
    // A proxy may have made it weak, and `*` is any version.
    let newest = format!("W/{}", serving.get(&format!("{path}/source")).await.header("etag"));
    for version in [newest.as_str(), "*"] {
        assert_eq!(put(version, &theirs).await.status, 200);
    }
}

#[tokio::test]
async fn scripts_are_drawn_also_with_what_a_session_did() {
    let home = project();
    let serving = Serving::start(&home);
    let plain = serving.get("/v1/scripts/talk/graph").await;
    assert_eq!(plain.status, 200, "{plain:?}");
    assert!(plain.text.starts_with("flowchart") && plain.text.contains("ask_likes"), "{plain:?}");
    assert!(serving.get("/v1/scripts/talk/graph?format=dot").await.text.starts_with("digraph"));
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    let drawn = serving.get(&format!("/v1/scripts/talk/graph?session={id}")).await;
    assert!(drawn.status == 200 && drawn.text != plain.text && drawn.text.contains("classDef"), "{drawn:?}");
    home.put(
        "scripts/broken.yaml",
        TALK.replace("session_id: talk", "session_id: broken").replace("ask_likes", "ask_name"),
    );
    let broken = serving.get("/v1/scripts/broken/graph").await;
    let render = json!({ "script": "broken", "action": "ask_name" });
    for reply in [broken, serving.post("/v1/templates/render", render).await] {
        assert_eq!(reply.status, 422, "{reply:?}");
        assert_eq!(reply.json()["diagnostics"][0]["file"], "scripts/broken.yaml", "{reply:?}");
        assert!(!reply.text.contains(home.path().to_str().unwrap()), "{reply:?}");
    }
    for (path, status) in [
        ("/v1/scripts/none/graph", 404),
        ("/v1/scripts/talk/graph?session=none", 404),
        ("/v1/scripts/talk/graph?format=png", 400),
    ] {
        assert_eq!(serving.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn schemas_and_templates_are_listed_and_prompts_rendered() {
    let home = project();
    let serving = Serving::start(&home);
    let schemas = serving.get("/v1/schemas").await.json();
    let names: Vec<&str> =
        schemas["schemas"].as_array().unwrap().iter().map(|schema| schema["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"script") && names.contains(&"ai_ask"), "{names:?}");
    let script = serving.get("/v1/schemas/script").await;
    assert_eq!(script.header("content-type"), "application/schema+json");
    assert!(script.json()["$schema"].is_string());
    assert_eq!(serving.get("/v1/schemas/none").await.status, 404);

    let templates = serving.get("/v1/templates?scheme=english").await.json();
    assert_eq!(templates["schemes"].as_array().unwrap().len(), 1);
    assert_eq!(serving.get("/v1/templates?scheme=none").await.status, 400);

    let body =
        json!({ "script": "talk", "action": "ask_likes", "variables": { "name": "Ann Lee" }, "answers": ["tea"] });
    let rendered = serving.post("/v1/templates/render", body).await;
    assert_eq!(rendered.status, 200, "{rendered:?}");
    let rendered = rendered.json();
    assert_eq!((&rendered["action_id"], &rendered["answer"]), (&json!("ask_likes"), &json!("tea")));
    assert!(!rendered.to_string().contains("classified"), "{rendered}");
    let body = json!({ "script": "talk", "action": "bye", "variables": { "name": "Ann Lee", "likes": "tea" } });
    let rendered = serving.post("/v1/templates/render", body).await.json();
    assert!(rendered["messages"].to_string().contains("Ann Lee likes tea."), "{rendered}");
    let alone = serving.post("/v1/templates/render", json!({ "template": "ai_ask", "scheme": "english" })).await;
    assert_eq!(alone.status, 200, "{alone:?}");
    for body in [
        json!({}),
        json!({ "script": "talk" }),
        json!({ "script": "talk", "action": "none" }),
        json!({ "template": "../../etc/passwd" }),
        json!({ "template": "ai_ask", "round": 51 }),
        json!({ "script": "talk", "action": "ask_name", "variables": { "nme": 1 } }),
    ] {
        let reply = serving.post("/v1/templates/render", body.clone()).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
}

#[tokio::test]
async fn tests_are_run_and_leave_no_sessions() {
    let home = project();
    let serving = Serving::start(&home);
    let all = serving.post("/v1/tests", json!({})).await;
    assert_eq!(all.status, 200, "{all:?}");
    let all = all.json();
    assert_eq!((&all["passed"], &all["failed"]), (&json!(1), &json!(0)), "{all}");
    assert_eq!(all["tests"][0]["test"], "somebody says a name");
    home.put("tests/talk.yaml", TEST.replace("likes: tea }", "likes: coffee }"));
    let failed = serving.post("/v1/tests", json!({ "paths": ["tests/talk.yaml"], "filter": "somebody" })).await.json();
    assert_eq!(failed["failed"], 1, "{failed}");
    assert_eq!(serving.get("/v1/sessions").await.json()["sessions"], json!([]));
    for path in ["/etc", "../tests", "tests/../../x", ""] {
        assert_eq!(serving.post("/v1/tests", json!({ "paths": [path] })).await.status, 400, "{path}");
    }
    assert_eq!(serving.post("/v1/tests", json!({ "paths": ["none"] })).await.status, 404);
}

/// As `bcc-script test` shows it, and wherever the server was started.
#[tokio::test]
async fn tests_say_what_is_wrong_with_their_scripts_in_the_language_of_the_client() {
    let home = Home::new();
    let broken = TALK.replace("action_id: ask_likes", "action_id: ask_name");
    home.put("work/bcc-script.toml", "");
    home.put("work/scripts/talk.yaml", broken);
    home.put("work/tests/talk.yaml", TEST);
    home.put("work/tests/wrong.yaml", TEST.replace("dialogue:", "dialog:"));
    home.put("work/tests/unreadable.yaml", "test: open\ndialogue:\n  - ai: \"x\n");
    home.put("work/scripts/other.yaml", TALK);
    let failing = "test: something else\nscript: ../scripts/other.yaml\ndialogue:\n  - ai: Good evening.\n";
    home.put("work/tests/failing.yaml", failing);
    let shown = home.finish(["test", "--format", "json", "--project", "work", "work/tests"], "");
    let shown: serde_json::Value = serde_json::from_str(&shown.out).unwrap();

    let serving = Serving::with(&home, &["--project", "work"]);
    let english = serving.post("/v1/tests", json!({})).await;
    assert!(!english.text.contains(home.path().to_str().unwrap()), "{english:?}");
    let english = english.json();
    let places: Vec<String> = english["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            format!("{} {}:{}", found["rule"].as_str().unwrap(), found["file"].as_str().unwrap(), found["line"])
        })
        .collect();
    assert!(places.contains(&"duplicate-id scripts/talk.yaml:16".to_owned()), "{places:?}");
    let found =
        &english["diagnostics"].as_array().unwrap().iter().find(|found| found["rule"] == "duplicate-id").unwrap();
    assert!(found["column"].is_number() && found["end_line"] == 16 && found["help"].is_string(), "{found}");
    let texts = |document: &serde_json::Value, list: &str, field: &str| -> Vec<serde_json::Value> {
        document[list].as_array().unwrap().iter().map(|item| item[field].clone()).collect()
    };
    assert_eq!(texts(&english, "diagnostics", "message"), texts(&shown, "diagnostics", "message"));
    assert_eq!(texts(&english, "tests", "why"), texts(&shown, "tests", "why"));
    assert_eq!(texts(&english, "tests", "file"), ["tests/failing.yaml", "tests/talk.yaml", "tests/wrong.yaml"]);
    // And the file without a test.
    assert_eq!((&shown["failed"], &english["failed"]), (&json!(4), &json!(4)));

    let headers = [("content-type", "application/json"), ("accept-language", "zh")];
    let chinese = serving.send(Method::POST, "/v1/tests", &headers, Some(b"{}".to_vec())).await.json();
    insta::assert_snapshot!("problems_of_tests_in_chinese", format!("{:#}", chinese["diagnostics"]));
    insta::assert_snapshot!("results_of_tests_in_chinese", {
        let mut tests = chinese["tests"].clone();
        tests.as_array_mut().unwrap().iter_mut().for_each(|test| test["ms"] = json!(0));
        format!("{tests:#}")
    });
}

#[tokio::test]
async fn a_script_is_stored_only_without_errors_and_running_sessions_keep_theirs() {
    let home = project();
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let changed = TALK.replace("Who are you?", "What is your name?");
    let stored = put(&serving, "talk.yaml", "application/yaml", &changed).await;
    assert_eq!((stored.status, stored.json()), (200, json!({ "path": "scripts/talk.yaml", "replaced": true })));
    assert_eq!(serving.say(&id, "Ann").await["messages"][0]["text"], "What do you like?");
    let next = serving.post("/v1/sessions", json!({ "script": "talk" })).await.json();
    assert_eq!(next["messages"][1]["text"], "What is your name?");
    let new =
        put(&serving, "other.yml", "application/yaml", &TALK.replace("session_id: talk", "session_id: other")).await;
    assert_eq!(new.json()["replaced"], false, "{new:?}");
    assert_eq!(serving.get("/v1/scripts/other").await.json()["is_valid"], true);

    let before = std::fs::read_to_string(home.path().join("scripts/talk.yaml")).unwrap();
    let broken = put(&serving, "talk.yaml", "application/yaml", &TALK.replace("ask_likes", "ask_name")).await;
    assert_eq!(broken.status, 422, "{broken:?}");
    let diagnostic = &broken.json()["diagnostics"][0];
    assert_eq!(diagnostic["rule"], "duplicate-id", "{diagnostic}");
    assert_eq!(diagnostic["file"], "scripts/talk.yaml", "{diagnostic}");
    for (name, kind, text, status) in [
        ("talk.yaml", "text/plain", TALK, 400),
        ("talk.txt", "application/yaml", TALK, 400),
        (".talk.yaml", "application/yaml", TALK, 400),
        ("..%2Ftalk.yaml", "application/yaml", TALK, 400),
        ("a%2Fb.yaml", "application/yaml", TALK, 400),
        ("talk.yaml", "application/yaml", "", 422),
        ("talk.yaml", "application/yaml", &"# much\n".repeat(500_000), 413),
    ] {
        let refused = put(&serving, name, kind, text).await;
        assert_eq!(refused.status, status, "{name} {kind}: {refused:?}");
        assert_eq!(refused.header("content-type"), "application/problem+json", "{name} {kind}");
    }
    assert_eq!(std::fs::read_to_string(home.path().join("scripts/talk.yaml")).unwrap(), before);
    let files: Vec<_> = std::fs::read_dir(home.path().join("scripts")).unwrap().collect();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[tokio::test]
async fn scripts_in_subfolders_are_stored_where_they_are_and_nothing_outside_is_changed() {
    let home = project();
    let named = |id: &str| TALK.replace("session_id: talk", &format!("session_id: {id}"));
    home.put("scripts/care/deep er/listed one.yaml", named("listed"));
    home.put("outside/theirs.yaml", named("theirs"));
    home.put("other/linked.yaml", named("linked"));
    std::os::unix::fs::symlink("../other", home.path().join("scripts/linked")).unwrap();
    std::os::unix::fs::symlink("../other/linked.yaml", home.path().join("scripts/link.yaml")).unwrap();
    let serving = Serving::start(&home);
    let changed = |id: &str| named(id).replace("Who are you?", "What is your name?");
    // What is listed, also with a name that a new script may not have, and a new one.
    for (path, id, replaced) in [
        ("scripts/care/deep er/listed one.yaml", "listed", true),
        ("scripts/care/new.yaml", "new", false),
        ("scripts/care/new.yaml", "new", true),
        ("scripts/top.yaml", "top", false),
    ] {
        let name = path.replace('/', "%2F").replace(' ', "%20");
        let stored = put(&serving, &name, "application/yaml", &changed(id)).await;
        assert_eq!((stored.status, stored.json()), (200, json!({ "path": path, "replaced": replaced })));
        assert_eq!(std::fs::read_to_string(home.path().join(path)).unwrap(), changed(id));
        let source = serving.get(&format!("/v1/scripts/{name}/source")).await;
        assert_eq!(source.text, changed(id));
    }
    let broken = put(
        &serving,
        "scripts%2Fcare%2Fnew.yaml",
        "application/yaml",
        &changed("new").replace("ask_likes", "ask_name"),
    )
    .await;
    assert_eq!(
        (broken.status, &broken.json()["diagnostics"][0]["file"]),
        (422, &json!("scripts/care/new.yaml")),
        "{broken:?}"
    );
    for name in [
        "scripts%2Fcare%2F..%2F..%2Foutside%2Ftheirs.yaml",
        "scripts%2F..%2Foutside%2Ftheirs.yaml",
        "outside%2Ftheirs.yaml",
        "outside%2Fnew.yaml",
        "%2Ftmp%2Fnew.yaml",
        "scripts%2Fnone%2Fnew.yaml",
        "scripts%2F%2Fnew.yaml",
        "scripts%2F.hidden%2Fnew.yaml",
        "scripts%2Flinked%2Flinked.yaml",
        "scripts%2Flinked%2Fnew.yaml",
        "scripts%2Flink.yaml",
        "care%2Fnew.yaml",
    ] {
        let refused = put(&serving, name, "application/yaml", &changed("theirs")).await;
        assert_eq!(
            (refused.status, refused.header("content-type")),
            (400, "application/problem+json"),
            "{name}: {refused:?}"
        );
        assert!(!refused.text.contains(home.path().to_str().unwrap()), "{refused:?}");
    }
    for (file, id) in [("outside/theirs.yaml", "theirs"), ("other/linked.yaml", "linked")] {
        assert_eq!(std::fs::read_to_string(home.path().join(file)).unwrap(), named(id), "{file}");
    }
    let files = |folder: &str| std::fs::read_dir(home.path().join(folder)).unwrap().count();
    assert_eq!((files("scripts"), files("scripts/care"), files("outside"), files("other")), (5, 2, 1, 1));
}

#[tokio::test]
async fn where_scripts_may_run_commands_none_is_accepted() {
    for configuration in ["[project]\nallow = [\"command\"]\n", "[mcp_servers.s]\ncommand = [\"true\"]\n"] {
        let home = project();
        home.put("bcc-script.toml", configuration);
        let serving = Serving::with(&home, &["--trust"]);
        let refused = put(&serving, "talk.yaml", "application/yaml", TALK).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(refused.text.contains("bcc-script trust"), "{refused:?}");
    }
}

#[tokio::test]
async fn plans_are_listed_given_and_deleted() {
    let home = project();
    assert_eq!(home.finish(["run", "scripts/talk.yaml", "--session", "one"], "").code, Some(3));
    // What is sensitive in the session that made it is masked.
    let plan = json!({ "bcc_plan": 1, "plan_id": 42, "title": "Report classified", "goal": "g", "session_id": "one", "tasks": [
        { "id": 1, "name": "One classified" }, { "id": 2, "parent": 1, "name": "Data" } ] });
    home.put("plan.json", plan.to_string());
    assert_eq!(home.finish(["plans", "import", "plan.json"], "").code, Some(0));
    let serving = Serving::start(&home);
    let listed = serving.get("/v1/plans").await.json();
    assert_eq!((&listed["plans"][0]["plan_id"], &listed["plans"][0]["tasks"]), (&json!(42), &json!(2)), "{listed}");
    assert_eq!(serving.get("/v1/plans?user=ben").await.json()["plans"], json!([]));
    let given = serving.get("/v1/plans/42").await.json();
    assert_eq!(given["tasks"][1]["name"], "Data");
    assert!(serving.get("/v1/plans/42?format=md").await.text.contains("Data"));
    assert!(serving.get("/v1/plans/42?format=mermaid").await.text.starts_with("flowchart"));
    for path in ["/v1/plans", "/v1/plans/42", "/v1/plans/42?format=md", "/v1/plans/42?format=mermaid"] {
        let text = serving.get(path).await.text;
        assert!(text.contains("Report") && !text.contains("classified"), "{path}: {text}");
    }
    for path in ["/v1/plans/7", "/v1/plans/x", "/v1/plans/42?user=ben"] {
        assert_eq!(serving.get(path).await.status, 404, "{path}");
        assert_eq!(serving.send(Method::DELETE, path, &[], None).await.status, 404, "{path}");
    }
    assert_eq!(serving.send(Method::DELETE, "/v1/plans/42", &[], None).await.status, 204);
    assert_eq!(serving.get("/v1/plans/42").await.status, 404);
}
