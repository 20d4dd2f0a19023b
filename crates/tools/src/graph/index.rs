//! Keeps the index of the sources of a project: reads what was added or changed, keeps it on disk, and loads it into memory.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bcc_engine::files::matching::{ContentStamp, files_matching, open_project_file};
use bcc_engine::files::private_folder::{FolderLock, PrivateFolder};
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;

use crate::graph::builder::segment;
use crate::graph::catalog::{CATALOG, Catalog, IndexedSource, MAX_CATALOG_BYTES, is_settled};
use crate::graph::chunks::{ChunkSizes, SourceChunk, each_chunk};
use crate::graph::columns::SourceForm;
use crate::graph::encoding::{VERSION, decode, encode};
use crate::graph::problem::LineProblem;
use crate::graph::segment::Segment;

/// The name of the folder below `.bcc/`.
const FOLDER: &str = "graph";

/// The maximum size of a source, in bytes.
const MAX_SOURCE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The maximum size of a stored segment, in bytes.
const MAX_SEGMENT_BYTES: u64 = 256 * 1024 * 1024;

const MAX_SOURCES: usize = 2_000;

/// The maximum number of triples in memory.
const MAX_TRIPLES: usize = 10_000_000;

/// The number of problems that are told at once.
const MAX_PROBLEMS: usize = 20;

/// How long another process is waited for before its lock is looked at again.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A chunk of a source in memory.
#[derive(Clone, Debug)]
pub(crate) struct SegmentView {
    pub segment: Arc<Segment>,
    /// The number of the source.
    pub source: usize,
    pub first_line: u32,
}

/// All triples of the sources as they were at one moment.
#[derive(Clone, Debug, Default)]
pub struct LoadedGraph {
    /// The paths of the sources, relative to the project.
    pub(crate) sources: Vec<String>,
    pub(crate) views: Vec<SegmentView>,
    pub(crate) triples: usize,
    /// The mean number of words of a name.
    pub(crate) mean_length: f32,
    /// What could not be read.
    pub(crate) problems: Vec<Message>,
}

impl LoadedGraph {
    /// The number of triples.
    pub const fn triples(&self) -> usize {
        self.triples
    }

    /// What could not be read, with the file and the line.
    pub fn problems(&self) -> &[Message] {
        &self.problems
    }
}

/// The index of the sources of one project.
pub struct GraphIndex {
    project: PathBuf,
    patterns: Vec<String>,
    sizes: ChunkSizes,
    state: Mutex<IndexState>,
}

#[derive(Default)]
struct IndexState {
    sources: BTreeMap<String, IndexedSource>,
    segments: HashMap<String, Arc<Segment>>,
    loaded: Option<Arc<LoadedGraph>>,
    /// What the problems of sources without an index are.
    unreadable: BTreeMap<String, String>,
}

impl GraphIndex {
    /// The index for the files of `project` that match `patterns`. Nothing is read yet.
    pub fn new(project: PathBuf, patterns: Vec<String>) -> Self {
        Self { project, patterns, sizes: ChunkSizes::default(), state: Mutex::default() }
    }

    /// All triples. What was added or changed since the last call, in this process or another one, is indexed first.
    ///
    /// # Errors
    /// When the sources cannot be listed, or `is_cancelled` becomes true.
    pub fn refresh(&self, is_cancelled: &AtomicBool) -> io::Result<Arc<LoadedGraph>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = files_matching(&self.project, &self.patterns)?;
        let mut problems = Vec::new();
        let mut stamps = BTreeMap::new();
        let mut unreadable = BTreeMap::new();
        for (name, stamp) in found {
            match usable(&name, stamp) {
                Ok(_) if stamps.len() == MAX_SOURCES => {
                    problems.push(msg!("there are more than {MAX_SOURCES} sources; the others are not used"));
                    break;
                }
                Ok(stamp) => drop(stamps.insert(name, stamp)),
                Err(why) => {
                    unreadable.insert(name.clone(), why.to_string());
                    problems.push(Message::list(Joint::Colon, [Message::text(name), why]));
                }
            }
        }
        let is_known = |(name, stamp): (&String, &ContentStamp)| {
            state.sources.get(name).is_some_and(|known| known.is_settled && known.stamp == *stamp)
        };
        if let Some(loaded) = &state.loaded
            && stamps.len() == state.sources.len()
            && stamps.iter().all(is_known)
            && unreadable == state.unreadable
        {
            return Ok(Arc::clone(loaded));
        }
        let update = IndexUpdate {
            index: self,
            folder: PrivateFolder::open(&self.project, FOLDER)
                .inspect_err(|error| tracing::warn!(%error, "the index of the graph cannot be stored"))
                .ok(),
            is_cancelled,
        };
        let loaded = update.run(&mut state, &stamps, problems)?;
        state.unreadable = unreadable;
        Ok(loaded)
    }
}

