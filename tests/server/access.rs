//! Who may do what, and from where.

use reqwest::Method;
use serde_json::json;

use crate::begin_again::ORDER;
use crate::process::{Home, TIMEOUT};
use crate::served::{Serving, TALK};

/// A conversation in which somebody else decides.
const RELEASE: &str = "
session:
  session_id: release
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: name, config: { content: Who are you?, delivery: verbatim, max_rounds: 1 } }
            - { action_type: approval, action_id: ask, config: { prompt: 'Risk 97: deploy?' } }
";

/// A token of each role, in a configuration that lists their hashes.
pub fn tokens(home: &Home) -> Vec<(String, String)> {
    let mut config =
        String::from("[serve]\nhosts = [\"chat.example.org\"]\norigins = [\"https://page.example.org\"]\n");
    let mut tokens = Vec::new();
    for role in ["talk", "decide", "author", "admin"] {
        let made = home.finish(["serve", "--new-token", role], "");
        assert_eq!(made.code, Some(0), "{made:?}");
        let token = made.out.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
        let lines = made.out.split_once("[serve.tokens.NAME]").unwrap().1;
        config.push_str(&format!("[serve.tokens.{role}]{lines}"));
        assert!(!config.contains(&token));
        tokens.push((role.to_owned(), token));
    }
    home.put("bcc-script.toml", config);
    tokens
}

