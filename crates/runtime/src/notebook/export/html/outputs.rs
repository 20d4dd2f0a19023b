//! Outputs of code in an HTML page.

use serde_json::{Map, Value};

use crate::notebook::export::ansi::{Style, spans};
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::export::html::rendered::markdown_html;
use crate::notebook::export::image::{Picture, drawing, picture};
use crate::notebook::export::markdown::{alt_text, mime_types, omitted_image};
use crate::notebook::export::output::CellOutput;
use bcc_lang::message::language::Language;
use bcc_lang::source::render::html::escape;

/// The maximum size of an HTML output that is shown in a frame, in bytes; a larger one is shown as its plain text.
const MAX_HTML_BYTES: usize = 16 * 1024 * 1024;

/// The prefix of the HTML of an output. The frame cannot run scripts anyway; this prevents it from loading resources.
const FRAME: &str = "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"><style>:root{color-scheme:light dark}\
body{margin:0;font:14px/1.5 system-ui,sans-serif}table{border-collapse:collapse}table,th,td{border:0}th,td{padding:.2em .6em;text-align:right;\
border-bottom:1px solid #8884}</style>";

/// The prefix of HTML that may run its scripts.
const SCRIPT_FRAME: &str = "<!DOCTYPE html><meta charset=\"utf-8\"><script>for(const name of ['RTCPeerConnection','webkitRTCPeerConnection'])\
delete globalThis[name]</script><style>:root{color-scheme:light dark}body{margin:0;font:14px/1.5 system-ui,sans-serif}</style>";

/// The maximum size of an HTML output that may run its scripts, in bytes. The library of a chart alone has about 5 MiB.
const MAX_SCRIPT_BYTES: usize = 32 * 1024 * 1024;

/// The maximum size of a script that only loads another one, in bytes.
const MAX_LOADER_BYTES: usize = 64 * 1024;

/// How such scripts load another one, in lower case.
const LOADERS: [&str; 6] =
    ["createelement('script')", "createelement(\"script\")", "import(", "require(", "require.config", "importscripts("];

/// The height of such a frame, in lines: it cannot adapt to its content without a script.
const LINES: std::ops::RangeInclusive<usize> = 3..=24;

/// An output as HTML; empty if it shows nothing.
pub(crate) fn output_html(output: &CellOutput, brief: &NotebookMetadata) -> String {
    match output {
        CellOutput::Stream { name, text } => preformatted(text, name),
        CellOutput::Error { name, value, traceback } => {
            let lines = if traceback.is_empty() { format!("{name}: {value}") } else { traceback.join("\n") };
            preformatted(&lines, "error")
        }
        CellOutput::Data { data, .. } => {
            let chart = data.get("text/html").and_then(Value::as_str).filter(|_| brief.runs_scripts);
            match chart.filter(|html| runs_alone(html)) {
                Some(html) => script_frame(html),
                None => data_html(data, brief.language),
            }
        }
    }
}

fn data_html(data: &Map<String, Value>, language: Language) -> String {
    let text = |mime: &str| data.get(mime).and_then(Value::as_str);
    let image =
        |address: &str| format!("<img class=\"picture\" src=\"{address}\" alt=\"{}\">\n", escape(&alt_text(data)));
    match picture(data) {
        Some(Picture::Shown(address)) => return image(&address),
        Some(Picture::LeftOut(mime, bytes)) => {
            return format!("<p class=\"note\">{}</p>\n", escape(&omitted_image(mime, bytes, language)));
        }
        None => {}
    }
    if let Some(address) = drawing(data) {
        return image(&address);
    }
    // An output that needs a script is shown as its plain text.
    let is_static = |html: &&str| {
        html.len() <= MAX_HTML_BYTES && (!html.to_ascii_lowercase().contains("<script") || text("text/plain").is_none())
    };
    if let Some(html) = text("text/html").filter(is_static) {
        return frame(html);
    }
    if let Some(markdown) = text("text/markdown") {
        return format!("<div class=\"words\">{}</div>\n", markdown_html(markdown));
    }
    let json = || data.get("application/json").map(|value| format!("{value:#}"));
    let plain = text("text/plain").or_else(|| text("text/latex")).map(str::to_owned).or_else(json);
    let plain = plain.or_else(|| text("text/html").map(str::to_owned));
    preformatted(&plain.unwrap_or_else(|| mime_types(data)), "result")
}

/// Whether HTML has scripts of its own, and needs none from elsewhere, as charts of Plotly with `include_plotlyjs=True`.
fn runs_alone(html: &str) -> bool {
    if html.len() > MAX_SCRIPT_BYTES {
        return false;
    }
    let html = html.to_ascii_lowercase();
    let scripts = || html.split("<script").skip(1);
    let is_from_elsewhere = |script: &str| {
        let (tag, rest) = script.split_once('>').unwrap_or((script, ""));
        let body = rest.split("</script").next().unwrap_or_default().trim_start();
        let tag: String = tag.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        // A library has such words too; a loader is short.
        let loads = body.len() <= MAX_LOADER_BYTES && LOADERS.iter().any(|loader| body.contains(loader));
        tag.contains("src=") || body.starts_with("import ") || body.starts_with("require") || loads
    };
    scripts().next().is_some() && !scripts().any(is_from_elsewhere)
}

/// HTML with scripts in a frame that has an origin of its own: they reach neither the page nor other frames, and the policy of the page lets them load nothing. No policy covers WebRTC, so its
/// usual way is taken from them as well; a script that is meant to send what it has can still find one.
fn script_frame(html: &str) -> String {
    format!(
        "<iframe class=\"html chart\" sandbox=\"allow-scripts\" style=\"height:32em\" srcdoc=\"{}\"></iframe>\n",
        escape(&format!("{SCRIPT_FRAME}{html}"))
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_html_that_brings_its_scripts_runs_alone() {
        let library = format!("<script>{}createElement('script')</script>", "x();".repeat(MAX_LOADER_BYTES));
        for html in ["<div></div><script>draw(1)</script>", library.as_str(), "<script type=module>draw()</script>"] {
            assert!(runs_alone(html), "{}", html.get(..40).unwrap_or(html));
        }
        for html in [
            "<table></table>",
            "<script src=\"https://cdn.example/x.js\"></script>",
            "<script src = 'x.js'></script><script>draw()</script>",
            "<script>import x from 'https://cdn.example/x.js'</script>",
            "<script>require(['plotly'], draw)</script>",
            "<script>var s = document.createElement('script'); s.src = \"https://cdn.example\"</script>",
        ] {
            assert!(!runs_alone(html), "{html}");
        }
    }
}
