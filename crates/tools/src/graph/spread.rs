//! Follows the edges of a graph from entities to the triples around them. How much is looked at is bounded at every step: an entity may
//! have a million triples.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::index::LoadedGraph;
use crate::graph::search::{FoundTriple, NameScores, TripleId, triple};

/// How much of its weight an entity passes on to its neighbours.
const DECAY: f32 = 0.5;

/// The number of entities from which one step goes.
const MAX_FRONTIER: usize = 64;

/// The number of triples of one entity that are looked at if there are many entities, and of all entities of a step together.
const MIN_EXAMINED: usize = 2 * 1024;
const MAX_EXAMINED: usize = 64 * 1024;

/// The number of triples of one entity that are followed, the best ones: if there are many entities, and if there are few.
const MIN_FOLLOWED: usize = 64;
const MAX_FOLLOWED: usize = 256;

/// The number of triples that were found directly whose entities are followed.
const MAX_DIRECT: usize = 16;

/// Where the search begins.
pub(crate) enum Focus {
    /// From the entities that the query names, and those of the best triples. All that was found directly stays.
    Seeds { named: Vec<u64>, top_k: usize },
    /// From these entities. Only what is around them is found.
    Only(Vec<u64>),
}

/// The triples that were found `direct`ly and those within `hops` steps of the focus, each with its score.
pub(crate) fn spread(
    graph: &LoadedGraph,
    scores: &NameScores,
    direct: Vec<FoundTriple>,
    focus: &Focus,
    hops: u32,
) -> Vec<FoundTriple> {
    let mut frontier = seeds(graph, &direct, focus);
    let scale = direct.iter().map(|found| found.score).fold(0.0, f32::max);
    let mut own: FxHashMap<TripleId, f32> = direct.iter().map(|found| (found.id, found.score)).collect();
    let mut gained: FxHashMap<TripleId, f32> = FxHashMap::default();
    let mut visited: FxHashSet<u64> = frontier.iter().map(|(entity, _)| *entity).collect();
    for _ in 0..hops {
        let mut next: FxHashMap<u64, f32> = FxHashMap::default();
        let share = |all: usize| all / frontier.len().max(1);
        let examined = share(MAX_EXAMINED).max(MIN_EXAMINED);
        let followed = share(MIN_FOLLOWED * MAX_FRONTIER).min(MAX_FOLLOWED);
        for (entity, weight) in &frontier {
            for found in around(graph, scores, *entity, examined, followed) {
                own.insert(found.id, found.score);
                let gain = gained.entry(found.id).or_insert(0.0);
                *gain = gain.max(weight * DECAY);
                let Some((segment, [subject, _, object])) = triple(graph, found.id) else { continue };
                for normal in [subject, object].into_iter().filter_map(|name| segment.normal(name)) {
                    if !visited.contains(&normal) {
                        let reached = next.entry(normal).or_insert(0.0);
                        // What fits the query is followed first.
                        *reached = reached.max(weight * DECAY * (1.0 + found.score));
                    }
                }
            }
        }
        frontier = strongest(next);
        visited.extend(frontier.iter().map(|(entity, _)| *entity));
    }
    let best = own.values().copied().fold(scale, f32::max);
    let unit = if best > 0.0 { best } else { 1.0 };
    let with_gain = |(id, score): (TripleId, f32)| FoundTriple {
        id,
        score: score + unit * gained.get(&id).copied().unwrap_or(0.0),
    };
    own.into_iter().map(with_gain).collect()
}

/// The entities from which the first step goes, each with its weight.
fn seeds(graph: &LoadedGraph, direct: &[FoundTriple], focus: &Focus) -> Vec<(u64, f32)> {
    let mut seeds: FxHashMap<u64, f32> = FxHashMap::default();
    match focus {
        Focus::Only(entities) => seeds.extend(entities.iter().map(|entity| (*entity, 1.0))),
        Focus::Seeds { named, top_k } => {
            let mut sorted = direct.to_vec();
            sorted.sort_unstable_by(|one, other| other.cmp(one));
            let best = sorted.first().map_or(1.0, |found| found.score);
            for found in sorted.iter().take(MAX_DIRECT.min(*top_k)) {
                let Some((segment, [subject, _, object])) = triple(graph, found.id) else { continue };
                for normal in [subject, object].into_iter().filter_map(|name| segment.normal(name)) {
                    let weight = seeds.entry(normal).or_insert(0.0);
                    *weight = weight.max(DECAY * found.score / best);
                }
            }
            seeds.extend(named.iter().map(|entity| (*entity, 1.0)));
        }
    }
    strongest(seeds)
}

/// The entities with the greatest weights, in an order that is always the same; no weight is more than 1.
fn strongest(entities: FxHashMap<u64, f32>) -> Vec<(u64, f32)> {
    let mut entities: Vec<(u64, f32)> = entities.into_iter().collect();
    entities.sort_unstable_by(|(one, one_weight), (other, other_weight)| {
        other_weight.total_cmp(one_weight).then(one.cmp(other))
    });
    entities.truncate(MAX_FRONTIER);
    entities.into_iter().map(|(entity, weight)| (entity, weight.min(1.0))).collect()
}

/// The triples of an entity that fit the query best.
fn around(graph: &LoadedGraph, scores: &NameScores, entity: u64, examined: usize, followed: usize) -> Vec<FoundTriple> {
    let mut found = Vec::new();
    let mut left = examined;
    for (view, seen) in (0..).zip(&graph.views) {
        for name in seen.segment.named(entity) {
            let edges = seen.segment.edges.list(*name as usize);
            for triple in edges.iter().take(left) {
                let Some(parts) = seen.segment.triples.get(*triple as usize) else { continue };
                let id = TripleId { view, triple: *triple };
                found.push(FoundTriple { id, score: scores.triple(view, *parts) });
            }
            left = left.saturating_sub(edges.len());
        }
    }
    if found.len() > followed {
        found.select_nth_unstable_by(followed, |one, other| other.cmp(one));
        found.truncate(followed);
    }
    found
}
