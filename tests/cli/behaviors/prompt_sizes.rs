//! The size of the prompts of a behavior loop with a long notebook (docs/actions/behavior_loop.md, "What a model sees"), and that nothing
//! stands in them twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaving::KeyedReplies;
use crate::behaviors::{host, run, test_session};
use crate::crashing_store::CrashMode;

/// The maximum size of a prompt, in bytes.
const MAX_BYTES: usize = 24 * 1024;

/// The cells of the notebook: 50 for each of the first behaviors.
const CELLS: usize = 200;

/// A loop over one stage of 24 steps, with 60 variables and a todo list of 40 items.
fn script() -> String {
    let variables: Vec<Value> = (0..60)
        .map(|n| json!({ "var": format!("variable_{n:02}"), "type": "list", "value": (0..40).map(|i| json!({ "id": i, "name": format!("row {n}-{i}") })).collect::<Vec<_>>() }))
        .collect();
    let steps: Vec<Value> = (0..24)
        .map(|n| json!({ "id": format!("step_{n:02}"), "name": format!("The step with the number {n}"), "goal": "The notebook describes every river with its gauges and their gaps." }))
        .collect();
    let todo: Vec<String> =
        (0..40).map(|n| format!("Item {n} of the todo list: look at the values once more")).collect();
    json!({ "session": {
        "session_id": "long", "declare": variables, "global_goal": "to know the rivers",
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "topic_goal": "the rivers are described", "actions": [{
            "action_type": "behavior_loop", "action_id": "work",
            "config": {
                "todo_list": todo, "max_behaviors": 6, 
                "workflow": { "name": "rivers", "stages": [{ "id": "describe", "name": "Describe", "steps": steps }, { "id": "tell", "name": "Tell", "steps": [] }] },
            },
        }] }] }],
    } })
    .to_string()
}

/// The actions of a behavior: sections with a text, code with an output, and a remark.
fn actions(behavior: usize) -> Vec<Value> {
    let section = |n: usize| {
        let number = behavior * 10 + n;
        let code = json!({ "action": "add", "content_type": "code", "content": format!("# {}\nfound_{number} = measure({number})", "why ".repeat(60)), "metadata": { "should_execute": true } });
        [
            json!({ "action": "new_section", "content": format!("Gauge {number}") }),
            json!({ "action": "add", "content": format!("The gauge {number} is described here. {}", "It stands at the river. ".repeat(40)) }),
            code.clone(),
            json!({ "action": "add", "content": format!("Nothing else is known of {number}.") }),
            code,
        ]
    };
    (0..10).flat_map(section).collect()
}

async fn prompts(scheme: Option<&str>) -> BTreeMap<String, String> {
    let failing: Vec<Value> =
        (0..9).map(|n| json!({ "action": "exec", "codecell_id": format!("cell_that_is_not_there_{n}") })).collect();
    let mut replies: BTreeMap<String, String> = (0..CELLS / 50)
        .map(|n| {
            (
                format!("behavior {}", n + 1),
                json!({ "behavior": { "target": "Describe ten gauges" }, "actions": actions(n) }).to_string(),
            )
        })
        .collect();
    replies
        .insert("behavior 5".to_owned(), json!({ "actions": failing, "context_update": { "unknown": 1 } }).to_string());
    replies.insert("*".to_owned(), json!({ "actions": [], "target_achieved": false }).to_string());
    let provider = Arc::new(KeyedReplies(replies, Mutex::default()));
    let models: Arc<dyn ModelProviders> = test_session::FixedModels::without_monitors(Some(Arc::clone(&provider) as _));
    let (program, _) = test_session::pinned(&script(), Path::new(crate::ROOT), scheme);
    let result = run(&program, &host(json!({}), json!({})), &models, CrashMode::Never).await;
    assert_eq!((result.pause, result.contents.len()), (SessionPause::Completed, CELLS));
    let requests = provider.1.lock().unwrap();
    let text = |request: &bcc_llm::model::request::ModelRequest| -> String {
        request.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
    };
    requests.iter().map(|request| (format!("{} {}", request.task.kind, request.task.round), text(request))).collect()
}

/// The observation of a prompt.
fn observation(prompt: &str) -> Value {
    let line =
        prompt.lines().find(|line| line.starts_with("{\"kernel_language\"") || line.starts_with("{\"plan\"")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[tokio::test]
async fn the_prompts_stay_below_their_maximum_and_say_nothing_twice() {
    let mut sizes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for scheme in [Some("english"), None] {
        let prompts = prompts(scheme).await;
        for (kind, round) in [("behavior", 6), ("reflection", 5)] {
            let prompt = &prompts[&format!("{kind} {round}")];
            assert!(prompt.len() < MAX_BYTES, "{scheme:?} {kind}: {} bytes\n{prompt}", prompt.len());
            sizes.entry(kind).or_default().push(prompt.len());
            for once in [
                "Item 0 of the todo list",
                "the notebook has no cell with the id in `codecell_id`\"},{\"number\":2",
                "describes every river",
            ] {
                assert_eq!(prompt.matches(once).count(), 1, "{once}: {prompt}");
            }
            // With it, the prompts of a replay would be other ones.
            assert!(!prompt.contains("execution_time_ms"), "{prompt}");
            let observed = observation(prompt);
            assert_eq!(observed["kernel_language"], "python");
            assert_eq!(observed["plan"]["stages"][0]["state"], "current", "{}", observed["plan"]);
            let notebook = &observed["notebook"];
            let shown = notebook["cells"].as_array().unwrap();
            let outline = notebook["outline_of_earlier_cells"].as_array().unwrap();
            assert!(!shown.is_empty() && outline.iter().all(|line| !line.as_str().unwrap().contains("Gauge 39 ")));
            assert!(outline.iter().any(|line| line.as_str().unwrap().starts_with("### Gauge 0 (1–5)")), "{outline:#?}");
            assert!(prompt.contains("[40 items with id, name]") && prompt.contains("… "), "{prompt}");
        }
        if scheme.is_some() {
            insta::assert_snapshot!(
                "observation_of_a_long_notebook",
                format!("{:#}", observation(&prompts["behavior 6"]))
            );
        }
    }
    let table: String =
        sizes.iter().map(|(kind, sizes)| format!("| `{kind}` | {} | {} |\n", sizes[0], sizes[1])).collect();
    let page = std::fs::read_to_string(Path::new(crate::ROOT).join("docs/actions/behavior_loop.md")).unwrap();
    assert!(page.contains(&table), "docs/actions/behavior_loop.md shows other sizes than these:\n{table}");
}
