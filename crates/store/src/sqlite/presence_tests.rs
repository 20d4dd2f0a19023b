//! Tests of stores whose files are removed, moved or replaced while they are open.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::conformance::{commit_at, new_session};
use crate::contract::Store;
use crate::error::StoreError;
use crate::sqlite::open::open;

/// Moves the files of a store.
type Move = fn(&Path);

#[tokio::test]
async fn a_commit_to_a_store_that_went_away_fails_and_touches_no_other_store() {
    let moves: [(&str, Move); 6] = [
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("moved", |path| fs::rename(path, path.with_extension("moved")).unwrap()),
        ("its log is removed", |path| fs::remove_file(format!("{}-wal", path.display())).unwrap()),
        ("its directory is moved", |path| {
            let directory = path.parent().unwrap();
            fs::rename(directory, directory.with_extension("moved")).unwrap();
        }),
        ("its directory is removed", |path| fs::remove_dir_all(path.parent().unwrap()).unwrap()),
        ("replaced by another one that is in use", |path| {
            let directory = path.parent().unwrap();
            fs::rename(directory, directory.with_extension("moved")).unwrap();
            let other = open(path).unwrap();
            let files = [path.to_owned(), PathBuf::from(format!("{}-wal", path.display()))];
            assert!(files.iter().all(|file| file.exists()));
            std::mem::forget(other);
        }),
    ];
    for (name, go) in moves {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("place/sessions.db");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let store = open(&path).unwrap();
        store.create(&new_session("one"), &[], &commit_at(0)).await.unwrap();
        store.check_files().await.unwrap();
        let lock = store.lock("one", "me").await.unwrap();
        go(&path);
        let there = bytes_below(directory.path());
        let error = store.commit("one", &commit_at(1)).await.expect_err(name);
        assert!(matches!(error, StoreError::Gone { .. }), "{name}: {error}");
        assert!(matches!(store.check_files().await, Err(StoreError::Gone { .. })), "{name}");
        drop((lock, store));
        let after = bytes_below(directory.path());
        assert_eq!(after.keys().collect::<Vec<_>>(), there.keys().collect::<Vec<_>>(), "{name}: no file is removed");
        if name == "moved" || name == "its directory is moved" {
            // Put back, it contains what was stored.
            let moved = if name == "moved" { path.with_extension("moved") } else { path.clone() };
            let back = directory.path().join("place.moved");
            if back.exists() {
                fs::rename(back, path.parent().unwrap()).unwrap();
            } else {
                fs::rename(moved, &path).unwrap();
            }
            assert_eq!(open(&path).unwrap().session("one").await.unwrap().unwrap().revision, 1, "{name}");
        }
    }
}

/// All files below a directory, without those of locks.
fn bytes_below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true if !path.display().to_string().ends_with(".locks") => pending.push(path),
                true => {}
                false => drop(files.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_store_that_leads_elsewhere_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let [link, file, other] = ["link.db", "a.db", "b.db"].map(|name| directory.path().join(name));
    drop(open(&other).unwrap());
    drop(open(&file).unwrap());
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let store = open(&link).unwrap();
    store.create(&new_session("one"), &[], &commit_at(0)).await.unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(matches!(store.commit("one", &commit_at(1)).await, Err(StoreError::Gone { .. })));
}
