//! Writes a drawing as a Mermaid flowchart.

use std::fmt::Write as _;

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode, Group};
use crate::graph::script_graph::{EdgeKind, GraphNodeKind, NodeState};
use bcc_lang::source::render::mermaid::escape_line;

/// The maximum number of arrows with Mermaid's default settings (`maxEdges`).
pub(crate) const MAX_ARROWS: usize = 500;

/// The maximum length of the text with Mermaid's default settings (`maxTextSize`).
pub const MAX_CHARACTERS: usize = 50_000;

/// The styles of boxes. Colors are pale, so that they are readable on white and in print, and text is always dark.
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
    // Mermaid lays out unconnected groups in reverse order.
    let (frames_apart, others): (Vec<&DrawingItem>, Vec<&DrawingItem>) =
        drawing.items.iter().partition(|item| item.group().is_some() && drawing.refers());
    for item in frames_apart.into_iter().rev().chain(others) {
        write(&mut text, item, 1);
    }
    for arrow in &drawing.arrows {
        line(&mut text, 1, &arrow_line(arrow));
    }
    text.push_str(CLASSES);
    if drawing.has_states() {
        legend(&mut text);
    }
    frames(&mut text, &drawing.items);
    text
}

/// Writes the boxes that explain the colors, and their styles.
fn legend(text: &mut String) {
    line(text, 1, "subgraph legend[\"legend\"]");
    for state in NodeState::ALL {
        line(text, 2, &format!("state_{}[\"{}\"]:::{}", state.class(), state.label(), state.class()));
    }
    line(text, 1, "end");
    for state in NodeState::ALL {
        let (fill, stroke) = state.colors();
        line(text, 1, &format!("classDef {} fill:{fill},stroke:{stroke},color:#1c2733", state.class()));
    }
}

fn line(text: &mut String, depth: usize, content: &str) {
    let _ = writeln!(text, "{}{content}", "  ".repeat(depth));
}

fn write(text: &mut String, item: &DrawingItem, depth: usize) {
    match item {
        DrawingItem::Box(node) => line(text, depth, &node_line(node)),
        DrawingItem::Group(group) => {
            line(text, depth, &format!("subgraph g{}[\"{}\"]", group.number, escape_line(&group.title)));
            // Without this, a group without outgoing arrows is laid out horizontally.
            line(text, depth + 1, "direction TB");
            // The title area is one line high.
            if !group.notes.is_empty() {
                line(text, depth + 1, &format!("t{}[\"{}\"]:::table", group.number, escaped(&group.notes)));
            }
            for item in &group.items {
                write(text, item, depth + 1);
            }
            line(text, depth, "end");
        }
    }
}

fn node_line(node: &DrawingNode) -> String {
    let label = escaped(&node.lines);
    let (open, close, class) = match node.kind {
        GraphNodeKind::Start | GraphNodeKind::End | GraphNodeKind::Fail => ("([", "])", "ends"),
        GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Branch => ("[[", "]]", "place"),
        GraphNodeKind::Action if node.folded => ("[[", "]]", "act"),
        GraphNodeKind::Action => ("[", "]", "act"),
        GraphNodeKind::Choice => ("{{", "}}", "choice"),
        GraphNodeKind::Approval => ("[/", "/]", "choice"),
        GraphNodeKind::Skill => ("[[", "]]", "skill"),
        GraphNodeKind::Table => ("[", "]", "table"),
        GraphNodeKind::Trigger => (">", "]", "trigger"),
        GraphNodeKind::Reference => ("([", "])", "table"),
    };
    let class = node.state.map_or(class, NodeState::class);
    format!("n{}{open}\"{label}\"{close}:::{class}", node.number)
}

fn arrow_line(arrow: &Arrow) -> String {
    let sign = match arrow.kind {
        EdgeKind::Order | EdgeKind::Case => "-->",
        EdgeKind::Route => "==>",
        EdgeKind::Call => "-.->",
    };
    match arrow.lines.as_slice() {
        [] => format!("n{} {sign} n{}", arrow.from, arrow.to),
        lines => format!("n{} {sign}|\"{}\"| n{}", arrow.from, escaped(lines), arrow.to),
    }
}

/// Writes the styles of groups, which cannot be set where they are defined.
fn frames(text: &mut String, items: &[DrawingItem]) {
    for item in items {
        let DrawingItem::Group(Group { number, kind, items, .. }) = item else { continue };
        let fill = match kind {
            GraphNodeKind::Skill => "fill:#f3faf5,stroke:#4f8a5f",
            GraphNodeKind::Branch => "fill:#fffdf5,stroke:#b58a1b",
            GraphNodeKind::Topic => "fill:#fbfcfe,stroke:#9db2d3",
            _ => "fill:#eef3fb,stroke:#5b7db1",
        };
        line(text, 1, &format!("style g{number} {fill},color:#1c2733"));
        frames(text, items);
    }
}

/// Lines as the text of a box.
fn escaped(lines: &[String]) -> String {
    lines.iter().map(|line| escape_line(line)).collect::<Vec<_>>().join("<br/>")
}
