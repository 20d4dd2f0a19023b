//! The analysis as a script.

use crate::kernel::analysis::Analysis;
use crate::kernel::analysis::jupyterlab::opened;
use crate::kernel::analysis::notebook::{Notebook, as_shown, printed};

/// How often `part` stands in `text`.
fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[tokio::test]
async fn a_script_is_interrupted_killed_and_resumed_and_its_notebook_is_right_and_opens_elsewhere() {
    let Some(analysis) = Analysis::new("orders.yaml", "orders.replies.yaml") else { return };
    let findings = &analysis.findings;

    let shown = analysis.run_until_killed();
    let first_run = ["load", "clean", "totals", "channels", "channels", "picture", "samples", "spread", "months"];
    assert_eq!(analysis.ran(), first_run);
    // The bar was seen while it moved, on one line.
    assert!(shown.contains("\r\u{1b}[2K  cleaned 20000 of 20000 [####################]\r\n"), "{shown:?}");
    assert_eq!(count(&shown, "enough samples: True"), 1, "the variables of interrupted code are there: {shown}");

    // A model was told what failed, and fixed it.
    let asked = analysis.prompt(0);
    for part in ["KeyError: 'chanel'", "clean.groupby(\"chanel\")", "totals = clean.groupby(\"region\")"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }

    let resumed = analysis.resume();
    // The cells that ran before run again, and that is said, also that one of them failed this time: it needs interrupted code.
    let rerun = ["load", "clean", "totals", "channels", "picture", "spread"];
    let all: Vec<&str> = first_run.iter().chain(&rerun).chain(&["months", "matrix"]).copied().collect();
    assert_eq!(analysis.ran(), all);
    assert_eq!(count(&resumed, "! the kernel started with empty memory; "), 1, "{resumed}");
    assert!(resumed.contains("earlier cells that were run again first: 6"), "{resumed}");
    assert!(resumed.contains("these ran before and now raise an error: `spread`"), "{resumed}");
    assert_eq!(analysis.model.requests().len(), 2, "the fix and the conclusion");

    let notebook = Notebook::exported(&analysis);
    let cells = notebook.code();
    let ids: Vec<&str> = cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["load", "clean", "totals", "channels", "picture", "samples", "spread", "months", "matrix"]);
    let text = |id: &str| printed(cells[ids.iter().position(|other| *other == id).unwrap()]);
    assert_eq!(text("load"), format!("20000 orders, {} without a price\nunits are text\n", findings.gaps));
    let cleaned = format!(
        "cleaned 20000 of 20000 [####################]\n{} incomplete, {} with an impossible price\n",
        findings.incomplete, findings.impossible
    );
    assert_eq!(as_shown(&text("clean")), cleaned);
    assert_eq!(count(&text("clean"), "\rcleaned "), 50, "each step of the bar is kept");
    assert_eq!(text("totals"), findings.totals);
    assert_eq!(text("channels"), findings.channels);
    assert_eq!(text("samples"), "100 samples\n200 samples\n300 samples\n", "what was printed before the interrupt");
    assert_eq!(text("spread"), "enough samples: True\n", "outputs do not change when cells run again");
    assert_eq!(text("months"), format!("the year\n{}", findings.months));
    let ended: Vec<&str> = cells.iter().map(|cell| cell["metadata"]["bcc"]["ended"].as_str().unwrap()).collect();
    assert_eq!(ended, ["ok", "ok", "ok", "ok", "ok", "interrupted", "ok", "ok", "ok"]);
    let tables = cells.iter().filter(|cell| cell["outputs"].to_string().contains("<table"));
    assert_eq!(tables.count(), 2);

    let judgement = notebook.judged(&analysis);
    assert_eq!(judgement.pictures, ["picture", "matrix"]);
    assert!(judgement.script.contains("clean.groupby(\"channel\")"), "{}", judgement.script);

    opened(&analysis, &notebook, "orders-script", &["islands", "cleaned 20000 of 20000", "KeyboardInterrupt"], 2).await;
}
