//! The hash by which texts are stored and referred to.

use sha2::{Digest, Sha256};

/// The SHA-256 of a text, in lower-case hexadecimal.
pub fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
