//! Outputs of code in an HTML page.

use serde_json::{Map, Value};

use crate::notebook::export::ansi::{Style, spans};
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::export::html::charts::{Charts, ShownChart};
use crate::notebook::export::html::rendered::markdown_html;
use crate::notebook::export::image::{Picture, drawing, picture};
use crate::notebook::export::markdown::{alt_text, mime_types, omitted_image};
use crate::notebook::export::output::CellOutput;
use crate::notebook::export::scripts::{HtmlScripts, needs_scripts};
use bcc_lang::message::language::Language;
use bcc_lang::source::render::html::escape;

/// The maximum size of an HTML output that is shown in a frame, in bytes; a larger one is shown as its plain text.
const MAX_HTML_BYTES: usize = 16 * 1024 * 1024;

/// The prefix of the HTML of an output. The frame cannot run scripts anyway; this prevents it from loading resources.
const FRAME: &str = "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"><style>:root{color-scheme:light dark}\
body{margin:0;font:14px/1.5 system-ui,sans-serif}table{border-collapse:collapse}table,th,td{border:0}th,td{padding:.2em .6em;text-align:right;\
border-bottom:1px solid #8884}</style>";

/// The text for a chart that the page could run.
const NOT_RUNNING: &str = "a chart that is drawn by a script: the export with `--run-scripts` shows it";

/// The text for a chart that it could not.
pub(crate) const NOT_HERE: &str = "a chart that is drawn by a script from elsewhere, which is not loaded";

/// The height of such a frame, in lines: it cannot adapt to its content without a script.
const LINES: std::ops::RangeInclusive<usize> = 3..=24;

/// An output as HTML; empty if it shows nothing.
pub(crate) fn output_html(output: &CellOutput, brief: &NotebookMetadata, charts: &mut Charts) -> String {
    match output {
        CellOutput::Stream { name, text } => preformatted(text, name),
        CellOutput::Error { name, value, traceback } => {
            let lines = if traceback.is_empty() { format!("{name}: {value}") } else { traceback.join("\n") };
            preformatted(&lines, "error")
        }
        CellOutput::Data { data, .. } => {
            let html = data.get("text/html").and_then(Value::as_str);
            let chart = html.and_then(|html| Some(charts.show(html, HtmlScripts::of(html)?)));
            match chart {
                Some(ShownChart::Frame(frame)) => frame,
                chart => data_html(data, chart, brief.language),
            }
        }
    }
}

/// Data that runs no scripts; `chart` is what they would draw.
fn data_html(data: &Map<String, Value>, chart: Option<ShownChart>, language: Language) -> String {
    let text = |mime: &str| data.get(mime).and_then(Value::as_str);
    let image =
        |address: &str| format!("<img class=\"picture\" src=\"{address}\" alt=\"{}\">\n", escape(&alt_text(data)));
    match picture(data) {
        Some(Picture::Shown(address)) => return image(&address),
        Some(Picture::LeftOut(mime, bytes)) => {
            return note(&omitted_image(mime, bytes, language));
        }
        None => {}
    }
    if let Some(address) = drawing(data) {
        return image(&address);
    }
    // What a script draws is shown as its plain text.
    let needs_scripts = needs_scripts(data).is_some();
    match (text("text/html"), &chart) {
        (Some(html), None) if html.len() <= MAX_HTML_BYTES => return frame(html),
        (Some(_), Some(_)) if text("text/plain").is_some() => {}
        (Some(html), Some(_)) if !needs_scripts && html.len() <= MAX_HTML_BYTES => return frame(html),
        (Some(_), Some(ShownChart::Library)) => return String::new(),
        (Some(_), Some(ShownChart::NotRunning)) => return note(&language.translate(NOT_RUNNING)),
        (Some(_), Some(_)) if needs_scripts => return note(&language.translate(NOT_HERE)),
        (Some(html), _) if text("text/plain").is_none() => {
            return note(&omitted_image("text/html", html.len(), language));
        }
        _ => {}
    }
    if let Some(markdown) = text("text/markdown") {
        return format!("<div class=\"words\">{}</div>\n", markdown_html(markdown));
    }
    let json = || data.get("application/json").map(|value| format!("{value:#}"));
    let plain = text("text/plain").or_else(|| text("text/latex")).map(str::to_owned).or_else(json);
    let plain = plain.or_else(|| text("text/html").map(str::to_owned));
    preformatted(&plain.unwrap_or_else(|| mime_types(data)), "result")
}

fn note(text: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escape(text))
}

/// Untrusted HTML in a sandboxed frame.
fn frame(html: &str) -> String {
    let lower = html.to_ascii_lowercase();
    let lines = lower.matches("<tr").count().max(lower.matches("<p").count() + lower.matches("<br").count()) + 2;
    let lines = lines.clamp(*LINES.start(), *LINES.end());
    format!(
        "<iframe class=\"html\" sandbox=\"\" style=\"height:{lines}lh\" srcdoc=\"{}\"></iframe>\n",
        escape(&format!("{FRAME}{html}"))
    )
}

/// Terminal text with its colors.
fn preformatted(text: &str, class: &str) -> String {
    let mut inner = String::new();
    for (style, piece) in spans(text) {
        match classes(style) {
            Some(classes) => inner.push_str(&format!("<span class=\"{classes}\">{}</span>", escape(&piece))),
            None => inner.push_str(&escape(&piece)),
        }
    }
    if inner.trim().is_empty() {
        return String::new();
    }
    format!("<pre class=\"{class}\">{}</pre>\n", inner.trim_end_matches('\n'))
}

fn classes(style: Style) -> Option<String> {
    let color = style.color.map(|color| format!("c{color}"));
    match (color, style.bold) {
        (Some(color), true) => Some(format!("{color} b")),
        (Some(color), false) => Some(color),
        (None, true) => Some("b".to_owned()),
        (None, false) => None,
    }
}
