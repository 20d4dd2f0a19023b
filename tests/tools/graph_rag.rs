//! `graph_rag` with sources of a project: what is found, how the result is formed, and what bad sources and calls do.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bcc_runtime::effects::tools::{ToolError, ToolLimits, Tools};
use bcc_tools::graph::index::GraphIndex;
use serde_json::{Value, json};

use crate::tool_project::{ToolProject, call, call_with};

const PHAGES: &str = "subject,predicate,object,source
T4 phage,infects,E. coli,doi:10.1/a
T4 phage,attaches to,LPS receptor,
T4 phage,has part,long tail fiber,
long tail fiber,binds to,OmpC,
OmpC,is located in,outer membrane,
T7 phage,infects,E. coli,
Lambda phage,infects,E. coli,
Felix O1,infects,Salmonella,
outer membrane,is part of,Gram-negative cell,
";

fn phages() -> ToolProject {
    let project = ToolProject::new("[tools.graph_rag]\nsources = [\"knowledge/*\"]\n");
    project.write("knowledge/phages.csv", PHAGES);
    project
}

async fn value(tools: &dyn Tools, arguments: Value) -> Value {
    call(tools, "graph_rag", arguments).await.unwrap().value.into_value()
}

/// The triples of a result as texts.
fn triples(value: &Value) -> Vec<String> {
    let text = |triple: &Value, name: &str| triple[name].as_str().unwrap().to_owned();
    let triples = value["triples"].as_array().unwrap().iter();
    triples.map(|one| ["subject", "predicate", "object"].map(|name| text(one, name)).join(" | ")).collect()
}

