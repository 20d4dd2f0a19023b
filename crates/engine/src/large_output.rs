//! One large output of a session, such as a picture, by its hash.

use base64::Engine as _;
use bcc_runtime::notebook::large_outputs::referred_type;
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;

use crate::error::EngineError;
use crate::export::{masker_of, parse};
use crate::notebook_file::pictures::LENIENT;

/// The number of cells that are read at a time: one may contain megabytes of output.
const PAGE: usize = 64;

/// The number of digits of a hash.
const HASH_DIGITS: usize = 64;

/// A large output.
#[derive(Debug)]
pub struct LargeOutput {
    /// The type that the code gave it.
    pub media_type: String,
    pub bytes: Vec<u8>,
    /// Whether it is the same whatever is sensitive: text is masked.
    pub is_fixed: bool,
}

/// The large output with this hash to which a cell of the session refers; none if no cell does. Sensitive values in texts are masked.
///
/// # Errors
/// The store cannot be read.
pub async fn large_output(
    store: &dyn Store,
    row: &SessionRow,
    sha256: &str,
) -> Result<Option<LargeOutput>, EngineError> {
    let is_digit = |letter: char| matches!(letter, '0'..='9' | 'a'..='f');
    if sha256.len() != HASH_DIGITS || !sha256.chars().all(is_digit) {
        return Ok(None);
    }
    let id = row.id.as_str();
    if !store.has_text(id, sha256).await? {
        return Ok(None);
    }
    let Some(media_type) = type_of(store, id, sha256).await? else { return Ok(None) };
    let Some(text) = store.text(id, sha256).await? else { return Ok(None) };
    if is_base64(&media_type) {
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        if let Ok(bytes) = LENIENT.decode(digits) {
            return Ok(Some(LargeOutput { media_type, bytes, is_fixed: true }));
        }
    }
    let masker = masker_of(store, row).await?;
    Ok(Some(LargeOutput { media_type, bytes: masker.text(&text).into_bytes(), is_fixed: false }))
}

async fn type_of(store: &dyn Store, id: &str, sha256: &str) -> Result<Option<String>, EngineError> {
    let mut after = 0;
    loop {
        let page = store.cells(id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        after = last.number;
        for row in page.iter().filter(|row| row.body.contains(sha256)) {
            if let Some(media_type) = referred_type(&parse(&row.body, "cell")?, sha256) {
                return Ok(Some(media_type));
            }
        }
    }
}

/// Whether notebooks have data of this type in Base64.
fn is_base64(media_type: &str) -> bool {
    let is_binary = ["image/", "audio/", "video/"].iter().any(|start| media_type.starts_with(start));
    (is_binary && media_type != "image/svg+xml") || media_type == "application/pdf"
}