/// The stamp of a source that can be indexed.
fn usable(name: &str, stamp: io::Result<ContentStamp>) -> Result<ContentStamp, Message> {
    let stamp = stamp.map_err(|error| error.to_message())?;
    if SourceForm::of(name).is_none() {
        return Err(msg!("its name ends neither with .csv, nor with .tsv or .jsonl"));
    }
    if stamp.size > MAX_SOURCE_BYTES {
        return Err(msg!("it is larger than {MAX_SOURCE_BYTES} bytes"));
    }
    Ok(stamp)
}

/// The time of the file system, in nanoseconds.
fn now() -> i128 {
    #[allow(
        clippy::disallowed_methods,
        reason = "compared with times of files only; decides nothing but whether a file is read again"
    )]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).ok().and_then(|now| i128::try_from(now.as_nanos()).ok()).unwrap_or(0)
}

struct IndexUpdate<'a> {
    index: &'a GraphIndex,
    /// Where segments are stored; without it, the index is in memory only.
    folder: Option<PrivateFolder>,
    is_cancelled: &'a AtomicBool,
}

impl IndexUpdate<'_> {
    fn check(&self) -> io::Result<()> {
        match self.is_cancelled.load(Ordering::Relaxed) {
            true => Err(io::Error::new(io::ErrorKind::Interrupted, "it was cancelled")),
            false => Ok(()),
        }
    }

    fn run(
        &self,
        state: &mut IndexState,
        stamps: &BTreeMap<String, ContentStamp>,
        mut problems: Vec<Message>,
    ) -> io::Result<Arc<LoadedGraph>> {
        let _lock = self.lock()?;
        let stored = match &self.folder {
            Some(folder) => {
                folder.read(CATALOG, MAX_CATALOG_BYTES).map(|bytes| Catalog::decode(&bytes)).unwrap_or_default()
            }
            None => Catalog::new(std::mem::take(&mut state.sources)),
        };
        let mut segments = HashMap::new();
        let mut sources = BTreeMap::new();
        for (name, stamp) in stamps {
            let known = stored.sources.get(name).filter(|known| known.is_settled && known.stamp == *stamp);
            let chunks = known.and_then(|known| self.load(&known.chunks, &state.segments, &mut segments));
            let chunks = match chunks {
                Some(chunks) => Ok((chunks, true)),
                None => {
                    let is_settled = is_settled(*stamp, now());
                    self.read(name, &state.segments, &mut segments).map(|chunks| (chunks, is_settled))
                }
            };
            match chunks {
                Ok((chunks, is_settled)) => {
                    sources.insert(name.clone(), IndexedSource { stamp: *stamp, chunks, is_settled });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => problems.push(Message::list(Joint::Colon, [Message::text(name), error.to_message()])),
            }
        }
        let catalog = Catalog::new(sources);
        if catalog != stored {
            self.store(&catalog);
        }
        let loaded = Arc::new(loaded(&catalog.sources, &segments, problems));
        *state = IndexState {
            sources: catalog.sources,
            segments,
            loaded: Some(Arc::clone(&loaded)),
            unreadable: BTreeMap::new(),
        };
        Ok(loaded)
    }

    /// The lock of the folder, for which another process may have to be waited.
    fn lock(&self) -> io::Result<Option<FolderLock>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        loop {
            self.check()?;
            match folder.try_lock() {
                Ok(Some(lock)) => return Ok(Some(lock)),
                Ok(None) => std::thread::sleep(LOCK_PAUSE),
                Err(error) => {
                    tracing::warn!(%error, "the index of the graph cannot be locked");
                    return Ok(None);
                }
            }
        }
    }

    /// Loads these segments from memory or from disk; none if one of them is missing or damaged.
    fn load(
        &self,
        chunks: &[(String, u32)],
        old: &HashMap<String, Arc<Segment>>,
        new: &mut HashMap<String, Arc<Segment>>,
    ) -> Option<Vec<(String, u32)>> {
        for (name, _) in chunks {
            self.check().ok()?;
            self.segment(name, old, new)?;
        }
        Some(chunks.to_vec())
    }

    fn segment(
        &self,
        name: &str,
        old: &HashMap<String, Arc<Segment>>,
        new: &mut HashMap<String, Arc<Segment>>,
    ) -> Option<Arc<Segment>> {
        if let Some(segment) = new.get(name).or_else(|| old.get(name)) {
            let segment = Arc::clone(segment);
            new.insert(name.to_owned(), Arc::clone(&segment));
            return Some(segment);
        }
        let bytes = self.folder.as_ref()?.read(&file_name(name), MAX_SEGMENT_BYTES).ok()?;
        let segment = decode(&bytes);
        if segment.is_none() {
            tracing::warn!(name, "a part of the index of the graph is damaged; it is made again");
        }
        let segment = Arc::new(segment?);
        new.insert(name.to_owned(), Arc::clone(&segment));
        Some(segment)
    }

    /// Reads a source, and indexes those of its chunks that are new.
    fn read(
        &self,
        name: &str,
        old: &HashMap<String, Arc<Segment>>,
        new: &mut HashMap<String, Arc<Segment>>,
    ) -> io::Result<Vec<(String, u32)>> {
        let form = SourceForm::of(name).ok_or(io::ErrorKind::InvalidInput)?;
        let file = BufReader::with_capacity(256 * 1024, open_project_file(&self.index.project, name)?);
        let mut chunks = Vec::new();
        let add = |chunk: SourceChunk| {
            self.check()?;
            let name = chunk.name(VERSION);
            if self.segment(&name, old, new).is_none() {
                let made = segment(&chunk);
                if let Some(folder) = &self.folder
                    && let Err(error) = folder.write(&file_name(&name), &encode(&made))
                {
                    tracing::warn!(%error, "a part of the index of the graph cannot be stored");
                }
                new.insert(name.clone(), Arc::new(made));
            }
            chunks.push((name, chunk.first_line));
            Ok(())
        };
        each_chunk(file, form, self.index.sizes, add)?;
        Ok(chunks)
    }

    /// Writes the catalog, and removes the segments that it does not name. An index that cannot be stored is made again next time.
    fn store(&self, catalog: &Catalog) {
        let Some(folder) = &self.folder else { return };
        if let Err(error) = folder.write(CATALOG, &catalog.encode()) {
            tracing::warn!(%error, "the index of the graph cannot be stored");
            return;
        }
        let used: std::collections::HashSet<String> =
            catalog.sources.values().flat_map(|source| &source.chunks).map(|(name, _)| file_name(name)).collect();
        for name in folder.names().unwrap_or_default() {
            if name.ends_with(SEGMENT) && !used.contains(&name) {
                let _ = folder.remove(&name);
            }
        }
    }
}

