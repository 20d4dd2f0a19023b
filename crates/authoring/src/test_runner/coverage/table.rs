//! Coverage for the terminal: a row of figures for each file, then the parts that never ran.

use unicode_width::UnicodeWidthStr;

use crate::test_runner::coverage::coverage::{Coverage, Covered, Figure};
use crate::test_runner::coverage::item::{CoverageItem, ItemKind};
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::render::visible::visible_line;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const PLAIN: &str = "\u{1b}[0m";

/// Shares in tenths of a percent: from `GOOD` on they are good, below `POOR` poor. The color only repeats the number.
const GOOD: u64 = 900;
const POOR: u64 = 600;

/// The coverage as text, with a final line break; empty if no script was run. `color` enables colors for a terminal.
/// `language` is the language of the texts; names are not translated.
pub fn table(coverage: &Coverage, color: bool, language: Language) -> String {
    if coverage.is_empty() {
        return String::new();
    }
    let paint = Paint { color, language };
    let shown: Vec<ItemKind> = ItemKind::ALL.into_iter().filter(|what| coverage.figure(*what).total > 0).collect();
    let mut rows = vec![header(&shown, language)];
    rows.extend(coverage.files().map(|covered| row(covered, &shown)));
    if coverage.files().count() > 1 {
        rows.push(sum(coverage, &shown, language));
    }
    format!("{}{}", grid(&rows, &paint), missed(coverage, &paint))
}

/// A cell: its text, and the share that determines its color.
struct Cell {
    text: String,
    permille: Option<u64>,
}

impl Cell {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), permille: None }
    }

    fn figure(figure: Figure) -> Self {
        match figure.permille() {
            Some(permille) => Self { text: format!("{}/{}", figure.covered, figure.total), permille: Some(permille) },
            None => Self::text("–"),
        }
    }

    fn percent(figure: Figure) -> Self {
        Self { text: figure.percent(), permille: figure.permille() }
    }
}

fn header(shown: &[ItemKind], language: Language) -> Vec<Cell> {
    let kinds = shown.iter().map(|what| Cell::text(language.translate(what.plural())));
    let last = ["all", "", "endings"].into_iter().map(|word| Cell::text(language.translate(word)));
    std::iter::once(Cell::text(language.translate("Coverage"))).chain(kinds).chain(last).collect()
}

fn row(covered: &Covered, shown: &[ItemKind]) -> Vec<Cell> {
    let name = Cell::text(visible_line(covered.outline.file.name()));
    let figures = shown.iter().map(|what| Cell::figure(covered.figure(*what)));
    let last = [Cell::figure(covered.total()), Cell::percent(covered.total()), Cell::figure(covered.endings())];
    std::iter::once(name).chain(figures).chain(last).collect()
}

fn sum(coverage: &Coverage, shown: &[ItemKind], language: Language) -> Vec<Cell> {
    let figures = shown.iter().map(|what| Cell::figure(coverage.figure(*what)));
    let (total, endings) = (coverage.total(), coverage.endings());
    let last = [Cell::figure(total), Cell::percent(total), Cell::figure(endings)];
    std::iter::once(Cell::text(language.translate("all files"))).chain(figures).chain(last).collect()
}

