//! The outline of the cells that a prompt no longer shows: their headings, and what each section found.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::protocol::brief::{cell, cut, size};
use crate::notebook::protocol::model_observation::output_text;

/// The maximum number of headings that are remembered, the newest ones. A prompt has no room for more, however short they are.
const MAX_HEADINGS: usize = 320;

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
    /// A copy of an outline shares them.
    sections: VecDeque<Arc<OutlinedSection>>,
    /// The number of older headings, which are forgotten.
    skipped: usize,
}

impl NotebookOutline {
    /// Adds the next cell.
    pub fn add(&mut self, next: &Cell) {
        let heading = heading(next);
        if heading.is_some() || self.sections.is_empty() {
            if self.sections.len() >= MAX_HEADINGS {
                self.sections.pop_front();
                self.skipped += 1;
            }
            let heading = heading.map(|heading| cut(heading, MAX_HEADING_BYTES)).unwrap_or_default();
            self.sections.push_back(Arc::new(OutlinedSection {
                heading,
                first: next.number,
                ..OutlinedSection::default()
            }));
        }
        let Some(section) = self.sections.back_mut().map(Arc::make_mut) else { return };
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

    /// The first and the last cell of the section with the cell `number`. `None` if it is forgotten, or was not added.
    pub(crate) fn section_with(&self, number: u64) -> Option<(u64, u64)> {
        let section = self.sections.get(self.index_of(number)?)?;
        (number <= section.last).then_some((section.first, section.last))
    }

    /// Puts the outline of the changed cells of one section in the place of that section. Returns whether it could: not if they are no
    /// longer one section.
    pub(crate) fn replace(&mut self, changed: &Self) -> bool {
        let [new] = changed.sections.iter().collect::<Vec<_>>()[..] else { return false };
        let old = self.index_of(new.first).and_then(|index| self.sections.get_mut(index));
        match old {
            Some(old)
                if (old.first, old.last, old.heading.is_empty()) == (new.first, new.last, new.heading.is_empty()) =>
            {
                *old = Arc::clone(new);
                true
            }
            _ => false,
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.sections.partition_point(|section| section.first <= number).checked_sub(1)
    }

    /// The outline in at most `max` bytes, one line for each heading with its cells: `## Data (3–9): 2930 rows`. If it does not fit, the
    /// findings become shorter, and then the oldest headings of lower levels are left out.
    pub(crate) fn lines(&self, max: usize) -> Vec<String> {
        let bytes = |line: &str| size(&Value::from(line)) + 1;
        // Without making the lines that there is no room for.
        let fitting = |found: usize| -> Option<Vec<String>> {
            let mut available = max;
            let line = |section: &Arc<OutlinedSection>| {
                let line = section.line(found);
                available = available.checked_sub(bytes(&line))?;
                Some(line)
            };
            self.sections.iter().map(line).collect()
        };
        if self.skipped == 0
            && let Some(lines) = FOUND_BYTES.into_iter().find_map(fitting)
        {
            return lines;
        }
        let mut lines: Vec<String> = Vec::new();
        let mut available = max.saturating_sub(40);
        for section in self.sections.iter().rev() {
            let line = section.line(0);
            let Some(rest) = available.checked_sub(bytes(&line)) else { break };
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

    #[test]
    fn of_very_many_headings_the_newest_are_shown_and_the_others_are_counted() {
        let headings: Vec<String> = (0..5_000).map(|n| format!("# {n}")).collect();
        let contents: Vec<(&str, &str)> = headings.iter().map(|heading| (heading.as_str(), "")).collect();
        let lines = outline(&cells(&contents)).lines(3 * 1024);
        assert_eq!(lines.last().unwrap(), "# 4999 (5000)");
        assert_eq!(lines[0], format!("… {} earlier headings", 5_000 - (lines.len() - 1)));
        assert!(lines.len() < MAX_HEADINGS);
    }

    #[test]
    fn a_section_is_replaced_when_its_cells_changed() {
        let mut all = cells(&[("# One", ""), ("x", "1"), ("## Two", ""), ("y", "2"), ("z", "-"), ("## Three", "")]);
        let mut whole = outline(&all);
        assert_eq!(
            [1, 2, 5, 6].map(|number| whole.section_with(number)),
            [Some((1, 2)), Some((1, 2)), Some((3, 5)), Some((6, 6))]
        );
        assert_eq!(whole.section_with(7), None);
        all[3].outputs = vec![json!({ "output_type": "stream", "text": "changed" })];
        all[2].content = "## Zwei".to_owned();
        assert!(whole.replace(&outline(&all[2..5])));
        assert_eq!(whole, outline(&all));
        // It is no section any more, or two.
        all[2].content = "Zwei".to_owned();
        assert!(!whole.replace(&outline(&all[2..5])));
        (all[2].content, all[4].content, all[4].kind) = ("## 2".to_owned(), "## 3".to_owned(), CellKind::Markdown);
        assert!(!whole.replace(&outline(&all[2..5])));
    }
}
