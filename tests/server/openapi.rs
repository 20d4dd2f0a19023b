//! The OpenAPI document names what the server serves.

use reqwest::Method;

use crate::process::Home;
use crate::served::Serving;

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
            let path = path.replace("{id}", "none").replace("{session}/{request}", "none/r").replace("{name}", "none");
            let method: Method = method.to_uppercase().parse().unwrap();
            let reply =
                serving.send(method, &path, &[("content-type", "application/json")], Some(b"{}".to_vec())).await;
            assert_ne!(reply.status, 405, "{path}");
            assert!(!reply.text.contains("nothing at this path"), "{path}: {reply:?}");
        }
    }
    insta::assert_snapshot!("routes", shown);
}
