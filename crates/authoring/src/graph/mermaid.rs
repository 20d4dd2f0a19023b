//! A drawing as a flowchart of Mermaid.

use std::fmt::Write as _;

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode, Group};
use crate::graph::script_graph::{EdgeKind, GraphNodeKind};

/// The most arrows that Mermaid draws as it comes (`maxEdges`).
pub const MOST_ARROWS: usize = 500;

/// The longest text that Mermaid reads as it comes (`maxTextSize`).
pub const MOST_CHARACTERS: usize = 50_000;

/// The looks of boxes. Colours are pale, so that they can be read on white and printed, and text is always dark.
const CLASSES: &str = "  classDef place fill:#e8f0fe,stroke:#5b7db1,color:#1c2733
  classDef act fill:#ffffff,stroke:#8793a3,color:#1c2733
  classDef choice fill:#fff4d6,stroke:#b58a1b,color:#1c2733
  classDef skill fill:#e6f4ea,stroke:#4f8a5f,color:#1c2733
  classDef table fill:#f4f4f4,stroke:#8793a3,color:#1c2733,stroke-dasharray:4 3
  classDef trigger fill:#fde7e4,stroke:#b4534a,color:#1c2733
  classDef ends fill:#2f3b4a,stroke:#2f3b4a,color:#ffffff
";

pub fn mermaid(drawing: &Drawing) -> String {
    let mut text = String::from("flowchart TB\n");
    // Mermaid lays frames out from the last to the first where no arrow leads from one to another.
    let (frames_apart, others): (Vec<&DrawingItem>, Vec<&DrawingItem>) =
        drawing.items.iter().partition(|item| item.group().is_some() && drawing.refers());
    for item in frames_apart.into_iter().rev().chain(others) {
        write(&mut text, item, 1);
    }
    for arrow in &drawing.arrows {
        line(&mut text, 1, &written(arrow));
    }
    text.push_str(CLASSES);
    frames(&mut text, &drawing.items);
    text
}

fn line(text: &mut String, deep: usize, what: &str) {
    let _ = writeln!(text, "{}{what}", "  ".repeat(deep));
}

fn write(text: &mut String, item: &DrawingItem, deep: usize) {
    match item {
        DrawingItem::Box(node) => line(text, deep, &boxed(node)),
        DrawingItem::Group(group) => {
            line(text, deep, &format!("subgraph g{}[\"{}\"]", group.number, one(&group.title)));
            // Otherwise a frame that nothing leads out of lies on its side.
            line(text, deep + 1, "direction TB");
            // The place of a title is one line high.
            if !group.notes.is_empty() {
                line(text, deep + 1, &format!("t{}[\"{}\"]:::table", group.number, escaped(&group.notes)));
            }
            for item in &group.items {
                write(text, item, deep + 1);
            }
            line(text, deep, "end");
        }
    }
}

fn boxed(node: &DrawingNode) -> String {
    let label = escaped(&node.lines);
    let (open, close, class) = match node.kind {
        GraphNodeKind::Start | GraphNodeKind::End | GraphNodeKind::Fail => ("([", "])", "ends"),
        GraphNodeKind::Phase | GraphNodeKind::Topic => ("[[", "]]", "place"),
        GraphNodeKind::Action if node.folded => ("[[", "]]", "act"),
        GraphNodeKind::Action => ("[", "]", "act"),
        GraphNodeKind::Choice => ("{{", "}}", "choice"),
        GraphNodeKind::Skill => ("[[", "]]", "skill"),
        GraphNodeKind::Table => ("[", "]", "table"),
        GraphNodeKind::Trigger => (">", "]", "trigger"),
        GraphNodeKind::Reference => ("([", "])", "table"),
    };
    format!("n{}{open}\"{label}\"{close}:::{class}", node.number)
}

fn written(arrow: &Arrow) -> String {
    let sign = match arrow.lead {
        EdgeKind::Order | EdgeKind::Case => "-->",
        EdgeKind::Route => "==>",
        EdgeKind::Call => "-.->",
    };
    match arrow.lines.as_slice() {
        [] => format!("n{} {sign} n{}", arrow.from, arrow.to),
        lines => format!("n{} {sign}|\"{}\"| n{}", arrow.from, escaped(lines), arrow.to),
    }
}

/// The looks of frames, which have no other place.
fn frames(text: &mut String, items: &[DrawingItem]) {
    for item in items {
        let DrawingItem::Group(Group { number, kind, items, .. }) = item else { continue };
        let fill = match kind {
            GraphNodeKind::Skill => "fill:#f3faf5,stroke:#4f8a5f",
            GraphNodeKind::Topic => "fill:#fbfcfe,stroke:#9db2d3",
            _ => "fill:#eef3fb,stroke:#5b7db1",
        };
        line(text, 1, &format!("style g{number} {fill},color:#1c2733"));
        frames(text, items);
    }
}

/// Lines as the text of a box: a browser reads it as HTML and Mermaid as Markdown, so whatever means something to either of
/// them is written as its number.
fn escaped(lines: &[String]) -> String {
    lines.iter().map(|line| one(line)).collect::<Vec<_>>().join("<br/>")
}

fn one(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut last = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let inside = last.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        let plain = match c {
            '_' | '-' => inside,
            // `1.` and `1)` begin a list.
            '.' | ')' => !last.is_ascii_digit(),
            // `fa:fa-user` would be a picture.
            ':' => rest.peek().is_none_or(|next| next.is_whitespace()),
            ' ' | ',' | '!' | '?' | '(' | '/' | '=' | '%' | '\'' => true,
            c => !c.is_ascii_punctuation(),
        };
        if plain {
            text.push(c)
        } else {
            let _ = write!(text, "#{};", u32::from(c));
        }
        last = c;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_looks_like_a_picture_stays_text() {
        assert_eq!(one("fa:fa-user"), "fa#58;fa-user");
        assert_eq!(one("mdi:home: two:"), "mdi#58;home: two:");
    }
}