const SEGMENT: &str = ".segment";

fn file_name(name: &str) -> String {
    format!("{name}{SEGMENT}")
}

fn loaded(
    sources: &BTreeMap<String, IndexedSource>,
    segments: &HashMap<String, Arc<Segment>>,
    mut problems: Vec<Message>,
) -> LoadedGraph {
    let mut graph = LoadedGraph::default();
    let (mut words, mut names, mut wrong) = (0_u64, 0_u64, 0_u64);
    for (name, source) in sources {
        let number = graph.sources.len();
        graph.sources.push(name.clone());
        for (chunk, first_line) in &source.chunks {
            let Some(segment) = segments.get(chunk) else { continue };
            if graph.triples + segment.triples.len() > MAX_TRIPLES {
                problems.push(msg!("{name}: there are more than {MAX_TRIPLES} triples; the others are not used"));
                break;
            }
            for [line, code] in &segment.problems {
                let line = first_line.saturating_add(*line);
                if let Some(problem) = LineProblem::from_code(*code).filter(|_| problems.len() < MAX_PROBLEMS) {
                    let place = Message::text(format!("{name}:{line}"));
                    problems.push(Message::list(Joint::Colon, [place, problem.message()]));
                }
            }
            wrong += u64::from(segment.problem_count);
            graph.triples += segment.triples.len();
            names += segment.lengths.len() as u64;
            words += segment.lengths.iter().map(|length| u64::from(*length)).sum::<u64>();
            graph.views.push(SegmentView { segment: Arc::clone(segment), source: number, first_line: *first_line });
        }
    }
    if wrong > MAX_PROBLEMS as u64 {
        problems.push(msg!("{wrong} lines are left out in total"));
    }
    graph.mean_length = mean(words, names);
    graph.problems = problems;
    graph
}

#[allow(clippy::cast_precision_loss, reason = "a mean for a score")]
fn mean(sum: u64, count: u64) -> f32 {
    if count == 0 { 1.0 } else { (sum as f64 / count as f64) as f32 }
}

#[cfg(test)]
mod tests;
