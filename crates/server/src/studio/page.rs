//! The page and its files, which are in the binary.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::msg;

use crate::api::body::language_of;
use crate::pages::embedded::{EmbeddedFile, ICON, SCRIPT, STYLE, embedded_file, version_of};
use crate::pages::page_headers::with_page_headers;
use crate::problem::Problem;

/// Modules in the folder of the page.
macro_rules! modules {
    ($($name:literal),* $(,)?) => { [$(($name, SCRIPT, include_str!(concat!("../../pages/studio/", $name)))),*] };
}

/// The modules of the page, and those that it shares with others.
const MODULES: &[EmbeddedFile] = &modules![
    "again.js",
    "api.js",
    "calls_tab.js",
    "chart.js",
    "chinese.js",
    "compare_view.js",
    "diff.js",
    "display.js",
    "drawing.js",
    "editor_view.js",
    "english.js",
    "error_bubble.js",
    "feed.js",
    "inspector.js",
    "links_view.js",
    "metrics_tab.js",
    "monitors_tab.js",
    "notebook_tab.js",
    "plan_tab.js",
    "requests_tab.js",
    "schema_form.js",
    "scripts_view.js",
    "session_fold.js",
    "session_store.js",
    "session_view.js",
    "sessions_view.js",
    "studio.js",
    "talk_pane.js",
    "texts.js",
    "timeline.js",
    "tree_pane.js",
    "variables_tab.js",
    "virtual_list.js",
    "workflow_tab.js",
];

const OTHERS: &[EmbeddedFile] = &[
    ("pause.js", SCRIPT, include_str!("../../pages/pause.js")),
    ("studio.css", STYLE, include_str!("../../pages/studio/studio.css")),
    // Unmodified files of npm packages, with their licences beside them in `pages/libraries`.
    ("libraries/lit-html.js", SCRIPT, include_str!("../../pages/libraries/lit-html.js")),
    ("libraries/uPlot.iife.min.js", SCRIPT, include_str!("../../pages/libraries/uPlot.iife.min.js")),
    ("libraries/dagre.esm.js", SCRIPT, include_str!("../../pages/libraries/dagre.esm.js")),
    ("libraries/LICENSES", "text/plain; charset=utf-8", LICENSES),
    ICON,
];

/// Whoever gets the libraries gets their licences.
const LICENSES: &str = concat!(
    include_str!("../../pages/libraries/lit-html.LICENSE"),
    "\n",
    include_str!("../../pages/libraries/uPlot.LICENSE"),
    "\n",
    include_str!("../../pages/libraries/dagre.LICENSE"),
);

const PAGE: &str = include_str!("../../pages/studio/studio.html");

static FILES: LazyLock<Vec<EmbeddedFile>> = LazyLock::new(|| [MODULES, OTHERS].concat());

static VERSION: LazyLock<String> = LazyLock::new(|| version_of(&FILES));

/// Only the files of the page run, and it talks to its own server only. `lit-html` alone may make markup, and makes it of the templates of
/// the page; everything else is text. Pictures of notebooks are in addresses of the type `data:`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html";

/// What every response at `/studio` has.
pub(crate) fn add_headers(response: Response) -> Response {
    let mut response = with_page_headers(response, POLICY);
    // A page that opened this one has no hold on it. The page for people who talk has no such header: it opens nothing and listens to nobody, and
    // browsers start a new process for a page with it, which takes longer than everything else until its first words.
    response.headers_mut().insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

/// `GET /studio`: the page. What it shows, it asks the API for.
pub(crate) async fn studio_page(headers: HeaderMap) -> Response {
    let language = if language_of(&headers).name() == "zh" { "zh-CN" } else { "en" };
    let html = PAGE.replace("{{version}}", &VERSION).replace("{{language}}", language);
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// `GET /studio/parts/VERSION/NAME`: a file of the page.
pub(crate) async fn part(Path((version, name)): Path<(String, String)>) -> Response {
    let found = embedded_file(&FILES, &name, version == *VERSION);
    found.unwrap_or_else(|| Problem::not_found(msg!("there is nothing at this path")).into_response())
}
