//! Tests of the pictures and the charts of exported notebooks: files beside a Markdown document, and scripts on a page.

use serde_json::{Value, json};

use crate::process::Home;

/// One pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A chart that brings its library, as Plotly writes it.
const CHART: &str = "<div id=\"chart\"></div><script>document.getElementById('chart').textContent = 'drawn';</script>";

/// A chart that would load its library.
const LOADS: &str = "<div></div><script src=\"https://cdn.plot.ly/plotly-3.0.0.min.js\"></script>";

/// A session that began with a notebook with these outputs.
fn session(outputs: &Value) -> Home {
    let home = Home::new();
    let cell = json!({"cell_type": "code", "id": "a", "source": "plot()", "metadata": {}, "execution_count": 1, "outputs": outputs});
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]});
    home.file("given.ipynb", &notebook.to_string());
    let script = "session: { session_id: s, phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_say, action_id: a, config: { content: Hello., delivery: verbatim } }] }] }] }";
    home.file("s.yaml", script);
    let begun = home.finish(["run", "s.yaml", "--from", "given.ipynb", "--session", "s"], "");
    assert_eq!(begun.code, Some(0), "{}", begun.err);
    home
}

fn data(data: &Value) -> Value {
    json!({"output_type": "display_data", "metadata": {}, "data": data})
}

fn with_picture() -> Home {
    let picture = data(&json!({"image/png": PIXEL, "text/plain": "<Figure>"}));
    session(&json!([picture, picture]))
}

fn export(home: &Home, more: &[&str]) -> crate::process::Finished {
    let mut arguments = vec!["sessions", "export", "s"];
    arguments.extend(more);
    home.finish(arguments, "")
}

#[test]
fn pictures_of_markdown_become_files_beside_it() {
    let home = with_picture();
    let exported = export(&home, &["-o", "report.md", "--pictures", "my pictures"]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    let text = std::fs::read_to_string(home.path().join("report.md")).unwrap();
    assert!(!text.contains("base64"), "{text}");
    let files: Vec<_> = std::fs::read_dir(home.path().join("my pictures")).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(files.len(), 1, "the same picture is one file");
    let name = files[0].file_name().into_string().unwrap();
    assert_eq!(text.matches(&format!("![<Figure>](my%20pictures/{name})").replace('<', "\\<")).count(), 2, "{text}");
    assert!(name.ends_with(".png") && std::fs::read(files[0].path()).unwrap().starts_with(b"\x89PNG"));
    // The same again changes nothing; a file that is something else is not replaced.
    assert_eq!(export(&home, &["-o", "report.md", "--pictures", "my pictures"]).code, Some(0));
    std::fs::write(files[0].path(), "mine").unwrap();
    let refused = export(&home, &["-o", "other.md", "--pictures", "my pictures"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("is not the picture of the notebook"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(files[0].path()).unwrap(), "mine");
    assert!(!home.path().join("other.md").exists());
}

#[test]
fn pictures_are_written_only_for_markdown_and_only_beside_it() {
    let home = with_picture();
    for (arguments, expected) in [
        (&["--format", "html", "--pictures", "p"] as &[&str], "`--pictures` is for Markdown"),
        (&["--format", "html", "--calls"], "`--calls` is for JSON"),
        (&["--format", "ipynb", "--calls"], "`--calls` is for JSON"),
        (&["--format", "md", "--pictures", "../p"], "is not in"),
        (&["--format", "md", "--pictures", "."], "is not in"),
    ] {
        let refused = export(&home, arguments);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    assert!(export(&home, &["--format", "md"]).out.contains("data:image/png;base64"), "without the option as before");
}

#[test]
fn charts_run_their_scripts_only_on_request_and_only_in_their_frame() {
    let figure = json!({"data": []});
    let chart = data(&json!({"text/html": CHART, "application/vnd.plotly.v1+json": figure, "text/plain": "Figure()"}));
    let loads = data(&json!({"text/html": LOADS, "text/plain": "Loads()"}));
    let home = session(&json!([chart, loads]));
    let page = export(&home, &["--format", "html"]).out;
    assert!(!page.contains("script-src") && !page.contains("allow-scripts") && page.contains("Figure()"), "{page}");
    let page = export(&home, &["--format", "html", "--run-scripts"]).out;
    assert_eq!(page.matches("sandbox=\"allow-scripts\"").count(), 1, "{page}");
    assert!(page.contains("&lt;script&gt;document.getElementById") && !page.contains("<script"), "{page}");
    assert!(!page.contains("allow-same-origin") && page.contains("default-src 'none'"), "{page}");
    assert!(
        page.contains("Loads()") && !page.contains("cdn.plot.ly"),
        "what would load something is shown as its text"
    );
}

#[test]
fn a_library_is_in_the_page_once_and_a_chart_without_its_script_is_a_note() {
    let library = format!("<script>{}</script>", "draw = 1;\n".repeat(8_000));
    let chart =
        "<div id=\"c\"></div><script src=\"https://cdn.example/math.js\"></script><script>Plotly.newPlot('c')</script>";
    let figure = json!({"text/html": chart, "application/vnd.plotly.v1+json": {"data": []}});
    let home = session(&json!([data(&json!({"text/html": library})), data(&figure), data(&figure)]));
    let page = export(&home, &["--format", "html"]).out;
    assert!(!page.contains("<iframe") && !page.contains("draw = 1"), "{page}");
    assert_eq!(page.matches("the export with `--run-scripts` shows it").count(), 2, "{page}");
    let page = export(&home, &["--format", "html", "--run-scripts"]).out;
    assert_eq!(page.matches("<pre class=\"library\" hidden>").count(), 1);
    assert_eq!(page.matches(" data-chart=").count(), 2);
    assert_eq!(page.matches("draw = 1").count(), 8_000);
    assert_eq!(page.matches("<script").count(), 1, "the script of the page");
}