#[tokio::test]
async fn a_role_permits_what_it_says() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    assert_eq!(serving.get("/v1/scripts").await.status, 401);
    assert_eq!(serving.get("/healthz").await.status, 200);
    let wrong = serving.as_caller("bcc_0000").get("/v1/scripts").await;
    assert_eq!((wrong.status, wrong.header("www-authenticate")), (401, "Bearer"));
    let wrong = serving.as_caller("bcc_0000").get("/v1/models").await;
    assert_eq!((wrong.status, wrong.header("www-authenticate")), (401, "Bearer"));
    let talk = serving.as_caller(&tokens[0].1);
    let created = talk.post("/v1/sessions", json!({ "script": "talk" })).await;
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    // For each path the first role that may use it.
    let paths = [
        (Method::GET, "/v1/scripts".to_owned(), 0),
        (Method::GET, "/v1/models".to_owned(), 0),
        (Method::POST, "/v1/actions".to_owned(), 0),
        (Method::POST, "/v1/reflection".to_owned(), 0),
        (Method::POST, "/planning".to_owned(), 0),
        (Method::POST, "/generating".to_owned(), 0),
        (Method::POST, "/reflecting".to_owned(), 0),
        (Method::GET, format!("/v1/sessions/{id}"), 0),
        (Method::POST, format!("/v1/sessions/{id}/continue"), 0),
        (Method::GET, "/v1/requests".to_owned(), 1),
        (Method::GET, "/v1/scripts/talk".to_owned(), 2),
        (Method::GET, "/v1/sessions".to_owned(), 2),
        (Method::GET, format!("/v1/sessions/{id}/export"), 2),
        (Method::GET, format!("/v1/sessions/{id}/variables"), 2),
        (Method::GET, format!("/v1/sessions/{id}/plan"), 2),
        (Method::GET, format!("/v1/sessions/{id}/metrics"), 2),
        (Method::GET, format!("/v1/sessions/{id}/calls"), 2),
        (Method::GET, format!("/v1/sessions/{id}/report"), 2),
        (Method::GET, format!("/v1/sessions/{id}/notebook"), 2),
        (Method::GET, format!("/v1/sessions/{id}/notebook?outputs=linked"), 2),
        (Method::GET, format!("/v1/sessions/{id}/outputs/{}", "0".repeat(64)), 2),
        (Method::POST, format!("/v1/sessions/{id}/fork"), 2),
        (Method::POST, format!("/v1/sessions/{id}/again"), 2),
        (Method::GET, format!("/v1/sessions/{id}/again"), 2),
        (Method::GET, "/v1/data-set".to_owned(), 2),
        (Method::GET, "/v1/data-set?include_sensitive=true".to_owned(), 3),
        (Method::GET, "/v1/scripts/talk/graph".to_owned(), 2),
        (Method::GET, "/v1/schemas".to_owned(), 2),
        (Method::GET, "/v1/schemas/script".to_owned(), 2),
        (Method::GET, "/v1/templates".to_owned(), 2),
        (Method::POST, "/v1/templates/render".to_owned(), 2),
        (Method::POST, "/v1/tests".to_owned(), 2),
        (Method::PUT, "/v1/scripts/talk.yaml".to_owned(), 2),
        (Method::GET, "/v1/plans".to_owned(), 2),
        (Method::GET, "/v1/plans/7".to_owned(), 2),
        (Method::DELETE, "/v1/plans/7".to_owned(), 3),
        (Method::GET, "/metrics".to_owned(), 3),
        (Method::POST, format!("/v1/sessions/{id}/cancel"), 2),
        (Method::DELETE, format!("/v1/sessions/{id}"), 3),
    ];
    for (number, (role, token)) in tokens.iter().enumerate() {
        for (method, path, needed) in &paths {
            let headers = [("content-type", "application/json")];
            let reply = serving.as_caller(token).send(method.clone(), path, &headers, Some(b"{}".to_vec())).await;
            assert_eq!(reply.status == 403, number < *needed, "{role} {method} {path}: {reply:?}");
            // What was cancelled cannot be forked, continued or cancelled again. There are no plans and tests, and the body names no template
            // and no answer, and is no observation.
            let parts = [
                "/actions",
                "/reflection",
                "/planning",
                "/generating",
                "/reflecting",
                "/fork",
                "/again",
                "/cancel",
                "/continue",
                "/render",
                "/tests",
                "/plans/7",
                ".yaml",
                "/outputs/0000000000000000000000000000000000000000000000000000000000000000",
            ];
            let is_about_content =
                matches!(reply.status, 400 | 404 | 409) && parts.iter().any(|part| path.ends_with(part));
            assert!(reply.status < 300 || reply.status == 403 || is_about_content, "{role} {path}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn who_talks_sees_no_prompts_and_no_variables() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    let talk = serving.as_caller(&tokens[0].1);
    let id = talk.post("/v1/sessions", json!({ "script": "talk" })).await.json()["id"].as_str().unwrap().to_owned();
    for text in ["Ann", "tea"] {
        assert_eq!(talk.post(&format!("/v1/sessions/{id}/messages"), json!({ "text": text })).await.status, 200);
    }
    let events = talk.get(&format!("/v1/sessions/{id}/events")).await.text;
    assert!(events.contains("Ann likes tea.") && events.contains("event: waiting"), "{events}");
    for hidden in ["event: model_call", "event: variable_set", "event: outcome", "classified", "messages"] {
        assert!(!events.contains(hidden), "{hidden}: {events}");
    }
    // An id that somebody chooses can be guessed.
    let chosen = talk.post("/v1/sessions", json!({ "script": "talk", "session_id": "one" })).await;
    assert_eq!(chosen.status, 403, "{chosen:?}");
}

#[tokio::test]
async fn what_somebody_decides_is_not_for_who_talks() {
    let home = Home::new();
    home.put("scripts/release.yaml", RELEASE);
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    let (talk, decide) = (serving.as_caller(&tokens[0].1), serving.as_caller(&tokens[1].1));
    let created = talk.post("/v1/sessions", json!({ "script": "release" })).await.json();
    let path = format!("/v1/sessions/{}", created["id"].as_str().unwrap());
    let said = talk.post(&format!("{path}/messages"), json!({ "text": "Ann" })).await.json();
    assert_eq!((&created["waiting"]["prompt"], &said["waiting"]["prompt"]), (&json!("Who are you?"), &json!("")));
    assert_eq!(talk.get(&path).await.json()["waiting"], said["waiting"]);
    assert_eq!(talk.post(&format!("{path}/continue"), json!({})).await.json()["waiting"], said["waiting"]);
    assert_eq!(decide.get(&path).await.json()["waiting"]["prompt"], "Risk 97: deploy?");
    let request = &decide.get("/v1/requests").await.json()["requests"][0]["request_id"];
    let decision = format!("{}/{}", path.replace("sessions", "requests"), request.as_str().unwrap());
    let one_part = format!("/v1/requests/{}%2F{}", created["id"].as_str().unwrap(), request.as_str().unwrap());
    for path in [&decision, &one_part] {
        assert_eq!(talk.post(path, json!({ "decision": "approve" })).await.status, 403);
    }
    assert_eq!(decide.post(&decision, json!({ "decision": "approve", "by": "ann" })).await.status, 200);
    for (caller, is_shown) in [(&talk, false), (&decide, true)] {
        let events = caller.get(&format!("{path}/events")).await.text;
        assert!(events.contains("\"for\":\"approval\"") && events.contains("\"prompt\":\"Who are you?\""), "{events}");
        assert_eq!(events.contains("Risk 97"), is_shown, "{events}");
    }
}

/// A talk that leaves something out, and then needs a model.
const SCORED: &str = "
session:
  session_id: scored
  declare: [{ var: score, type: integer, value: 3 }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: name, config: { content: Who are you?, delivery: verbatim, require_acknowledgment: true } }
            - { action_type: ai_say, action_id: warn, condition: score > 97, config: { content: Oh. } }
            - { action_type: ai_say, action_id: think, config: { content: Think } }
";

#[tokio::test]
async fn events_tell_who_talks_nothing_of_conditions_models_and_reasons() {
    let home = Home::new();
    home.put("scripts/scored.yaml", SCORED);
    let tokens = tokens(&home);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    let model = "[models.default]\nprovider = \"openai\"\nmodel = \"m-7\"\nbase_url = \"http://127.0.0.1:9\"\nmax_attempts = 1\n";
    home.put("bcc-script.toml", format!("{config}{model}"));
    let serving = Serving::with(&home, &["--trust"]);
    let (talk, author) = (serving.as_caller(&tokens[0].1), serving.as_caller(&tokens[2].1));
    let hidden = ["score > 97", "127.0.0.1:9", "m-7", "an audit", "model_calls", "tokens_in", "fork_of"];
    let mut seen = String::new();
    for ending in ["stop", "cancel", "fork"] {
        let created = talk.post("/v1/sessions", json!({ "script": "scored" })).await.json();
        let mut path = format!("/v1/sessions/{}", created["id"].as_str().unwrap());
        if ending == "fork" {
            let fork = author.post(&format!("{path}/fork"), json!({})).await.json();
            path = format!("/v1/sessions/{}", fork["id"].as_str().unwrap());
        }
        if ending != "stop" {
            let cancelled = author.post(&format!("{path}/cancel"), json!({ "reason": "an audit" })).await;
            assert_eq!(cancelled.status, 200, "{cancelled:?}");
        } else {
            let said = talk.post(&format!("{path}/messages"), json!({ "text": "Ann" })).await;
            assert_eq!(said.json()["status"], "stopped", "{said:?}");
        }
        let last = if ending == "stop" { "session_stopped" } else { "session_cancelled" };
        for (caller, role) in [(&talk, 0), (&serving.as_caller(&tokens[1].1), 1), (&author, 2)] {
            let events = caller.until(&format!("{path}/events"), last).await;
            assert!(events.contains("\"answers\":") && events.contains("session_started"), "{events}");
            if role == 2 {
                seen.push_str(&events);
                continue;
            }
            for internal in hidden {
                assert!(!events.contains(internal), "{role} {ending} {internal}: {events}");
            }
        }
    }
    for internal in hidden {
        assert!(seen.contains(internal), "{internal}: {seen}");
    }
}

#[tokio::test]
async fn who_talks_does_not_decide_about_an_interrupted_effect() {
    let home = Home::new();
    home.put("scripts/order.yaml", ORDER);
    let tokens = tokens(&home);
    let config = std::fs::read_to_string(home.path().join("bcc-script.toml")).unwrap();
    home.put("bcc-script.toml", format!("[project]\nallow = [\"write_file\"]\n{config}"));
    let serving = Serving::with(&home, &["--trust"]);
    let caller = |role: usize| serving.as_caller(&tokens[role].1);
    let created = caller(0).post("/v1/sessions", json!({ "script": "order" })).await.json();
    let path = format!("/v1/sessions/{}", created["id"].as_str().unwrap());
    assert_eq!(caller(0).post(&format!("{path}/messages"), json!({ "text": "tea" })).await.status, 200);
    // Begun again, it asks before it writes the file again.
    let again = caller(2).post(&format!("{path}/again"), json!({ "turn": 1 })).await.json();
    let path = format!("/v1/sessions/{}", again["id"].as_str().unwrap());
    let waits_for_a_decision =
        async { while caller(2).get(&path).await.json()["waiting"]["for"] != "interrupted_effect" {} };
    tokio::time::timeout(TIMEOUT, waits_for_a_decision).await.unwrap();
    for body in [json!({ "text": "skip" }), json!({ "text": "skip", "on_busy": "interrupt" })] {
        let refused = caller(0).post(&format!("{path}/messages"), body).await;
        assert!(refused.status == 409 && refused.text.contains("decision about an action"), "{refused:?}");
    }
    // With a key, the decision has an effect once.
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    for _ in 0..2 {
        let body = Some(json!({ "text": "skip" }).to_string().into_bytes());
        let decided = caller(1).send(Method::POST, &format!("{path}/messages"), &headers, body).await;
        assert_eq!((decided.status, &decided.json()["waiting"]["prompt"]), (200, &json!("More?")), "{decided:?}");
    }
}

#[tokio::test]
async fn pages_of_others_may_not_call_the_server() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    let caller = serving.as_caller(&tokens[3].1);
    let with = |headers: Vec<(&'static str, &'static str)>| {
        let caller = &caller;
        async move { caller.send(Method::GET, "/v1/scripts", &headers, None).await }
    };
    assert_eq!(with(vec![("host", "evil.example")]).await.status, 403);
    assert_eq!(with(vec![("host", "chat.example.org")]).await.status, 200);
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        let reply = with(vec![("origin", origin)]).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, ""), "{origin}");
    }
    let allowed = with(vec![("origin", "https://page.example.org")]).await;
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, "https://page.example.org"));
    assert!(allowed.header("access-control-expose-headers").contains("etag"));
    let asks =
        [("origin", "https://page.example.org"), ("access-control-request-headers", "authorization,if-match,x-chat")];
    let asked = serving.send(Method::OPTIONS, "/v1/scripts", &asks, None).await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-headers"), "authorization,if-match,x-chat");
}

#[tokio::test]
async fn a_client_that_sends_too_much_has_to_wait() {
    let home = Home::new();
    home.put("bcc-script.toml", "[serve]\nrequests_per_minute = 3\n");
    let serving = Serving::with(&home, &["--trust"]);
    let mut last = serving.get("/v1/scripts").await;
    for _ in 0..3 {
        assert_eq!(last.status, 200);
        last = serving.get("/v1/scripts").await;
    }
    assert_eq!(last.status, 429, "{last:?}");
    assert!(last.header("retry-after").parse::<u64>().unwrap() > 0);
    assert_eq!(serving.get("/healthz").await.status, 200);
}

#[test]
fn without_tokens_the_server_is_for_this_machine_only() {
    let home = Home::new();
    let refused = home.finish(["serve", "--addr", "0.0.0.0:0"], "");
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!("public_without_tokens", refused.err);
    home.put("bcc-script.toml", "[serve]\naddress = \"127.0.0.1:0\"\n");
    let refused = home.finish(["serve"], "");
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!("settings_without_trust", refused.err);
}
