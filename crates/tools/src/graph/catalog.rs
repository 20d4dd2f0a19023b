//! Which sources are indexed, and which segments belong to each: the file `catalog.json` of the index.

use std::collections::BTreeMap;

use bcc_engine::files::matching::ContentStamp;
use serde::{Deserialize, Serialize};

use crate::graph::encoding::VERSION;

pub(crate) const CATALOG: &str = "catalog.json";

/// The maximum size of the file, in bytes.
pub(crate) const MAX_CATALOG_BYTES: u64 = 64 * 1024 * 1024;

/// How much later than a file the catalog must have been written, in nanoseconds, so that a change of the file in the same moment would
/// have given it another time.
const MIN_AGE: i128 = 100_000_000;

/// An indexed source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexedSource {
    pub stamp: ContentStamp,
    /// The segments in the order of their lines, each with its first line.
    pub chunks: Vec<(String, u32)>,
    /// Whether the file was older than the catalog when it was indexed, so that its stamp can be relied on.
    #[serde(default)]
    pub is_settled: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Catalog {
    version: u32,
    pub sources: BTreeMap<String, IndexedSource>,
}

impl Catalog {
    pub(crate) fn new(sources: BTreeMap<String, IndexedSource>) -> Self {
        Self { version: VERSION, sources }
    }

    /// The catalog in `bytes`; an empty one if they are damaged or of another version, so that everything is indexed again.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).ok().filter(|catalog: &Self| catalog.version == VERSION).unwrap_or_default()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Whether a file with this stamp was last changed long enough before `now`, the time of the file system in nanoseconds.
pub(crate) fn is_settled(stamp: ContentStamp, now: i128) -> bool {
    stamp.modified.max(stamp.changed) + MIN_AGE < now
}
