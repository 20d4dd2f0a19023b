//! axe-core, which checks the accessibility of what a browser shows.

use std::path::Path;

use serde_json::json;

use crate::browser::{Browser, missing};

/// Only violations are told with their elements: the others are most of the work, and nobody reads them.
const RUN: &str = "const [done] = arguments; \
    axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] }) \
    .then(({ violations }) => done(violations.map(({ id, nodes }) => [id, ...nodes.map((n) => n.html + ' ' + n.failureSummary)])), \
    (error) => done([['error', String(error)]]))";

/// The checks that `.ci/browser/run` installs.
pub struct Axe(String);

impl Axe {
    pub fn read() -> Option<Self> {
        let path = Path::new(crate::ROOT).join("target/browser/node_modules/axe-core/axe.min.js");
        let text = std::fs::read_to_string(path);
        text.ok().map(Self).or_else(|| missing("no axe-core: `.ci/browser/run` installs it in target/browser"))
    }

    /// It finds nothing in what the browser shows.
    pub async fn check(&self, browser: &Browser, view: &str) {
        // Views of the same document need it once: it is long.
        if browser.run("return typeof axe").await == "undefined" {
            browser.run(&self.0).await;
        }
        let violations = browser.run_async(RUN).await;
        assert_eq!(violations, json!([]), "{view}");
    }
}
