//! The analysis as a behavior loop: a model writes it, step by step, and is told what failed.

use serde_json::Value;

use crate::kernel::analysis::Analysis;
use crate::kernel::analysis::notebook::{Notebook, as_shown, printed};

/// The failures in the feedback of a prompt.
fn failures(prompt: &str) -> Value {
    let feedback = prompt.lines().find_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        value.get("failures").cloned()
    });
    feedback.unwrap_or_else(|| panic!("no failures: {prompt}"))
}

#[test]
fn a_behavior_loop_is_told_what_failed_and_is_interrupted_killed_and_resumed() {
    let Some(analysis) = Analysis::new("loop.yaml", "loop.replies.yaml") else { return };
    let findings = &analysis.findings;

    analysis.run_until_killed();
    let first_run = ["load", "clean", "totals", "samples", "spread", "picture", "months"];
    assert_eq!(analysis.ran(), first_run);
    // Five behaviors and the judgements of four: the fifth was killed.
    assert_eq!(analysis.model.requests().len(), 9);
    assert_eq!(
        failures(&analysis.prompt(2)),
        serde_json::json!([{ "number": 4, "action": "exec", "code": "code-failed", "id": "cell-3", "line": 7, "message": "KeyError: 'unit'" }])
    );
    let interrupted = failures(&analysis.prompt(6));
    assert_eq!((&interrupted[0]["code"], &interrupted[0]["id"]), (&"code-interrupted".into(), &"cell-8".into()));

    let resumed = analysis.resume();
    let rerun = ["load", "clean", "totals", "spread", "picture"];
    let all: Vec<&str> = first_run.iter().chain(&rerun).chain(&["months"]).copied().collect();
    assert_eq!(analysis.ran(), all, "{resumed}");
    assert_eq!(analysis.model.requests().len(), 10, "no behavior is asked for twice");

    let export = analysis.home.export("s");
    let location = &export["notebook"]["location"];
    assert_eq!(location["completed_steps"], serde_json::json!(["load", "compare", "draw"]), "{location}");
    let notebook = Notebook::exported(&analysis);
    let cells = notebook.code();
    let texts: Vec<String> = cells.iter().map(|cell| printed(cell)).collect();
    let cleaned = format!(
        "cleaned 20000 of 20000 [####################]\n{} incomplete, {} with an impossible price\n",
        findings.incomplete, findings.impossible
    );
    assert_eq!(as_shown(&texts[1]), cleaned);
    let expected = [
        "",
        texts[1].as_str(),
        &findings.totals,
        "100 samples\n200 samples\n300 samples\n",
        "enough samples: True\n",
        "",
        &format!("the year\n{}", findings.months),
    ];
    assert_eq!(texts, expected);
    let ended: Vec<&str> = cells.iter().map(|cell| cell["metadata"]["bcc"]["ended"].as_str().unwrap()).collect();
    assert_eq!(ended, ["error", "ok", "ok", "interrupted", "ok", "ok", "ok"]);
    let judgement = notebook.judged(&analysis);
    assert_eq!(judgement.pictures.len(), 1);
    assert!(judgement.script.contains("orders[\"unit\"]"), "{}", judgement.script);
}
