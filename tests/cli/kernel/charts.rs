//! Figures of the real Plotly, through the program: their page draws them, and loads nothing.

use serde_json::json;

use crate::browser::{Browser, DESKTOP};
use crate::process::{Home, finished};
use crate::test_kernel::{kernel_variables, python_with};

const FIGURES: &str = "import plotly.graph_objects as go
figure = go.Figure(go.Scatter(x=['wind', 'sun'], y=[3, 7]))
figure.show()
figure";

/// The size that an export without the library has at most, in bytes.
const MAX_BYTES: usize = 150_000;

#[tokio::test]
async fn figures_of_plotly_are_drawn_in_the_page_that_may_run_their_scripts() {
    let Some(python) = python_with(&["plotly"]) else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let config = json!({ "shot_type": "action", "content": FIGURES, "metadata": { "should_execute": true } });
    // The cell runs again, and Plotly does not send its library again.
    let actions = json!([
        { "action_type": "add", "action_id": "a", "config": config },
        { "action_type": "set", "action_id": "n", "config": { "values": { "n": 1 } } },
        { "action_type": "exec", "action_id": "b", "config": { "codecell_id": "lastAddedCellId" } },
    ]);
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }]);
    home.file("script.yaml", &json!({ "session": { "session_id": "c", "phases": phases } }).to_string());
    let mut command = home.command(["run", "script.yaml", "--session", "s", "--trust", "--json"]);
    command.envs(kernel_variables(&python));
    let done = finished(command, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let export_of = |id: &str, arguments: &[&str]| {
        let arguments = [&["sessions", "export", id, "--format"], arguments].concat();
        let exported = home.finish(arguments, "");
        assert_eq!(exported.code, Some(0), "{}", exported.err);
        exported.out
    };
    let export = |arguments: &[&str]| export_of("s", arguments);
    for form in ["html", "md", "ipynb", "protocol"] {
        let exported = export(&[form]);
        assert!(exported.len() < MAX_BYTES, "{form} has no library: {} bytes", exported.len());
        let notes = exported.matches("a chart that is drawn by a script").count();
        assert_eq!(notes, if matches!(form, "html" | "md") { 2 } else { 0 }, "{form}: {exported}");
    }
    let drawn = export(&["html", "--run-scripts"]);
    assert_eq!(drawn.matches("<pre class=\"library\" hidden>").count(), 1);
    // A session that repeats the last action of this one has the library of what was before, without another figure.
    let mut command = home.command(["sessions", "retry", "s", "--from", "n", "--trust", "--json"]);
    command.envs(kernel_variables(&python));
    let repeated = finished(command, "skip\n");
    assert_eq!(repeated.code, Some(0), "{} {}", repeated.out, repeated.err);
    let again = repeated.events()[0]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(export_of(&again, &["html", "--run-scripts"]).matches(" data-chart=").count(), 2);
    let file = home.file("page.html", &drawn);
    let Some(browser) = Browser::start(DESKTOP).await else { return };
    browser.open(&format!("file://{}", file.display())).await;
    for figure in 0..2 {
        browser.enter_frame(figure).await;
        browser.element(".main-svg .scatterlayer .point").await;
        let labels =
            browser.run("return [...document.querySelectorAll('.xtick')].map((tick) => tick.textContent)").await;
        assert_eq!(labels, json!(["wind", "sun"]));
        let loaded = "return performance.getEntriesByType('resource').filter((r) => r.transferSize > 0).length";
        assert_eq!(browser.run(loaded).await, json!(0));
        browser.leave_frame().await;
    }
}
