//! The files of a page: each has the version of all of them in its address.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::access::hex;

/// The content type of modules.
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The content type of style sheets.
pub(crate) const STYLE: &str = "text/css; charset=utf-8";

/// The icon of all pages.
pub(crate) const ICON: EmbeddedFile = ("icon.svg", "image/svg+xml", include_str!("../../pages/icon.svg"));

/// A file of a page: its name, its content type and its text.
pub(crate) type EmbeddedFile = (&'static str, &'static str, &'static str);

/// The folder of files that others wrote.
const LIBRARIES: &str = "libraries/";

/// How far files of pages are compressed. With Brotli, the largest takes about 20 ms, as with 9, and is a twentieth smaller; with 11 it takes three
/// times as long, and a browser waits for it.
const COMPRESSION: i32 = 10;

/// Compresses files of pages. It is for nothing else: who sees the length of what is sent could learn from it what secrets are in it, if
/// part of it is what they have said.
pub(crate) fn page_compression() -> CompressionLayer {
    CompressionLayer::new().quality(CompressionLevel::Precise(COMPRESSION))
}

/// The version of files, which changes with each of them: a browser that has a file never asks for it again, and gets new ones from a new
/// release.
pub(crate) fn version_of(files: &[EmbeddedFile]) -> String {
    let mut hash = Sha256::new();
    for (name, _, text) in files {
        hash.update(name);
        hash.update(text);
    }
    hex(&hash.finalize()).chars().take(16).collect()
}

/// The file with this name; none if the page has none. A page of an earlier release gets the files of this one.
pub(crate) fn embedded_file(files: &[EmbeddedFile], name: &str, is_current: bool) -> Option<Response> {
    let (_, kind, text) = files.iter().find(|(known, _, _)| *known == name)?;
    let lasting = if is_current { "public, max-age=31536000, immutable" } else { "no-store" };
    let headers = [(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, lasting)];
    // Files of libraries are sent as their authors published them.
    if *kind == SCRIPT && !name.starts_with(LIBRARIES) {
        return Some((headers, without_comments(text)).into_response());
    }
    Some((headers, *text).into_response())
}

/// A module without the lines that are comments, which are a tenth of what would be sent. The other lines keep their numbers, which errors
/// name. In a module, no line of a text may begin with `//`.
fn without_comments(module: &str) -> String {
    let mut sent = String::with_capacity(module.len());
    for line in module.lines() {
        if !line.trim_start().starts_with("//") {
            sent.push_str(line);
        }
        sent.push('\n');
    }
    sent
}
