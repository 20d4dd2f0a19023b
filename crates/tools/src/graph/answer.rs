//! The result of `graph_rag`: the triples with their sources, a text for a prompt, and the subgraph that they form.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::graph::index::LoadedGraph;
use crate::graph::search::{FoundTriple, GraphMatches, triple};
use crate::truncation::json_size;

/// The number of problems of sources in a result.
const MAX_PROBLEMS: usize = 5;

/// A triple as it is written, with its place.
struct ShownTriple<'a> {
    subject: &'a str,
    predicate: &'a str,
    object: &'a str,
    /// The file and the line.
    source: String,
    score: f64,
    /// The other columns.
    attributes: Option<Value>,
}

impl ShownTriple<'_> {
    fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for (name, text) in [("subject", self.subject), ("predicate", self.predicate), ("object", self.object)] {
            fields.insert(name.to_owned(), text.into());
        }
        fields.insert("source".to_owned(), self.source.clone().into());
        fields.insert("score".to_owned(), self.score.into());
        if let Some(attributes) = &self.attributes {
            fields.insert("attributes".to_owned(), attributes.clone());
        }
        Value::Object(fields)
    }
}

fn shown<'a>(graph: &'a LoadedGraph, found: &FoundTriple) -> Option<ShownTriple<'a>> {
    let view = graph.views.get(found.id.view as usize)?;
    let (segment, [subject, predicate, object]) = triple(graph, found.id)?;
    let line = view.first_line.saturating_add(*segment.lines.get(found.id.triple as usize)?);
    Some(ShownTriple {
        subject: segment.names.get(subject)?,
        predicate: segment.names.get(predicate)?,
        object: segment.names.get(object)?,
        source: format!("{}:{line}", graph.sources.get(view.source)?),
        // As the difference of later digits says nothing.
        score: (f64::from(found.score) * 1000.0).round() / 1000.0,
        attributes: segment.attributes(found.id.triple).and_then(|json| serde_json::from_str(json).ok()),
    })
}

/// The result with as many triples as fit in `max_bytes`, and whether some are missing.
pub fn graph_value(graph: &LoadedGraph, found: &GraphMatches, with_subgraph: bool, max_bytes: usize) -> (Value, bool) {
    let triples: Vec<ShownTriple<'_>> = found.triples.iter().filter_map(|found| shown(graph, found)).collect();
    let value = |count: usize| value(graph, triples.get(..count).unwrap_or_default(), &found.unknown, with_subgraph);
    let all = value(triples.len());
    if json_size(&all) <= max_bytes {
        return (all, false);
    }
    // The largest number that fits, between `fits` and `too_many`.
    let (mut fits, mut too_many) = (0, triples.len());
    while fits + 1 < too_many {
        let middle = usize::midpoint(fits, too_many);
        match json_size(&value(middle)) <= max_bytes {
            true => fits = middle,
            false => too_many = middle,
        }
    }
    (value(fits), true)
}

fn value(graph: &LoadedGraph, triples: &[ShownTriple<'_>], unknown: &[String], with_subgraph: bool) -> Value {
    let mut fields = Map::new();
    fields.insert("triples".to_owned(), triples.iter().map(ShownTriple::to_value).collect());
    fields.insert("prompt".to_owned(), prompt(triples).into());
    if with_subgraph {
        fields.insert("subgraph".to_owned(), subgraph(triples));
    }
    if !unknown.is_empty() {
        fields.insert("unknown_entities".to_owned(), unknown.into());
    }
    if !graph.problems.is_empty() {
        let problems: Vec<String> = graph.problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
        fields.insert("problems".to_owned(), problems.into());
    }
    Value::Object(fields)
}

/// The triples as lines for a prompt, each with its source.
fn prompt(triples: &[ShownTriple<'_>]) -> String {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut prompt = String::new();
    for triple in triples {
        let [subject, predicate, object] = [triple.subject, triple.predicate, triple.object].map(line);
        prompt.push_str(&format!("- {subject} | {predicate} | {object} [{}]\n", triple.source));
    }
    prompt
}

/// The entities as nodes with numbers, and the triples as edges between them.
fn subgraph(triples: &[ShownTriple<'_>]) -> Value {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for triple in triples {
        let [source, target] = [triple.subject, triple.object].map(|name| {
            *numbers.entry(name).or_insert_with(|| {
                nodes.push(json!({ "id": nodes.len(), "name": name }));
                nodes.len() - 1
            })
        });
        edges.push(json!({ "source": source, "target": target, "predicate": triple.predicate }));
    }
    json!({ "nodes": nodes, "edges": edges })
}
