//! The page: a summary of all files, then each file with the tree of its parts next to its lines.

use crate::test_runner::coverage::coverage::{Coverage, Covered, Figure};
use crate::test_runner::coverage::html::escape::escaped;
use crate::test_runner::coverage::html::source::lines;
use crate::test_runner::coverage::html::tree::tree;
use crate::test_runner::coverage::item::ItemKind;

/// The style sheet, embedded in the page.
const STYLE: &str = include_str!("page.css");

/// Shares in tenths of a percent: from `GOOD` on a bar is colored as good, below `POOR` as poor.
const GOOD: u64 = 900;
const POOR: u64 = 600;

pub fn html(coverage: &Coverage) -> String {
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<meta name=\"generator\" content=\"bcc-script\">\n";
    page += &format!("<title>Test coverage · {}</title>\n", coverage.total().percent());
    page += &format!("<style>\n{STYLE}</style>\n</head>\n<body>\n");
    page += &summary(coverage);
    for (number, covered) in coverage.files().enumerate() {
        page += &file(covered, number + 1);
    }
    page += "<footer>Every phase, topic, <code>for_each</code>, action, branch, route, trigger and skill that is written counts \
             once. <em>Endings</em> are the reasons for which actions can end; they are counted apart.</footer>\n";
    page += "</body>\n</html>\n";
    page
}

fn summary(coverage: &Coverage) -> String {
    let total = coverage.total();
    let mut head = String::from("<header class=\"top\">\n<h1>Test coverage</h1>\n");
    if coverage.is_empty() {
        return head + "<p class=\"empty\">No script was run.</p>\n</header>\n";
    }
    head += &format!("<p class=\"big {}\">{}</p>\n", grade(total), percent(total));
    head += &format!("<p class=\"of\">{} of {} parts ran</p>\n</header>\n", total.covered, total.total);
    let shown: Vec<ItemKind> = ItemKind::ALL.into_iter().filter(|what| coverage.figure(*what).total > 0).collect();
    let mut table = String::from(
        "<div class=\"wide\">\n<table class=\"files\">\n<thead><tr><th scope=\"col\">File</th><th scope=\"col\" colspan=\"2\">all</th>",
    );
    for what in &shown {
        table += &format!("<th scope=\"col\">{}</th>", what.plural());
    }
    table += "<th scope=\"col\">endings</th></tr></thead>\n<tbody>\n";
    for (number, covered) in coverage.files().enumerate() {
        let name = escaped(covered.outline.file.name());
        table += &format!(
            "<tr><th scope=\"row\"><a href=\"#f{}\">{name}</a></th>{}",
            number + 1,
            total_cells(covered.total())
        );
        for what in &shown {
            table += &cell(covered.figure(*what));
        }
        table += &format!("{}</tr>\n", cell(covered.endings()));
    }
    if coverage.files().count() > 1 {
        table += &format!("</tbody>\n<tfoot><tr><th scope=\"row\">all files</th>{}", total_cells(total));
        for what in &shown {
            table += &cell(coverage.figure(*what));
        }
        table += &format!("{}</tr></tfoot>\n</table>\n</div>\n", cell(coverage.endings()));
    } else {
        table += "</tbody>\n</table>\n</div>\n";
    }
    head + &table
}

fn cell(figure: Figure) -> String {
    match figure.total {
        0 => "<td class=\"none\">–</td>".to_owned(),
        _ => format!("<td class=\"{}\">{}/{}</td>", grade(figure), figure.covered, figure.total),
    }
}

fn total_cells(figure: Figure) -> String {
    format!("<td class=\"bar\">{}</td><td class=\"share {}\">{}</td>", bar(figure), grade(figure), percent(figure))
}

/// A bar that shows the share. It is hidden from screen readers, because the number is next to it.
pub(super) fn bar(figure: Figure) -> String {
    let permille = figure.permille().unwrap_or(0);
    format!(
        "<span class=\"track\" aria-hidden=\"true\"><span class=\"{}\" style=\"width:{}.{}%\"></span></span>",
        grade(figure),
        permille / 10,
        permille % 10
    )
}

pub(super) fn percent(figure: Figure) -> String {
    figure.percent()
}

pub(super) fn grade(figure: Figure) -> &'static str {
    match figure.permille() {
        None => "none",
        Some(GOOD..) => "good",
        Some(POOR..) => "fair",
        Some(_) => "poor",
    }
}

fn file(covered: &Covered, number: usize) -> String {
    let outline = &covered.outline;
    let total = covered.total();
    let what = if outline.file.name().is_empty() { String::new() } else { escaped(outline.file.name()) };
    let title = outline.name.as_deref().unwrap_or(&outline.id);
    let parts = |count: usize| if count == 1 { "1 part".to_owned() } else { format!("{count} parts") };
    let sessions = match covered.sessions {
        1 => "1 session".to_owned(),
        more => format!("{more} sessions"),
    };
    let mut section = format!("<section class=\"file\" id=\"f{number}\">\n<header>\n<h2>{}</h2>\n", escaped(title));
    section += &format!(
        "<p><code class=\"path\">{what}</code> <span class=\"sessions\">{sessions}</span></p>\n<p class=\"score\">{}<b class=\"{}\">{}</b> <span>{} of {}</span></p>\n</header>\n",
        bar(total),
        grade(total),
        percent(total),
        total.covered,
        total.total
    );
    let missed = covered.missed();
    if !missed.is_empty() {
        section += &format!("<details class=\"missed\"><summary>{} never ran</summary>\n<ul>\n", parts(missed.len()));
        for item in missed {
            let link = format!("<a href=\"#f{number}-{}\">line {}</a>", item.line, item.line);
            section += &format!("<li>{link} {}</li>\n", escaped(&item.key.words().to_string()));
        }
        section += "</ul>\n</details>\n";
    }
    section += &format!(
        "<div class=\"both\">\n<nav class=\"tree\" aria-label=\"Parts of {what}\">\n{}</nav>\n{}</div>\n</section>\n",
        tree(covered, number),
        lines(covered, number)
    );
    section
}