/// Aligns the rows in columns; the first column is left-aligned, the others right-aligned.
fn grid(rows: &[Vec<Cell>], paint: &Paint) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width.saturating_sub(cell.text.width()));
            let shown = if number == 0 { paint.with(BOLD, &cell.text) } else { paint.share(cell) };
            match column {
                0 => line += &format!("{shown}{space}"),
                _ => line += &format!("  {space}{shown}"),
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The parts that never ran: the outermost ones, with the number of parts inside them.
fn missed(coverage: &Coverage, paint: &Paint) -> String {
    let language = paint.language;
    let mut lines: Vec<(String, String)> = Vec::new();
    for covered in coverage.files() {
        for item in &covered.outline.items {
            list(covered, item, language, &mut lines);
        }
    }
    if lines.is_empty() {
        return format!("\n{}\n", paint.with(GREEN, &language.translate("Every part ran.")));
    }
    let width = lines.iter().map(|(place, _)| place.width()).max().unwrap_or(0);
    let mut text = format!("\n{}\n", paint.with(BOLD, &language.translate("Never ran")));
    for (place, description) in lines {
        let space = " ".repeat(width.saturating_sub(place.width()));
        text += &format!("  {}{space}  {description}\n", paint.with(DIM, &place));
    }
    text
}

fn list(covered: &Covered, item: &CoverageItem, language: Language, lines: &mut Vec<(String, String)>) {
    let tally = covered.tally(item);
    if tally.ran > 0 {
        item.children.iter().for_each(|child| list(covered, child, language, lines));
        return;
    }
    let mut text = item.key.words().render(language);
    if let Some(description) = &item.description {
        text += &format!(" ({})", visible_line(description));
    }
    let inside = item.all().len() - 1;
    // A part inside a part that never ran may have run where it was inserted.
    let ran = item.all().iter().filter(|inner| covered.tally(inner).ran > 0).count();
    match (inside - ran.min(inside), ran) {
        (0, _) => {}
        (1, 0) => text += &language.translate(", and what is in it"),
        (more, 0) => text += &msg!(", and the {more} parts in it").render(language),
        (more, _) => text += &msg!(", and {more} of the {inside} parts in it").render(language),
    }
    if tally.skipped > 0 {
        text += &msg!(" – skipped {}", times(tally.skipped)).render(language);
    }
    lines.push((format!("{}:{}", visible_line(covered.outline.file.name()), item.line), text));
}

pub(crate) fn times(count: u64) -> Message {
    match count {
        1 => Message::word("once"),
        2 => Message::word("twice"),
        more => msg!("{more} times"),
    }
}

struct Paint {
    color: bool,
    language: Language,
}

impl Paint {
    fn with(&self, style: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn share(&self, cell: &Cell) -> String {
        match cell.permille {
            Some(GOOD..) => self.with(GREEN, &cell.text),
            Some(POOR..) => self.with(YELLOW, &cell.text),
            Some(_) => self.with(RED, &cell.text),
            None => cell.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runner::played::play;

    fn example() -> Coverage {
        let script = "session:
  session_id: 初谈
  phases:
    - phase_id: 开场
      phase_name: 开场
      topics:
        - topic_id: 问候
          actions:
            - { action_type: set, action_id: 记下, config: { values: { x: 1 } } }
            - action_type: condition
              action_id: 选择
              config: { cases: [{ when: x == 2, set: { y: 1 } }], else: { set: { y: 2 } } }
            - { action_type: use_skill, action_id: 呼吸, condition: x == 2, config: { skill: breathe } }
    - phase_id: 收尾
      condition: x == 2
      topics: [{ topic_id: 道别, actions: [{ action_type: set, action_id: 结束, config: { values: { y: 3 } } }] }]
";
        let skill = "skill:\n  skill_id: breathe\n  actions:\n    - { action_type: set, action_id: 吸气, config: { values: { z: 1 } } }\n";
        let played = play(&[("script.yaml", script), ("skills/呼吸练习.yaml", skill)], "", &[]);
        let mut coverage = Coverage::default();
        coverage.add(&played.program, &played.events);
        coverage
    }

    fn shown(color: bool) -> String {
        let coverage = example();
        let name = coverage.files().next().unwrap().outline.file.name().to_owned();
        let folder = name.strip_suffix("script.yaml").unwrap().to_owned();
        // The name of the temporary folder would change the column widths, so it is removed.
        table(&coverage.renamed(|name| name.replace(&folder, "")), color, Language::English)
    }

    #[test]
    fn columns_stand_under_one_another_whatever_script_they_are_in() {
        let text = shown(false);
        insta::assert_snapshot!(text);
        let widths: Vec<usize> = text.lines().take(3).map(|line| line.trim_end().width()).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{widths:?}\n{text}");
    }

    #[test]
    fn colors_do_not_change_the_text() {
        let colored = shown(true);
        assert!([RED, BOLD, DIM].iter().all(|style| colored.contains(style)));
        let plain = [BOLD, DIM, RED, GREEN, YELLOW, PLAIN].iter().fold(colored, |text, style| text.replace(style, ""));
        assert_eq!(plain, shown(false));
    }

    #[test]
    fn an_empty_coverage_has_no_table() {
        assert_eq!(table(&Coverage::default(), false, Language::English), "");
    }
}
