//! Tests of the index with small chunks: what is read again, and what a damaged index does.

use super::*;
use crate::graph::search::{GraphQuery, search};

const SMALL: ChunkSizes = ChunkSizes { min_records: 8, max_records: 64, max_bytes: 1_000_000, mask: 15 };

struct IndexedFolder {
    folder: tempfile::TempDir,
}

impl IndexedFolder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, lines: &[String]) {
        std::fs::write(self.folder.path().join(name), lines.join("\n")).unwrap();
    }

    /// The index as a new process has it.
    fn index(&self) -> GraphIndex {
        let mut index = GraphIndex::new(self.folder.path().to_path_buf(), vec!["*.csv".to_owned()]);
        index.sizes = SMALL;
        index
    }

    fn segments(&self) -> BTreeMap<String, std::time::SystemTime> {
        let folder = std::fs::read_dir(self.folder.path().join(".bcc/graph")).unwrap();
        folder
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().modified().unwrap()))
            .filter(|(name, _)| name.ends_with(SEGMENT))
            .collect()
    }
}

fn lines(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("entity{number},is,thing{}", number % 7)).collect()
}

fn sources(graph: &LoadedGraph, query: &str) -> Vec<String> {
    let query = GraphQuery { query: query.to_owned(), top_k: 5, hops: 0, focus: vec![] };
    let found = search(graph, &query);
    let (value, _) = crate::graph::answer::graph_value(graph, &found, false, usize::MAX);
    let triples = value["triples"].as_array().unwrap();
    triples.iter().map(|triple| triple["source"].as_str().unwrap().to_owned()).collect()
}

fn refresh(index: &GraphIndex) -> Arc<LoadedGraph> {
    index.refresh(&AtomicBool::new(false)).unwrap()
}

#[test]
fn sources_that_are_added_changed_or_removed_are_seen_by_the_same_and_by_another_process() {
    let folder = IndexedFolder::new();
    let index = folder.index();
    assert_eq!(refresh(&index).triples(), 0);
    folder.write("a.csv", &lines(500));
    folder.write("b.csv", &["other,is,thing1".to_owned()]);
    for graph in [refresh(&index), refresh(&folder.index())] {
        assert_eq!((graph.triples(), sources(&graph, "entity417")), (501, vec!["a.csv:418".to_owned()]));
    }
    let before = folder.segments();
    let mut changed = lines(500);
    changed.insert(300, "entity9999,is,new".to_owned());
    folder.write("a.csv", &changed);
    for graph in [refresh(&folder.index()), refresh(&index)] {
        assert_eq!((graph.triples(), sources(&graph, "entity9999")), (502, vec!["a.csv:301".to_owned()]));
        assert_eq!(sources(&graph, "entity417"), ["a.csv:419"]);
    }
    let after = folder.segments();
    let written = after.iter().filter(|(name, at)| before.get(*name) != Some(*at)).count();
    assert!(written <= 4 && after.len() > 15, "{written} of {}", after.len());
    std::fs::remove_file(folder.folder.path().join("a.csv")).unwrap();
    for graph in [refresh(&index), refresh(&folder.index())] {
        assert_eq!((graph.triples(), sources(&graph, "entity417")), (1, vec![]));
    }
    assert_eq!(folder.segments().len(), 1, "what no source needs is removed");
}

#[test]
fn a_change_that_keeps_the_size_and_the_time_is_seen() {
    let folder = IndexedFolder::new();
    let index = folder.index();
    folder.write("a.csv", &["one,is,two".to_owned()]);
    let path = folder.folder.path().join("a.csv");
    let time = path.metadata().unwrap().modified().unwrap();
    refresh(&index);
    folder.write("a.csv", &["six,is,two".to_owned()]);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    for graph in [refresh(&index), refresh(&folder.index())] {
        assert_eq!((sources(&graph, "six").len(), sources(&graph, "one").len()), (1, 0));
    }
}

