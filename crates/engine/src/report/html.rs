//! Writes a report as one HTML page without scripts. No text of a person, a model or a program becomes markup.

use std::fmt::Write as _;

use crate::report::blocks::ReportBlock;
use crate::report::format::HTML_GENERATOR;
use bcc_lang::message::language::Language;
use bcc_lang::source::render::html::escape;

/// The page loads nothing and runs nothing, whatever it contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "\
body { font-family: system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; line-height: 1.5 }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { border: 1px solid #c9d2de; padding: .25rem .6rem; text-align: left; vertical-align: top }
th { background: #eef3fb }
pre { background: #f6f7f9; padding: .8rem; overflow-x: auto }
dt { font-weight: 600; float: left; clear: left; margin-right: .6rem }
dd { margin: 0 0 .2rem 0; overflow: hidden }
.text { white-space: pre-wrap }
.time { color: #5a6675 }";

pub(crate) fn html(blocks: &[ReportBlock], language: Language) -> String {
    let title = blocks.iter().find_map(|block| match block {
        ReportBlock::Title(title) => Some(title.as_str()),
        _ => None,
    });
    let tag = if language == Language::Chinese { "zh" } else { "en" };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"{tag}\">\n<head>\n<meta charset=\"utf-8\">\n{HTML_GENERATOR}\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n",
        escape(title.unwrap_or_default())
    );
    blocks.iter().for_each(|block| write(&mut page, block));
    page.push_str("</body>\n</html>\n");
    page
}

fn write(page: &mut String, block: &ReportBlock) {
    let _ = match block {
        ReportBlock::Title(text) => writeln!(page, "<h1>{}</h1>", escape(text)),
        ReportBlock::Heading(text) => writeln!(page, "<h2>{}</h2>", escape(text)),
        ReportBlock::Subheading(text) => writeln!(page, "<h3>{}</h3>", escape(text)),
        ReportBlock::Paragraph(text) => writeln!(page, "<p>{}</p>", escape(text)),
        ReportBlock::Facts(facts) => {
            page.push_str("<dl>\n");
            for (label, value) in facts {
                let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(label), escape(value));
            }
            writeln!(page, "</dl>")
        }
        ReportBlock::Table { head, rows } => {
            page.push_str("<table>\n");
            row(page, "th", head);
            rows.iter().for_each(|cells| row(page, "td", cells));
            writeln!(page, "</table>")
        }
        ReportBlock::Quote { speaker, time, text } => writeln!(
            page,
            "<p><b>{}</b> <span class=\"time\">{}</span><br><span class=\"text\">{}</span></p>",
            escape(speaker),
            escape(time),
            escape(text)
        ),
        ReportBlock::Code { text, .. } => writeln!(page, "<pre>{}</pre>", escape(text.trim_end_matches('\n'))),
    };
}

fn row(page: &mut String, tag: &str, cells: &[String]) {
    page.push_str("<tr>");
    for cell in cells {
        let _ = write!(page, "<{tag}>{}</{tag}>", escape(cell));
    }
    page.push_str("</tr>\n");
}
