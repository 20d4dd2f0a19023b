//! Writes a report as Markdown. No text of a person, a model or a program becomes markup.

use std::fmt::Write as _;

use crate::report::blocks::ReportBlock;
use crate::report::format::MARKDOWN_START;
use bcc_lang::source::render::markdown::{escape_line, escape_lines, longest_run};
use bcc_lang::source::render::visible::visible;

/// The number of backticks around code that contains none.
const MIN_FENCE: usize = 3;

pub(crate) fn markdown(blocks: &[ReportBlock]) -> String {
    let mut document = format!("{MARKDOWN_START}\n");
    let mut in_list = false;
    for block in blocks {
        let item = matches!(block, ReportBlock::Quote { .. });
        if !(item && in_list) {
            document.push('\n');
        }
        in_list = item;
        write(&mut document, block);
    }
    document
}

fn write(document: &mut String, block: &ReportBlock) {
    let _ = match block {
        ReportBlock::Title(text) => writeln!(document, "# {}", escape_line(text)),
        ReportBlock::Heading(text) => writeln!(document, "## {}", escape_line(text)),
        ReportBlock::Subheading(text) => writeln!(document, "### {}", escape_line(text)),
        ReportBlock::Paragraph(text) => writeln!(document, "{}", escape_line(text)),
        ReportBlock::Facts(facts) => {
            for (label, value) in facts {
                let _ = writeln!(document, "- {}: {}", escape_line(label), escape_line(value));
            }
            Ok(())
        }
        ReportBlock::Table { head, rows } => {
            row(document, head);
            row(document, &vec!["---".to_owned(); head.len()]);
            rows.iter()
                .for_each(|cells| row(document, &cells.iter().map(|cell| escape_line(cell)).collect::<Vec<_>>()));
            Ok(())
        }
        ReportBlock::Quote { speaker, time, text } => {
            writeln!(document, "- **{}** ({}): {}", escape_line(speaker), escape_line(time), escape_lines(text, "  "))
        }
        ReportBlock::Code { language, text } => {
            let text = visible(text);
            let fence = "`".repeat(MIN_FENCE.max(longest_run(&text) + 1));
            writeln!(document, "{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
        }
    };
}

fn row(document: &mut String, cells: &[String]) {
    let _ = writeln!(document, "| {} |", cells.join(" | "));
}
