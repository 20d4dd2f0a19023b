//! The same message once more: after its answer was taken back, in a fork, and twice at once.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::chat::{ChatClient, project};
use crate::served::{Serving, TALK};

#[tokio::test]
async fn a_chat_says_the_same_again_after_somebody_has_taken_it_back() {
    let home = project();
    let serving = Serving::start(&home);
    let mut client = ChatClient::new(&serving);
    client.say("hi").await;
    let (told, id) = client.say("Ann").await;
    for _ in 0..2 {
        let taken = serving.post(&format!("/v1/sessions/{id}/take_back"), json!({})).await;
        assert_eq!(taken.status, 200, "{taken:?}");
        client.forget(2);
        assert_eq!(client.say("Ann").await, (told.clone(), id.clone()));
    }
    // Sent once more, it has the same reply, and is no answer.
    client.forget(1);
    client.headers = vec![("x-stainless-retry-count", "1".to_owned())];
    let again = client.send().await;
    assert_eq!((again.status, &again.json()["choices"][0]["message"]["content"]), (200, &json!(told)), "{again:?}");
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    let answers = export["transcript"].as_array().unwrap().iter().filter(|said| said["role"] == "user");
    assert_eq!(answers.count(), 1);
}

#[tokio::test]
async fn a_key_of_the_session_that_was_forked_is_another_one_in_the_fork() {
    let home = project();
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let say = async |id: &str, text: &str, key: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        let body = Some(json!({ "text": text }).to_string().into_bytes());
        serving.send(reqwest::Method::POST, &format!("/v1/sessions/{id}/messages"), &headers, body).await
    };
    assert_eq!(say(&id, "Ann", "1").await.status, 200);
    let forked = serving.post(&format!("/v1/sessions/{id}/fork"), json!({})).await;
    let fork = forked.json()["id"].as_str().unwrap_or_else(|| panic!("{forked:?}")).to_owned();
    let first = say(&fork, "tea", "1").await;
    assert_eq!((first.status, &first.json()["status"]), (200, &json!("completed")), "{first:?}");
    let again = say(&fork, "tea", "1").await;
    assert_eq!((again.status, again.json()), (200, first.json()), "{again:?}");
    assert_eq!(say(&fork, "cake", "1").await.status, 409);
    // In the first session, it is still the key of the first message.
    assert_eq!(say(&id, "Ann", "1").await.json()["messages"][0]["text"], "What do you like?");
}

#[tokio::test]
async fn of_a_message_that_is_sent_several_times_at_once_none_is_rejected() {
    let home = project();
    let serving = Serving::start(&home);
    for _ in 0..10 {
        let id = serving.session("talk").await;
        let path = format!("/v1/sessions/{id}/messages");
        let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
        let body = json!({ "text": "Ann", "on_busy": "reject" }).to_string().into_bytes();
        let send = || serving.send(reqwest::Method::POST, &path, &headers, Some(body.clone()));
        let replies = join_all([send(), send(), send(), send()]).await;
        let told: Vec<Value> = replies.iter().map(|reply| reply.json()["messages"].clone()).collect();
        assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
        assert!(told.iter().all(|messages| *messages == told[0]), "{told:?}");
    }
}

#[tokio::test]
async fn scripts_with_the_same_id_are_models_with_their_paths() {
    let home = project();
    home.put("scripts/other.yaml", TALK);
    home.put("scripts/third.yaml", TALK.replace("session_id: talk", "session_id: third"));
    let serving = Serving::start(&home);
    let models = serving.get("/v1/models").await.json();
    let ids: Vec<&str> = models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    for id in ids {
        let model = serving.get(&format!("/v1/models/{}", id.replace('/', "%2F"))).await;
        assert_eq!((model.status, &model.json()["id"]), (200, &json!(id)), "{model:?}");
    }
}

/// Numbers that fit no number of a computer are shown as they were written.
#[tokio::test]
async fn variables_are_shown_with_their_digits() {
    let home = project();
    let precise = "{ var: precise, type: number, value: 12345678901234567890.55 }";
    home.put("scripts/talk.yaml", TALK.replace("    - { var: name,", &format!("    - {precise}\n    - {{ var: name,")));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let variables = serving.get(&format!("/v1/sessions/{id}/variables")).await;
    assert!(variables.text.contains("12345678901234567890.55"), "{variables:?}");
}

#[tokio::test]
async fn a_script_is_checked_in_the_language_that_the_client_wants_most() {
    let home = project();
    home.put(
        "scripts/wrong.yaml",
        TALK.replace("session_id: talk", "session_id: wrong").replace("content: 'Who", "contnet: 'Who"),
    );
    let serving = Serving::start(&home);
    for (accepted, is_chinese) in
        [("zh", true), ("fr-FR, zh-CN;q=0.9", true), ("en;q=0.1, zh", true), ("zh;q=0, en", false), ("", false)]
    {
        let headers = [("accept-language", accepted)];
        let checked = serving.send(reqwest::Method::GET, "/v1/scripts/wrong", &headers, None).await;
        let message =
            checked.json()["diagnostics"][0]["message"].as_str().unwrap_or_else(|| panic!("{checked:?}")).to_owned();
        assert_eq!(!message.is_ascii(), is_chinese, "{accepted}: {message}");
    }
}
