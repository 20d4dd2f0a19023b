//! Finds the triples that fit a query.
//!
//! Each name has a score: BM25 over the words that it shares with the query, and more if the query contains the whole name. A triple has
//! the scores of its three names. A crate for BM25 over triples as documents was not used: it would have an entry for each word of each
//! triple, while a name is stored once here however many triples contain it, and a query with frequent words would score every entry.
//! Here, every query looks at each name with its words once, and at each triple once, so that no query is slow.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::graph::index::LoadedGraph;
use crate::graph::segment::Segment;
use crate::graph::spread::{Focus, spread};
use crate::graph::tokens::{Atom, NameHash, atoms, indexed_tokens, name_hash, query_tokens};

/// How much more a name counts that the query contains as a whole.
const NAMED_WEIGHT: f32 = 2.0;

/// The parameters of BM25.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The number of words of a query that are looked for.
const MAX_TOKENS: usize = 64;

/// The number of words of a query in which names are looked for, and of one name.
const MAX_NAMED_ATOMS: usize = 128;
const MAX_NAME_ATOMS: usize = 16;

/// The number of names that are looked at to find an entity that is not there under its exact name.
const MAX_SIMILAR: usize = 20_000;

/// The number of entities for one name that is not exact.
const MAX_ENTITIES: usize = 8;

/// A triple of a graph: the number of its view, and its number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TripleId {
    pub(crate) view: u32,
    pub(crate) triple: u32,
}

/// A found triple.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundTriple {
    pub id: TripleId,
    pub score: f32,
}

impl Eq for FoundTriple {}

impl Ord for FoundTriple {
    /// The better one is greater; of equal ones, the one that comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.id.cmp(&self.id))
    }
}

impl PartialOrd for FoundTriple {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is searched for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphQuery {
    pub query: String,
    pub top_k: usize,
    pub hops: u32,
    /// Names of entities: only triples around them are found.
    pub focus: Vec<String>,
}

/// The triples that were found, the best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphMatches {
    pub triples: Vec<FoundTriple>,
    /// The names in `focus` that no entity has.
    pub unknown: Vec<String>,
}

/// The scores of the names of each view; empty for a view in which none has a score.
pub(crate) struct NameScores(Vec<Vec<f32>>);

impl NameScores {
    fn name(&self, view: u32, name: u32) -> f32 {
        self.0.get(view as usize).and_then(|scores| scores.get(name as usize)).copied().unwrap_or(0.0)
    }

    pub(crate) fn triple(&self, view: u32, [subject, predicate, object]: [u32; 3]) -> f32 {
        self.name(view, subject) + self.name(view, predicate) + self.name(view, object)
    }
}

/// Searches the graph.
pub fn search(graph: &LoadedGraph, query: &GraphQuery) -> GraphMatches {
    let query_atoms = atoms(&query.query);
    let named = named(graph, &query_atoms);
    let scores = name_scores(graph, &query_atoms, &named);
    let mut unknown = Vec::new();
    let mut focus = Vec::new();
    for name in &query.focus {
        match entities(graph, name) {
            found if found.is_empty() => unknown.push(name.clone()),
            found => focus.extend(found),
        }
    }
    focus.sort_unstable();
    focus.dedup();
    let top_k = query.top_k.max(1);
    let triples = if focus.is_empty() {
        let direct = best(graph, &scores, 4 * top_k);
        match query.hops {
            0 => direct,
            hops => spread(graph, &scores, direct, &Focus::Seeds { named, top_k }, hops),
        }
    } else {
        spread(graph, &scores, vec![], &Focus::Only(focus), query.hops.max(1))
    };
    GraphMatches { triples: distinct(graph, triples, top_k), unknown }
}

/// The first `top_k` triples without those that say the same as an earlier one.
fn distinct(graph: &LoadedGraph, mut triples: Vec<FoundTriple>, top_k: usize) -> Vec<FoundTriple> {
    triples.sort_unstable_by(|one, other| other.cmp(one));
    let mut seen = std::collections::HashSet::new();
    let is_new = |found: &FoundTriple| {
        let (segment, [subject, predicate, object]) = triple(graph, found.id)?;
        let names = [segment.names.get(subject)?, segment.names.get(predicate)?, segment.names.get(object)?];
        seen.insert(names).then_some(*found)
    };
    triples.iter().filter_map(is_new).take(top_k).collect()
}

/// A triple with its segment.
pub(crate) fn triple(graph: &LoadedGraph, id: TripleId) -> Option<(&Segment, [u32; 3])> {
    let segment = graph.views.get(id.view as usize)?.segment.as_ref();
    Some((segment, *segment.triples.get(id.triple as usize)?))
}

