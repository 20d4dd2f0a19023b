//! The OpenAPI document names what the server serves.

use std::path::Path;

use reqwest::Method;

use crate::process::Home;
use crate::served::{Serving, TALK};

#[tokio::test]
async fn the_document_lists_every_route() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let document = serving.get("/v1/openapi.json").await.json();
    assert_eq!((&document["openapi"], &document["info"]["title"]), (&"3.1.0".into(), &"bcc-script".into()));
    let mut shown = String::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap_or_else(|| panic!("{method} {path} has no summary"));
            let statuses: Vec<&str> = operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
            shown.push_str(&format!("{} {path}: {summary} [{}]\n", method.to_uppercase(), statuses.join(" ")));
            // The route is there: the answer is about the missing session, script or body.
            let path = path
                .replace("{id}", "none")
                .replace("{notebook_id}", "none")
                .replace("{session}/{request}", "none/r")
                .replace("{name}", "none")
                .replace("{plan}", "7");
            let method: Method = method.to_uppercase().parse().unwrap();
            let reply =
                serving.send(method, &path, &[("content-type", "application/json")], Some(b"{}".to_vec())).await;
            assert_ne!(reply.status, 405, "{path}");
            assert!(!reply.text.contains("nothing at this path"), "{path}: {reply:?}");
        }
    }
    insta::assert_snapshot!("routes", shown);
}

/// The requests that the pages show work as they are written.
#[tokio::test]
async fn the_requests_in_the_pages_are_answered() {
    let home = Home::new();
    home.put("scripts/first_talk.yaml", TALK.replace("session_id: talk", "session_id: first_talk"));
    let serving = Serving::start(&home);
    let (mut count, mut id) = (0, String::new());
    for page in ["README.md", "README.zh.md", "docs/server.md"] {
        let text = std::fs::read_to_string(Path::new(crate::ROOT).join(page)).unwrap();
        for line in text.lines().filter(|line| line.starts_with("curl ")) {
            let (_, path) = line.split_once("http://127.0.0.1:8711").unwrap();
            let (path, rest) = path.split_once(" --json '").unwrap_or((path, ""));
            let (body, headers) = rest.split_once('\'').unwrap();
            let mut all = vec![("content-type", "application/json")];
            if let Some((name, value)) = headers.split('\'').nth(1).and_then(|header| header.split_once(": ")) {
                all.push((name, value));
            }
            let path = path.replace("ID", &id);
            let reply = serving.send(Method::POST, &path, &all, Some(body.into())).await;
            assert!(reply.status < 300, "{page}: {line}: {reply:?}");
            let reply = reply.json();
            reply["id"].as_str().unwrap().clone_into(&mut id);
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} requests found");
}
