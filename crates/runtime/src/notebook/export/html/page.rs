//! The page: a heading, the cells, and a table of contents that stands behind them in the text and before them on the screen.

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::export::brief::Brief;
use crate::notebook::export::html::escape::escaped;
use crate::notebook::export::html::outputs::shown;
use crate::notebook::export::html::rendered::rendered;
use crate::notebook::export::output::read;
use crate::notebook::export::text::{contents, counted, cut_short, heading, one_line, thinker, thought};
use bcc_lang::message::language::Language;

/// How the page looks. It stands in the page itself.
const STYLE: &str = include_str!("page.css");

/// The name of the `meta` element that holds the id of the session.
pub const SESSION: &str = "bcc-script-session";

/// What the page may do: be looked at.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The most headings of a table of contents.
const MOST_HEADINGS: usize = 2_000;

#[derive(Debug, Default)]
pub struct HtmlPage {
    cells: u64,
    headings: Vec<Heading>,
}

#[derive(Debug)]
struct Heading {
    number: u64,
    is_chapter: bool,
    text: String,
}

impl HtmlPage {
    pub fn head(&self, brief: &Brief) -> String {
        let lang = if brief.language == Language::Chinese { "zh" } else { "en" };
        let mut page = format!("<!DOCTYPE html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n");
        page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
        page += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n");
        page += &format!(
            "<meta name=\"generator\" content=\"bcc-script\">\n<meta name=\"{SESSION}\" content=\"{}\">\n",
            escaped(&one_line(&brief.session))
        );
        page += &format!(
            "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            escaped(&one_line(brief.heading()))
        );
        page += "<main>\n";
        if !brief.shows_title {
            page += &format!("<h1>{}</h1>\n", escaped(&one_line(brief.heading())));
        }
        page
    }

    pub fn cell(&mut self, cell: &Cell, brief: &Brief) -> String {
        self.cells += 1;
        let metadata = &cell.metadata;
        let is_heading = cell.kind == CellKind::Markdown && (metadata.is_chapter || metadata.is_section);
        if is_heading && self.headings.len() < MOST_HEADINGS {
            let text = heading(&cell.content);
            self.headings.push(Heading { number: cell.number, is_chapter: metadata.is_chapter, text });
        }
        let id = format!("c{}", cell.number);
        match cell.kind {
            CellKind::Markdown => {
                format!("<section class=\"words\" id=\"{id}\">\n{}</section>\n", rendered(&cell.content))
            }
            CellKind::Thinking => {
                let (who, thought) = (escaped(&thinker(cell, brief.language)), rendered(&thought(cell)));
                format!(
                    "<details class=\"thought\" id=\"{id}\"><summary>{who}</summary>\n<div class=\"words\">\n{thought}</div></details>\n"
                )
            }
            CellKind::Code => code(cell, &id, brief.language),
        }
    }

    pub fn tail(&self, brief: &Brief) -> String {
        let told = counted(self.cells, brief.language);
        let about = [brief.script.as_str(), brief.session.as_str(), &told].map(|part| escaped(&one_line(part)));
        format!("<footer>{}</footer>\n</main>\n{}</body>\n</html>\n", about.join(" · "), self.contents(brief.language))
    }

    fn contents(&self, language: Language) -> String {
        if self.headings.is_empty() {
            return String::new();
        }
        let title = escaped(&contents(language));
        let mut list = format!("<nav aria-label=\"{title}\">\n<p>{title}</p>\n<ul>\n");
        for heading in &self.headings {
            let class = if heading.is_chapter { "chapter" } else { "section" };
            let text = escaped(&heading.text);
            list += &format!("<li class=\"{class}\"><a href=\"#c{}\">{text}</a></li>\n", heading.number);
        }
        list + "</ul>\n</nav>\n"
    }
}

fn code(cell: &Cell, id: &str, language: Language) -> String {
    let count = cell.execution_count.map_or_else(|| " ".to_owned(), |count| count.to_string());
    let mut outputs: String = cell.outputs.iter().map(|output| shown(&read(output), language)).collect();
    if let Some(told) = cut_short(cell, language) {
        outputs += &format!("<p class=\"note\">{}</p>\n", escaped(&told));
    }
    let outputs = if outputs.is_empty() { outputs } else { format!("<div class=\"outputs\">\n{outputs}</div>\n") };
    format!(
        "<section class=\"code\" id=\"{id}\">\n<span class=\"count\">[{count}]</span>\n<pre><code>{}</code></pre>\n{outputs}</section>\n",
        escaped(cell.content.trim_end_matches('\n'))
    )
}
