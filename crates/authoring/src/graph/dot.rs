//! Writes a drawing as a Graphviz graph.

use std::fmt::Write as _;

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode};
use crate::graph::script_graph::{EdgeKind, GraphNodeKind, NodeState};

pub fn dot(drawing: &Drawing) -> String {
    let mut text = String::from(
        "digraph script {\n  graph [rankdir=TB, fontname=\"Helvetica\", fontsize=12, nodesep=0.35, ranksep=0.45]\n  \
         node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=11, fontcolor=\"#1c2733\", \
         color=\"#8793a3\", fillcolor=\"#ffffff\"]\n  \
         edge [fontname=\"Helvetica\", fontsize=9, color=\"#5a6675\", fontcolor=\"#3b4653\", arrowsize=0.7]\n",
    );
    for item in &drawing.items {
        write(&mut text, item, 1);
    }
    for arrow in &drawing.arrows {
        line(&mut text, 1, &arrow_line(arrow));
    }
    if drawing.has_states() {
        legend(&mut text);
    }
    text.push_str("}\n");
    text
}

/// Writes the boxes that explain the colors.
fn legend(text: &mut String) {
    line(text, 1, "subgraph cluster_legend {");
    line(text, 2, "graph [label=\"legend\", style=rounded, color=\"#8793a3\"]");
    for state in NodeState::ALL {
        let (fill, stroke) = state.colors();
        let label = state.label();
        line(
            text,
            2,
            &format!("state_{} [label=\"{label}\", fillcolor=\"{fill}\", color=\"{stroke}\"]", state.class()),
        );
    }
    line(text, 1, "}");
}

fn line(text: &mut String, depth: usize, content: &str) {
    let _ = writeln!(text, "{}{content}", "  ".repeat(depth));
}

fn write(text: &mut String, item: &DrawingItem, depth: usize) {
    match item {
        DrawingItem::Box(node) => line(text, depth, &node_line(node)),
        DrawingItem::Group(group) => {
            line(text, depth, &format!("subgraph cluster_{} {{", group.number));
            let (fill, color) = match group.kind {
                GraphNodeKind::Skill => ("#f3faf5", "#4f8a5f"),
                GraphNodeKind::Branch => ("#fffdf5", "#b58a1b"),
                GraphNodeKind::Topic => ("#fbfcfe", "#9db2d3"),
                _ => ("#eef3fb", "#5b7db1"),
            };
            let lines: Vec<String> = std::iter::once(&group.title).chain(&group.notes).cloned().collect();
            let label = escaped(&lines, "\\l");
            line(
                text,
                depth + 1,
                &format!(
                    "graph [label=\"{label}\\l\", labeljust=l, style=\"filled,rounded\", fillcolor=\"{fill}\", color=\"{color}\"]"
                ),
            );
            for item in &group.items {
                write(text, item, depth + 1);
            }
            line(text, depth, "}");
        }
    }
}

fn node_line(node: &DrawingNode) -> String {
    let label = escaped(&node.lines, "\\n");
    let style = match node.kind {
        GraphNodeKind::Start | GraphNodeKind::End | GraphNodeKind::Fail => {
            "shape=oval, style=filled, fillcolor=\"#2f3b4a\", color=\"#2f3b4a\", fontcolor=\"#ffffff\""
        }
        GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Branch => {
            "fillcolor=\"#e8f0fe\", color=\"#5b7db1\", peripheries=2"
        }
        GraphNodeKind::Action if node.folded => "peripheries=2",
        GraphNodeKind::Action => "",
        GraphNodeKind::Choice => "shape=hexagon, style=filled, fillcolor=\"#fff4d6\", color=\"#b58a1b\"",
        GraphNodeKind::Approval => "shape=parallelogram, style=filled, fillcolor=\"#fff4d6\", color=\"#b58a1b\"",
        GraphNodeKind::Skill => "fillcolor=\"#e6f4ea\", color=\"#4f8a5f\", peripheries=2",
        GraphNodeKind::Table => "style=\"filled,rounded,dashed\", fillcolor=\"#f4f4f4\"",
        GraphNodeKind::Reference => "shape=plaintext, style=\"\", fontcolor=\"#5b7db1\"",
        GraphNodeKind::Trigger => "shape=cds, style=filled, fillcolor=\"#fde7e4\", color=\"#b4534a\"",
    };
    let mut style = if style.is_empty() { String::new() } else { format!(", {style}") };
    if let Some(state) = node.state {
        // The last value of an attribute counts.
        let (fill, stroke) = state.colors();
        let _ = write!(style, ", fillcolor=\"{fill}\", color=\"{stroke}\"");
    }
    format!("n{} [label=\"{label}\"{style}]", node.number)
}

fn arrow_line(arrow: &Arrow) -> String {
    let mut attributes: Vec<String> = Vec::new();
    if !arrow.lines.is_empty() {
        attributes.push(format!("label=\"{}\"", escaped(&arrow.lines, "\\n")));
    }
    match arrow.kind {
        EdgeKind::Order => {}
        EdgeKind::Case => attributes.push("color=\"#b58a1b\"".to_owned()),
        EdgeKind::Route => attributes.push("color=\"#b4534a\", penwidth=1.4".to_owned()),
        EdgeKind::Call => attributes.push("color=\"#4f8a5f\", style=dashed".to_owned()),
    }
    let attributes = if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
    format!("n{} -> n{}{attributes}", arrow.from, arrow.to)
}

/// Lines as a label. `&` is escaped, because Graphviz replaces HTML entities in all labels.
fn escaped(lines: &[String], end: &str) -> String {
    let one = |line: &String| line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;");
    lines.iter().map(one).collect::<Vec<_>>().join(end)
}
