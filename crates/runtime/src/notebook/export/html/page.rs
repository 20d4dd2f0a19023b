//! The HTML page: a heading, the cells, and a table of contents, which follows the cells in the source and precedes them on the
//! screen.

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::export::html::charts::Charts;
use crate::notebook::export::html::outputs::output_html;
use crate::notebook::export::html::rendered::markdown_html;
use crate::notebook::export::output::read;
use crate::notebook::export::text::{
    contents, counted, heading, incomplete_run_text, one_line, thinking_text, thinking_title,
};
use bcc_lang::message::language::Language;
use bcc_lang::source::render::html::escape;

/// The style sheet, which is embedded in the page.
const STYLE: &str = include_str!("page.css");

/// The name of the `meta` element that holds the id of the session.
pub const SESSION: &str = "bcc-script-session";

/// The content security policy: nothing is loaded or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The policy of a page whose frames may run scripts, which have the policy of the page as well. The page itself has at most one, of ours.
const SCRIPT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; \
script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:";

/// The maximum number of headings in the table of contents.
const MAX_HEADINGS: usize = 2_000;

#[derive(Debug, Default)]
pub(crate) struct HtmlPage {
    cells: u64,
    headings: Vec<Heading>,
    charts: Charts,
}

#[derive(Debug)]
struct Heading {
    number: u64,
    is_chapter: bool,
    text: String,
}

impl HtmlPage {
    /// A page with these libraries for charts: their texts, which may be empty if the page runs no scripts.
    pub(crate) fn new(runs_scripts: bool, libraries: Vec<String>) -> Self {
        Self { charts: Charts::new(runs_scripts, libraries), ..Self::default() }
    }

    pub(crate) fn head(&self, brief: &NotebookMetadata) -> String {
        let lang = if brief.language == Language::Chinese { "zh" } else { "en" };
        let mut page = format!("<!DOCTYPE html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n");
        page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
        let policy = if brief.runs_scripts { SCRIPT_POLICY } else { POLICY };
        page += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
        page += &format!(
            "<meta name=\"generator\" content=\"bcc-script\">\n<meta name=\"{SESSION}\" content=\"{}\">\n",
            escape(&one_line(&brief.session))
        );
        page += &format!(
            "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            escape(&one_line(brief.heading()))
        );
        page += "<main>\n";
        if !brief.shows_title {
            page += &format!("<h1>{}</h1>\n", escape(&one_line(brief.heading())));
        }
        page
    }

    pub(crate) fn cell(&mut self, cell: &Cell, brief: &NotebookMetadata) -> String {
        self.cells += 1;
        let metadata = &cell.metadata;
        let is_heading = cell.kind == CellKind::Markdown && (metadata.is_chapter || metadata.is_section);
        if is_heading && self.headings.len() < MAX_HEADINGS {
            let text = heading(&cell.content);
            self.headings.push(Heading { number: cell.number, is_chapter: metadata.is_chapter, text });
        }
        let id = format!("c{}", cell.number);
        match cell.kind {
            CellKind::Markdown => {
                format!("<section class=\"words\" id=\"{id}\">\n{}</section>\n", markdown_html(&cell.content))
            }
            CellKind::Thinking => {
                let (agent, thought) =
                    (escape(&thinking_title(cell, brief.language)), markdown_html(&thinking_text(cell)));
                format!(
                    "<details class=\"thought\" id=\"{id}\"><summary>{agent}</summary>\n<div class=\"words\">\n{thought}</div></details>\n"
                )
            }
            CellKind::Code => code(cell, &id, brief, &mut self.charts),
        }
    }

    pub(crate) fn tail(&self, brief: &NotebookMetadata) -> String {
        let cell_count = counted(self.cells, brief.language);
        let parts = [brief.script.as_str(), brief.session.as_str(), &cell_count].map(|part| escape(&one_line(part)));
        let (contents, script) = (self.contents(brief.language), self.charts.tail());
        format!("<footer>{}</footer>\n</main>\n{contents}{script}</body>\n</html>\n", parts.join(" · "))
    }

    fn contents(&self, language: Language) -> String {
        if self.headings.is_empty() {
            return String::new();
        }
        let title = escape(&contents(language));
        let mut list = format!("<nav aria-label=\"{title}\">\n<p>{title}</p>\n<ul>\n");
        for heading in &self.headings {
            let class = if heading.is_chapter { "chapter" } else { "section" };
            let text = escape(&heading.text);
            list += &format!("<li class=\"{class}\"><a href=\"#c{}\">{text}</a></li>\n", heading.number);
        }
        list + "</ul>\n</nav>\n"
    }
}

fn code(cell: &Cell, id: &str, brief: &NotebookMetadata, charts: &mut Charts) -> String {
    let language = brief.language;
    let count = cell.execution_count.map_or_else(|| " ".to_owned(), |count| count.to_string());
    let mut outputs: String = cell.outputs.iter().map(|output| output_html(&read(output), brief, charts)).collect();
    if let Some(message) = incomplete_run_text(cell, language) {
        outputs += &format!("<p class=\"note\">{}</p>\n", escape(&message));
    }
    let outputs = if outputs.is_empty() { outputs } else { format!("<div class=\"outputs\">\n{outputs}</div>\n") };
    format!(
        "<section class=\"code\" id=\"{id}\">\n<span class=\"count\">[{count}]</span>\n<pre><code>{}</code></pre>\n{outputs}</section>\n",
        escape(cell.content.trim_end_matches('\n'))
    )
}