#[test]
fn nothing_is_read_while_nothing_changes() {
    let folder = IndexedFolder::new();
    folder.write("a.csv", &lines(100));
    // The file was just written, so that its stamp cannot be relied on yet.
    let index = folder.index();
    refresh(&index);
    {
        let mut state = index.state.lock().unwrap();
        for source in state.sources.values_mut() {
            source.is_settled = true;
        }
    }
    assert!(Arc::ptr_eq(&refresh(&index), &refresh(&index)));
}

#[test]
fn a_damaged_index_is_made_again() {
    let folder = IndexedFolder::new();
    folder.write("a.csv", &lines(200));
    refresh(&folder.index());
    let at = |name: &str| folder.folder.path().join(".bcc/graph").join(name);
    let first = folder.segments().into_keys().next().unwrap();
    let whole = std::fs::read(at(&first)).unwrap();
    for damage in [vec![], whole[..whole.len() / 2].to_vec(), [&whole[..40], &[0xff; 40], &whole[80..]].concat()] {
        std::fs::write(at(&first), damage).unwrap();
        assert_eq!(refresh(&folder.index()).triples(), 200);
        assert_eq!(std::fs::read(at(&first)).unwrap(), whole);
    }
    std::fs::remove_file(at(&first)).unwrap();
    assert_eq!(refresh(&folder.index()).triples(), 200);
    for text in ["", "{", "{\"version\":0,\"sources\":{}}", "[1]"] {
        std::fs::write(at(CATALOG), text).unwrap();
        assert_eq!(refresh(&folder.index()).triples(), 200, "{text}");
    }
}

#[test]
fn an_index_that_cannot_be_stored_is_kept_in_memory() {
    let folder = IndexedFolder::new();
    folder.write("a.csv", &lines(50));
    std::fs::write(folder.folder.path().join(".bcc"), "a file").unwrap();
    let index = folder.index();
    for _ in 0..2 {
        assert_eq!(refresh(&index).triples(), 50);
    }
}

#[test]
fn a_cancelled_refresh_ends_also_while_another_process_holds_the_lock() {
    let folder = IndexedFolder::new();
    folder.write("a.csv", &lines(50));
    let lock = PrivateFolder::open(folder.folder.path(), FOLDER).unwrap().try_lock().unwrap();
    let index = folder.index();
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| index.refresh(&cancelled).map(|graph| graph.triples()));
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), io::ErrorKind::Interrupted);
    });
    drop(lock);
    assert_eq!(refresh(&index).triples(), 50);
}

#[test]
fn processes_that_index_at_once_give_the_same_graph() {
    let folder = IndexedFolder::new();
    folder.write("a.csv", &lines(500));
    std::thread::scope(|scope| {
        let graphs: Vec<_> = (0..4).map(|_| scope.spawn(|| refresh(&folder.index()).triples())).collect();
        assert!(graphs.into_iter().all(|graph| graph.join().unwrap() == 500));
    });
}

#[test]
fn what_cannot_be_read_is_named_with_its_file_and_line() {
    let folder = IndexedFolder::new();
    folder.write("a.csv", &["subject,predicate,object".to_owned(), "a,b,c".to_owned(), "bad".to_owned()]);
    folder.write("b.csv", &vec!["bad".to_owned(); 100]);
    std::os::unix::fs::symlink("/etc/passwd", folder.folder.path().join("c.csv")).unwrap();
    let graph = refresh(&folder.index());
    let shown: Vec<String> = graph.problems().iter().map(ToString::to_string).collect();
    assert!(shown[0].starts_with("c.csv: it is a link that leads out of the project"), "{shown:?}");
    assert_eq!(shown[1], "a.csv:3: the subject, the predicate or the object is missing");
    assert_eq!(shown.last().unwrap(), "101 lines are left out in total");
    assert!(shown.len() <= MAX_PROBLEMS + 1, "{}", shown.len());
}
