//! How much a browser loads.

use std::path::Path;

use crate::process::Home;
use crate::served::{Serving, TALK};

/// The most that all files of all pages may have together, as they are sent.
const MAX_BYTES: usize = 120 * 1024;

/// The address of a file in the folder of pages, of whatever version.
fn address(path: &Path) -> String {
    let name = path.to_str().unwrap();
    match name.strip_prefix("studio/") {
        Some("studio.html") => "/studio".to_owned(),
        Some(name) => format!("/studio/parts/0/{name}"),
        None if name.starts_with("libraries/") => format!("/studio/parts/0/{name}"),
        None if name == "talk.html" => "/t/none".to_owned(),
        None => format!("/t/parts/0/{name}"),
    }
}

#[tokio::test]
async fn all_pages_together_are_small() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let root = Path::new(crate::ROOT).join("crates/server/pages");
    let mut folders = vec![root.clone()];
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
            let address = address(path.strip_prefix(&root).unwrap());
            let reply = serving.encoded(&address, "gzip, br").await;
            let header = |name| reply.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let is_part = address.contains("/parts/");
            assert_eq!(header("content-encoding").as_deref(), is_part.then_some("br"), "{address}");
            assert_eq!(header("vary").as_deref(), is_part.then_some("accept-encoding"), "{address}");
            let text = std::fs::read_to_string(&path).unwrap();
            let sent = reply.bytes().await.unwrap();
            // Part of what is in a page differs from request to request.
            assert!(sent.len() < text.len() || !is_part, "{address}");
            sizes.push((sent.len(), address));
        }
    }
    sizes.sort();
    let whole: usize = sizes.iter().map(|(size, _)| size).sum();
    eprintln!("{whole} bytes");
    assert!(sizes.len() > 30 && whole <= MAX_BYTES, "{whole} bytes: {sizes:#?}");
}

#[tokio::test]
async fn only_files_of_pages_are_compressed_and_only_for_who_reads_it() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let part = "/studio/parts/0/studio.js";
    let encoding = async |path: &str, accepted: &str| {
        let reply = serving.encoded(path, accepted).await;
        assert_eq!(reply.status(), 200, "{path}");
        reply.headers().get("content-encoding").map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(encoding(part, "gzip").await.as_deref(), Some("gzip"));
    assert_eq!(encoding(part, "identity").await, None);
    assert_eq!(encoding(&format!("/v1/sessions/{id}"), "gzip, br").await, None);
    assert_eq!(encoding("/v1/openapi.json", "gzip, br").await, None);
}

#[tokio::test]
async fn modules_are_sent_without_their_comments_and_with_their_lines() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let root = Path::new(crate::ROOT).join("crates/server/pages");
    for (path, address) in [("studio/studio.js", "/studio/parts/0/studio.js"), ("talk.js", "/t/parts/0/talk.js")] {
        let file = std::fs::read_to_string(root.join(path)).unwrap();
        let sent = serving.get(address).await.text;
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        assert!(file.lines().any(|line| is_comment(&line)) && !sent.lines().any(|line| is_comment(&line)), "{path}");
        let kept: Vec<_> = file.lines().map(|line| if is_comment(&line) { "" } else { line }).collect();
        assert_eq!(sent.lines().collect::<Vec<_>>(), kept, "{path}");
    }
    // What others wrote is sent as it is.
    let library = std::fs::read_to_string(root.join("libraries/lit-html.js")).unwrap();
    assert_eq!(serving.get("/studio/parts/0/libraries/lit-html.js").await.text, library);
}