#[tokio::test]
async fn the_example_of_the_design_finds_what_is_around_its_entities() {
    let project = phages();
    let tools = project.tools(false, &[]);
    let arguments = json!({
        "query": "How do T4 phages attach to E. coli?", "top_k": 12, "hops": 1, "return_subgraph": true,
        "focus_entities": ["T4 phage", "E. coli"],
    });
    let value = value(tools.as_ref(), arguments).await;
    let found = triples(&value);
    assert_eq!(found[0], "T4 phage | infects | E. coli");
    assert_eq!(found[1], "T4 phage | attaches to | LPS receptor");
    assert_eq!(found.len(), 5, "only what has one of the two entities: {found:?}");
    let first = &value["triples"][0];
    assert_eq!(
        (&first["source"], &first["attributes"]),
        (&json!("knowledge/phages.csv:2"), &json!({ "source": "doi:10.1/a" }))
    );
    assert!(first["score"].as_f64().unwrap() > value["triples"][4]["score"].as_f64().unwrap());
    assert!(value["prompt"].as_str().unwrap().starts_with("- T4 phage | infects | E. coli [knowledge/phages.csv:2]\n"));
    let subgraph = &value["subgraph"];
    assert_eq!(subgraph["nodes"][0], json!({ "id": 0, "name": "T4 phage" }));
    assert_eq!(subgraph["edges"][0], json!({ "source": 0, "target": 1, "predicate": "infects" }));
    assert_eq!(subgraph["edges"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn each_hop_reaches_one_step_further() {
    const CHAIN: [&str; 4] = ["has part", "binds to", "is located in", "is part of"];
    let project = phages();
    let tools = project.tools(false, &[]);
    for (hops, focus, reached) in [
        (0, json!([]), 2),
        (1, json!([]), 3),
        (2, json!([]), 4),
        (0, json!(["long tail fiber"]), 2),
        (1, json!(["long tail fiber"]), 2),
        (2, json!(["long tail fiber"]), 3),
        (3, json!(["long tail fiber"]), 4),
    ] {
        let arguments = json!({ "query": "long tail fibers", "hops": hops, "focus_entities": focus, "top_k": 100 });
        let found = triples(&value(tools.as_ref(), arguments).await);
        let has = |predicate: &&str| found.iter().any(|triple| triple.contains(&format!("| {predicate} |")));
        let in_chain: Vec<&str> = CHAIN.into_iter().filter(has).collect();
        assert_eq!(in_chain, CHAIN[..reached], "{hops} from {focus}: {found:?}");
    }
    let found = triples(&value(tools.as_ref(), json!({ "query": "long tail fiber", "top_k": 2, "hops": 3 })).await);
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn chinese_is_found_by_pairs_of_characters() {
    let project = ToolProject::new("[tools.graph_rag]\nsources = [\"a.tsv\", \"b.jsonl\"]\n");
    project.write("a.tsv", "头实体\t关系\t尾实体\nＴ４噬菌体\t吸附于\t大肠杆菌\n枯草杆菌\t形成\t芽孢\n");
    project.write(
        "b.jsonl",
        "{\"head\": \"T4 噬菌体\", \"relation\": \"编码\", \"tail\": \"长尾丝蛋白\", \"置信度\": 0.9}\n",
    );
    let tools = project.tools(false, &[]);
    let value = value(tools.as_ref(), json!({ "query": "T4噬菌体怎样吸附大肠杆菌？", "hops": 0 })).await;
    assert_eq!(triples(&value)[..2], ["Ｔ４噬菌体 | 吸附于 | 大肠杆菌", "T4 噬菌体 | 编码 | 长尾丝蛋白"]);
    assert_eq!(value["triples"][1]["source"], "b.jsonl:1");
    assert_eq!(value["triples"][1]["attributes"], json!({ "置信度": 0.9 }));
    let arguments = json!({ "query": "编码什么", "focus_entities": ["t4噬菌体"], "hops": 1 });
    let found = self::value(tools.as_ref(), arguments).await;
    assert_eq!(found["triples"].as_array().unwrap().len(), 2, "the same entity in another width: {found}");
}

#[tokio::test]
async fn an_entity_is_found_by_its_words_and_an_unknown_one_is_named() {
    let project = phages();
    let tools = project.tools(false, &[]);
    let value_of = |arguments: Value| value(tools.as_ref(), arguments);
    let found = value_of(json!({ "query": "infects", "focus_entities": ["phage T7"] })).await;
    assert_eq!(triples(&found)[0], "T7 phage | infects | E. coli");
    assert_eq!(found["triples"].as_array().unwrap().len(), 1);
    let found = value_of(json!({ "query": "Salmonella", "focus_entities": ["Vibrio"], "hops": 0 })).await;
    assert_eq!(found["unknown_entities"], json!(["Vibrio"]));
    assert_eq!(triples(&found), ["Felix O1 | infects | Salmonella"], "without a known entity, nothing is left out");
    let found = value_of(json!({ "query": "nothing of this kind exists" })).await;
    assert_eq!((triples(&found).len(), found["prompt"].as_str().unwrap()), (0, ""));
}

#[tokio::test]
async fn the_same_triple_of_two_sources_is_given_once() {
    let project = phages();
    project.write("knowledge/again.csv", "T4 phage,infects,E. coli\n");
    let tools = project.tools(false, &[]);
    let found = value(tools.as_ref(), json!({ "query": "T4 phage infects E. coli", "hops": 0 })).await;
    let sources: Vec<&Value> = found["triples"].as_array().unwrap().iter().map(|triple| &triple["source"]).collect();
    assert_eq!(triples(&found).iter().filter(|triple| *triple == "T4 phage | infects | E. coli").count(), 1);
    assert_eq!(sources[0], "knowledge/again.csv:1");
}

#[tokio::test]
async fn a_changed_source_is_used_by_the_next_call_and_by_another_process() {
    let project = phages();
    let tools = project.tools(false, &[]);
    let ask = json!({ "query": "Vibrio", "hops": 0 });
    assert!(triples(&value(tools.as_ref(), ask.clone()).await).is_empty());
    project.write("knowledge/new.csv", "VP1,infects,Vibrio\n");
    assert_eq!(triples(&value(tools.as_ref(), ask.clone()).await), ["VP1 | infects | Vibrio"]);
    drop(tools);
    let tools = project.tools(false, &[]);
    assert_eq!(triples(&value(tools.as_ref(), ask.clone()).await), ["VP1 | infects | Vibrio"]);
    std::fs::remove_file(project.at("knowledge/new.csv")).unwrap();
    assert!(triples(&value(tools.as_ref(), ask).await).is_empty());
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &str| project.at(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".bcc/graph"), mode(".bcc/graph/catalog.json")), (0o700, 0o600));
}

#[tokio::test]
async fn bad_lines_and_files_are_named_and_the_others_are_used() {
    let project = phages();
    project.write("knowledge/bad.csv", "a,b\n\"x,y,z\nT9 phage,infects,Vibrio\n");
    project.write("knowledge/bad.jsonl", b"{\"subject\": \"a\"}\nnot json\n\xff\n");
    project.write("knowledge/notes.txt", "text");
    let tools = project.tools(false, &[]);
    let found = value(tools.as_ref(), json!({ "query": "T9", "hops": 0 })).await;
    assert_eq!(triples(&found), ["T9 phage | infects | Vibrio"]);
    assert_eq!(
        found["problems"],
        json!([
            "knowledge/notes.txt: its name ends neither with .csv, nor with .tsv or .jsonl",
            "knowledge/bad.csv:1: the subject, the predicate or the object is missing",
            "knowledge/bad.csv:2: a quote that begins here does not end",
            "knowledge/bad.jsonl:1: the subject, the predicate or the object is missing",
            "knowledge/bad.jsonl:2: the line is neither a JSON object nor a list with a subject, a predicate and an object",
        ])
    );
}

#[tokio::test]
async fn triples_are_dropped_from_all_parts_of_the_result_until_the_rest_fits() {
    let project = phages();
    let tools = project.tools(false, &[]);
    let arguments = json!({ "query": "phage infects", "return_subgraph": true, "hops": 2 });
    let whole = value(tools.as_ref(), arguments.clone()).await;
    let limits = ToolLimits { max_bytes: 900, ..ToolLimits::default() };
    let output = call_with(tools.as_ref(), "graph_rag", arguments, limits).await.unwrap();
    let count = output.value["triples"].as_array().unwrap().len();
    assert!(output.is_truncated && output.value.to_string().len() <= 900, "{}", output.value);
    assert!(count > 1 && count < whole["triples"].as_array().unwrap().len(), "{count}");
    assert_eq!(output.value["triples"][0], whole["triples"][0]);
    assert_eq!(output.value["prompt"].as_str().unwrap().lines().count(), count);
    assert_eq!(output.value["subgraph"]["edges"].as_array().unwrap().len(), count);
}

#[tokio::test]
async fn wrong_arguments_and_a_missing_configuration_are_named() {
    let project = phages();
    let tools = project.tools(false, &[]);
    for (arguments, part) in [
        (json!({ "query": "" }), "`query`"),
        (json!({ "query": "a", "hops": 4 }), "`hops`"),
        (json!({ "query": "a", "focus_entities": "T4" }), "`focus_entities`"),
        (json!({ "query": "a", "focus_entity": [] }), "did you mean `focus_entities`?"),
    ] {
        let error = call(tools.as_ref(), "graph_rag", arguments).await.unwrap_err();
        assert!(matches!(error, ToolError::InvalidArguments { .. }) && error.to_string().contains(part), "{error}");
    }
    let error = call(ToolProject::new("").tools(true, &[]).as_ref(), "graph_rag", json!({ "query": "a" })).await;
    assert!(error.unwrap_err().to_string().contains("add `[tools.graph_rag]` with `sources` to bcc-script.toml"));
}

#[tokio::test]
async fn a_call_that_waits_for_another_process_ends_in_time() {
    let project = phages();
    let folder = bcc_engine::files::private_folder::PrivateFolder::open(project.path(), "graph").unwrap();
    let lock = folder.try_lock().unwrap().unwrap();
    let tools = project.tools(false, &[]);
    let limits = ToolLimits { timeout: Duration::from_millis(50), ..ToolLimits::default() };
    let error = call_with(tools.as_ref(), "graph_rag", json!({ "query": "T4" }), limits).await.unwrap_err();
    assert_eq!(error, ToolError::TimedOut { tool: "graph_rag".into() });
    drop(lock);
    assert!(!triples(&value(tools.as_ref(), json!({ "query": "T4" })).await).is_empty());
}

/// The number of triples of a source that has several chunks.
const MANY: usize = 40_000;

/// Not a test of its own: what the killed process of the next test runs.
#[tokio::test]
#[ignore = "the next test starts it as a process of its own"]
async fn indexing_in_a_process_of_its_own() {
    let Ok(folder) = std::env::var("BCC_TEST_GRAPH") else { return };
    let index = GraphIndex::new(folder.into(), vec!["many.csv".to_owned()]);
    index.refresh(&AtomicBool::new(false)).unwrap();
}

#[test]
fn an_index_whose_process_is_killed_while_it_is_made_is_completed_by_the_next() {
    let project = ToolProject::new("");
    let lines: Vec<String> = (0..MANY).map(|number| format!("entity {number},is,thing {}", number % 99)).collect();
    project.write("many.csv", lines.join("\n"));
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "graph_rag::indexing_in_a_process_of_its_own", "--ignored"])
        .env("BCC_TEST_GRAPH", project.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let segments = || {
        let names = std::fs::read_dir(project.at(".bcc/graph")).into_iter().flatten();
        names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().ends_with(".segment")).count()
    };
    while segments() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(segments() > 0 && !project.at(".bcc/graph/catalog.json").exists(), "it was killed in the middle");
    let index = GraphIndex::new(project.path().to_path_buf(), vec!["many.csv".to_owned()]);
    let graph = index.refresh(&AtomicBool::new(false)).unwrap();
    assert_eq!((graph.triples(), graph.problems().len()), (MANY, 0));
}
