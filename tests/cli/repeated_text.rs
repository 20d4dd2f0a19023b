//! What a server of a model repeats of a conversation is not in error messages.

use serde_json::json;

use crate::process::Home;
use crate::server::{Server, ServerBehavior};

#[test]
fn an_error_of_a_model_that_repeats_the_person_does_not_contain_it() {
    let refusal = r#"{"error": {"message": "input 'my dog Rex died on Monday' is not permitted"}}"#;
    for (answer, shown) in [
        ("My dog Rex died on Monday!", "input '…' is not permitted"),
        ("nothing", "input 'my dog Rex died on Monday' is not permitted"),
    ] {
        let server = Server::start(vec![ServerBehavior::Rejects(400, refusal)]);
        let home = Home::new();
        let model = format!("[models.m]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", server.base_url);
        home.file("bcc-script.toml", &model);
        let config = json!({ "content": "well?", "delivery": "verbatim", "max_rounds": 1 });
        let actions = json!([
            { "action_type": "ai_ask", "action_id": "ask", "config": config },
            { "action_type": "ai_say", "action_id": "say", "config": { "content": "Answer {{ last_user_message }}" } },
        ]);
        let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }]);
        home.file("s.yaml", &json!({ "session": { "session_id": "s", "phases": phases } }).to_string());
        let finished = home
            .finish(["run", "s.yaml", "--json", "--trust", "--model", "m"], format!("{}\n", json!({ "user": answer })));
        let error = finished.events().into_iter().find(|event| event["type"] == "error").unwrap_or_default();
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{finished:?}"));
        assert!(message.contains("returned 400"), "{message}");
        assert!(message.contains(shown), "{message}");
    }
}
