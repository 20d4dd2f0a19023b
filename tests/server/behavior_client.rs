//! Two programs that speak the behavior protocol of older clients with each other: one plans and judges, the other keeps the notebook.

use serde_json::{Value, json};

use crate::process::Home;
use crate::served::Serving;

const REPLIES: &str = r#"
replies:
  behavior:
    - { behavior: { agent: analyst, task: Count the rows, acceptance: [count > 0] } }
  actions:
    - { actions: [{ action: new_section, content: Counting }, { action: add, content: There are 12. }] }
  reflection:
    - { target_achieved: true, reason: they are counted }
"#;

const SCRIPT: &str = r#"
session:
  session_id: rows
  phases:
    - phase_id: read
      topics:
        - topic_id: count
          topic_goal: the rows are counted
          actions:
            - { action_type: behavior_loop, action_id: work, config: { server: planner, max_behaviors: 3 } }
"#;

#[tokio::test]
async fn a_loop_gets_its_plans_actions_and_judgements_from_the_endpoints_of_older_clients() {
    for form in ["new", "older"] {
        let server = Home::new();
        let replies = server.put("replies.yaml", REPLIES);
        let serving = Serving::with(&server, &["--model", &format!("replay:{}", replies.display())]);
        let client = Home::new();
        let url = &serving.url;
        let table = format!("[behavior_servers.planner]\nurl = \"{url}\"\npaths = \"reflecting\"\nform = \"{form}\"\n");
        client.put("bcc-script.toml", &table);
        client.put("rows.yaml", SCRIPT);
        let finished = client.finish(["run", "rows.yaml", "--json", "--trust", "--session", "one"], "");
        assert_eq!(finished.code, Some(0), "{form}: {finished:?}");
        let events = finished.events();
        let of_type = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["type"] == kind).collect() };
        let behaviors = of_type("behavior");
        assert_eq!(behaviors.len(), 1, "{form}: {behaviors:?}");
        let behavior = behaviors[0];
        assert_eq!(
            json!([behavior["behavior_id"], behavior["target"], behavior["decided_by"], behavior["why"]]),
            json!(["count_b1", "Count the rows\n- count > 0", "reflection", "they are counted"]),
            "{form}"
        );
        let effects: Vec<&Value> = of_type("notebook_action").into_iter().map(|event| &event["effects"][0]).collect();
        assert_eq!(effects, ["Created section: Counting", "Added content: There are 12."], "{form}");
        assert!(of_type("warning").is_empty(), "{form}: {:?}", of_type("warning"));
    }
}
