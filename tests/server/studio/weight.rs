//! How much a browser loads.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The most that all files of all pages may have together, compressed.
const MAX_BYTES: usize = 120 * 1024;

/// The size of a file as `gzip` writes it; none if there is no `gzip`.
fn compressed(text: &[u8]) -> Option<usize> {
    let mut child =
        Command::new("gzip").args(["-9", "-c", "-n"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut input = child.stdin.take()?;
    let text = text.to_owned();
    let writing = std::thread::spawn(move || input.write_all(&text));
    let size = child.wait_with_output().ok()?.stdout.len();
    writing.join().ok()?.ok()?;
    Some(size)
}

#[test]
fn all_pages_together_are_small() {
    let mut folders = vec![Path::new(crate::ROOT).join("crates/server/pages")];
    let mut sizes = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // No page loads them.
            if path.extension().is_some_and(|extension| extension == "LICENSE") {
                continue;
            }
            let Some(size) = compressed(&std::fs::read(&path).unwrap()) else {
                eprintln!("passes without gzip");
                return;
            };
            sizes.push((size, path));
        }
    }
    sizes.sort();
    let whole: usize = sizes.iter().map(|(size, _)| size).sum();
    eprintln!("{whole} bytes");
    assert!(sizes.len() > 30 && whole <= MAX_BYTES, "{whole} bytes: {sizes:#?}");
}
