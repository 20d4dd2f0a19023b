//! The outline of the cells that a prompt no longer shows: their headings, and what each section found.

use serde_json::Value;

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::protocol::brief::{cell, cut, size};
use crate::notebook::protocol::model_observation::output_text;

/// The maximum number of headings that are collected.
const MAX_HEADINGS: usize = 1_000;

/// The maximum size of a heading and of what its section found, in bytes.
const MAX_HEADING_BYTES: usize = 120;
const MAX_FOUND_BYTES: usize = 160;

/// The sizes to which the findings are cut, in this order, until the outline fits.
const FOUND_BYTES: [usize; 4] = [MAX_FOUND_BYTES, 80, 40, 0];

/// A section of the notebook: from its heading to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OutlinedSection {
    /// Its heading with the marks of its level; empty for the cells before the first heading.
    heading: String,
    first: u64,
    last: u64,
    /// The last output of its code, else the start of its last text.
    found: String,
    has_output: bool,
}

/// The sections of the cells that were added, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotebookOutline {
    sections: Vec<OutlinedSection>,
    /// The number of headings that were not collected.
    skipped: usize,
}

impl NotebookOutline {
    /// Adds the next cell.
    pub fn add(&mut self, next: &Cell) {
        let heading = heading(next);
        if heading.is_some() || self.sections.is_empty() {
            if self.sections.len() >= MAX_HEADINGS {
                self.skipped += 1;
                return;
            }
            let heading = heading.map(|heading| cut(heading, MAX_HEADING_BYTES)).unwrap_or_default();
            self.sections.push(OutlinedSection { heading, first: next.number, ..OutlinedSection::default() });
        }
        let Some(section) = self.sections.last_mut() else { return };
        section.last = next.number;
        match next.kind {
            CellKind::Code => {
                let sent = cell(next);
                let outputs = sent.get("outputs").and_then(Value::as_array);
                if let Some(text) = outputs.into_iter().flatten().rev().find_map(output_text) {
                    section.found = one_line(&text);
                    section.has_output = true;
                }
            }
            CellKind::Markdown if !section.has_output => {
                let text = match self::heading(next) {
                    Some(_) => next.content.split_once('\n').map(|(_, body)| body).unwrap_or_default(),
                    None => &next.content,
                };
                let text = one_line(text);
                if !text.is_empty() {
                    section.found = text;
                }
            }
            CellKind::Markdown | CellKind::Thinking => {}
        }
    }

    /// The outline in at most `max` bytes, one line for each heading with its cells: `## Data (3–9): 2930 rows`. If it does not fit, the
    /// findings become shorter, and then the oldest headings of lower levels are left out.
    pub(crate) fn lines(&self, max: usize) -> Vec<String> {
        let bytes = |lines: &[String]| lines.iter().map(|line| size(&Value::from(line.as_str())) + 1).sum::<usize>();
        for found in FOUND_BYTES {
            let lines: Vec<String> = self.sections.iter().map(|section| section.line(found)).collect();
            if self.skipped == 0 && bytes(&lines) <= max {
                return lines;
            }
        }
        let mut lines: Vec<String> = Vec::new();
        let mut available = max.saturating_sub(40);
        for section in self.sections.iter().rev() {
            let line = section.line(0);
            let Some(rest) = available.checked_sub(bytes(std::slice::from_ref(&line))) else { break };
            available = rest;
            lines.push(line);
        }
        let omitted = self.sections.len() - lines.len() + self.skipped;
        lines.push(format!("… {omitted} earlier headings"));
        lines.reverse();
        lines
    }
}

impl OutlinedSection {
    fn line(&self, max_found: usize) -> String {
        let cells = match self.first == self.last {
            true => self.first.to_string(),
            false => format!("{}–{}", self.first, self.last),
        };
        let heading = if self.heading.is_empty() { "…" } else { &self.heading };
        match cut(&self.found, max_found) {
            found if max_found == 0 || found.is_empty() => format!("{heading} ({cells})"),
            found => format!("{heading} ({cells}): {found}"),
        }
    }
}

/// The first line of a cell, if it is a heading.
fn heading(cell: &Cell) -> Option<&str> {
    if cell.kind != CellKind::Markdown {
        return None;
    }
    let line = cell.content.trim_start().lines().next()?.trim_end();
    let level = line.chars().take_while(|c| *c == '#').count();
    ((1..=6).contains(&level) && line.chars().nth(level) == Some(' ')).then_some(line)
}

/// The last line of a text that is not blank, because results come last; at most [`MAX_FOUND_BYTES`].
fn one_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line, MAX_FOUND_BYTES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cells(contents: &[(&str, &str)]) -> Vec<Cell> {
        let cell = |(number, (content, output)): (u64, &(&str, &str))| Cell {
            number,
            id: format!("cell-{number}"),
            kind: if output.is_empty() { CellKind::Markdown } else { CellKind::Code },
            content: (*content).to_owned(),
            outputs: if *output == "-" { vec![] } else { vec![json!({ "output_type": "stream", "text": output })] },
            ..Cell::default()
        };
        (1..).zip(contents).map(cell).collect()
    }

    fn outline(cells: &[Cell]) -> NotebookOutline {
        let mut outline = NotebookOutline::default();
        cells.iter().for_each(|cell| outline.add(cell));
        outline
    }

    #[test]
    fn each_section_has_its_cells_and_what_it_found() {
        let mut cells = cells(&[
            ("# Rivers\nAbout \"gauges\"", ""),
            ("## Data", ""),
            ("x = load()", "loading\n2930 rows\n"),
            ("We have them.", ""),
            ("### Gaps", ""),
            ("No gap is longer\nthan a day.\n", ""),
            ("y = 1", "-"),
            ("#1 is no heading", ""),
            ("## Errors", ""),
            ("z", "x"),
        ]);
        cells[9].outputs = vec![json!({ "output_type": "error", "ename": "KeyError", "evalue": "'z'" })];
        assert_eq!(
            outline(&cells).lines(10_000),
            [
                "# Rivers (1): About \"gauges\"",
                "## Data (2–4): 2930 rows",
                "### Gaps (5–8): #1 is no heading",
                "## Errors (9–10): KeyError: 'z'",
            ]
        );
    }

    #[test]
    fn an_outline_that_does_not_fit_becomes_shorter_and_keeps_the_last_headings() {
        let long: Vec<(String, String)> =
            (0..100).map(|n| (format!("## Section {n}"), format!("{n} {}", "\"found\" ".repeat(30)))).collect();
        let contents: Vec<(&str, &str)> =
            long.iter().flat_map(|(heading, text)| [(heading.as_str(), ""), (text.as_str(), "")]).collect();
        let outline = outline(&cells(&contents));
        for (max, count) in [(30_000, 100), (10_000, 100), (4_000, 100), (1_000, 38)] {
            let lines = outline.lines(max);
            assert!(json!(lines).to_string().len() <= max, "{max}: {}", json!(lines).to_string().len());
            assert!(lines.len().abs_diff(count) <= 8, "{max}: {}", lines.len());
            assert!(lines.last().unwrap().starts_with("## Section 99"), "{lines:?}");
        }
    }
}