fn name_scores(graph: &LoadedGraph, query: &[Atom], named: &[u64]) -> NameScores {
    let mut tokens = query_tokens(query);
    tokens.truncate(MAX_TOKENS);
    let found: Vec<(f32, Vec<(usize, usize)>)> = tokens.iter().map(|token| token_places(graph, *token)).collect();
    let mut scores: Vec<Vec<f32>> = vec![vec![]; graph.views.len()];
    let by_length: Vec<f32> = (0..=u8::MAX).map(|length| length_factor(length, graph.mean_length)).collect();
    for (weight, places) in &found {
        for (view, token) in places {
            let (Some(seen), Some(scores)) = (graph.views.get(*view), scores.get_mut(*view)) else { continue };
            let segment = &seen.segment;
            scores.resize(segment.lengths.len(), 0.0);
            for name in segment.postings.list(*token) {
                let length = segment.lengths.get(*name as usize).copied().unwrap_or(u8::MAX);
                if let Some(score) = scores.get_mut(*name as usize) {
                    *score += weight * by_length.get(usize::from(length)).copied().unwrap_or(0.0);
                }
            }
        }
    }
    for normal in named {
        for (view, scores) in graph.views.iter().zip(&mut scores) {
            for name in view.segment.named(*normal) {
                if let Some(score) = scores.get_mut(*name as usize) {
                    *score *= NAMED_WEIGHT;
                }
            }
        }
    }
    NameScores(scores)
}

/// The weight of a word (its inverse document frequency), and the views that contain it, each with its number there.
fn token_places(graph: &LoadedGraph, token: u64) -> (f32, Vec<(usize, usize)>) {
    let mut places = Vec::new();
    let mut triples = 0_u64;
    for (number, view) in graph.views.iter().enumerate() {
        let Some(token) = view.segment.token(token) else { continue };
        triples += u64::from(view.segment.token_triples.get(token).copied().unwrap_or(0));
        places.push((number, token));
    }
    (rarity(triples, graph.triples as u64), places)
}

#[allow(clippy::cast_precision_loss, reason = "a score")]
fn rarity(with: u64, all: u64) -> f32 {
    let (with, all) = (with.min(all) as f32, all as f32);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

fn length_factor(length: u8, mean: f32) -> f32 {
    (K1 + 1.0) / (1.0 + K1 * (1.0 - B + B * f32::from(length) / mean.max(1.0)))
}

/// The triples with the best scores.
fn best(graph: &LoadedGraph, scores: &NameScores, count: usize) -> Vec<FoundTriple> {
    // The worst of the best is on top.
    let mut heap: BinaryHeap<std::cmp::Reverse<FoundTriple>> = BinaryHeap::with_capacity(count + 1);
    let mut least = 0.0_f32;
    for (number, (view, names)) in (0..).zip(graph.views.iter().zip(&scores.0)) {
        if names.is_empty() {
            continue;
        }
        let score_of = |name: u32| names.get(name as usize).copied().unwrap_or(0.0);
        for (triple, [subject, predicate, object]) in (0..).zip(&view.segment.triples) {
            let score = score_of(*subject) + score_of(*predicate) + score_of(*object);
            // Of equal ones, the first ones stay.
            if score <= least {
                continue;
            }
            heap.push(std::cmp::Reverse(FoundTriple { id: TripleId { view: number, triple }, score }));
            if heap.len() > count {
                heap.pop();
                least = heap.peek().map_or(0.0, |worst| worst.0.score);
            }
        }
    }
    heap.into_iter().map(|found| found.0).collect()
}

/// The entities that the query names, by the hashes of their names: of names that overlap, the one that begins first, and the longest.
fn named(graph: &LoadedGraph, query: &[Atom]) -> Vec<u64> {
    let query = query.get(..query.len().min(MAX_NAMED_ATOMS)).unwrap_or_default();
    let mut found = Vec::new();
    let mut start = 0;
    while start < query.len() {
        let mut hash = NameHash::new();
        let mut longest = None;
        for (length, atom) in (1..=MAX_NAME_ATOMS).zip(query.iter().skip(start)) {
            hash = hash.add(atom);
            if is_entity(graph, hash.value()) {
                longest = Some((length, hash.value()));
            }
        }
        match longest {
            Some((length, hash)) => {
                found.push(hash);
                start += length;
            }
            None => start += 1,
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a subject or an object has this name.
fn is_entity(graph: &LoadedGraph, normal: u64) -> bool {
    graph
        .views
        .iter()
        .any(|view| view.segment.named(normal).iter().any(|name| !view.segment.edges.list(*name as usize).is_empty()))
}

/// The entities with a name, as hashes: with exactly this name, otherwise those whose names contain all of its words, the shortest ones.
fn entities(graph: &LoadedGraph, name: &str) -> Vec<u64> {
    let atoms = atoms(name);
    let normal = name_hash(name, &atoms);
    if is_entity(graph, normal) {
        return vec![normal];
    }
    let tokens = indexed_tokens(&atoms);
    let mut similar: Vec<(u8, u64)> = Vec::new();
    let mut left = MAX_SIMILAR;
    for view in &graph.views {
        let segment = &view.segment;
        let lists: Option<Vec<&[u32]>> =
            tokens.iter().map(|token| segment.token(*token).map(|token| segment.postings.list(token))).collect();
        let Some(mut lists) = lists else { continue };
        lists.sort_by_key(|list| list.len());
        let Some((shortest, others)) = lists.split_first() else { continue };
        for name in shortest.iter().take(left) {
            let is_similar = others.iter().all(|list| list.binary_search(name).is_ok())
                && !segment.edges.list(*name as usize).is_empty();
            if let Some(normal) = segment.normal(*name).filter(|_| is_similar) {
                similar.push((segment.lengths.get(*name as usize).copied().unwrap_or(u8::MAX), normal));
            }
        }
        left = left.saturating_sub(shortest.len());
    }
    similar.sort_unstable();
    similar.dedup();
    similar.into_iter().take(MAX_ENTITIES).map(|(_, normal)| normal).collect()
}
