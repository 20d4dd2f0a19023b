//! The hash by which texts are stored and referred to.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The SHA-256 of a text, in lower-case hexadecimal.
pub fn hash(text: &str) -> String {
    hash_of_bytes(text.as_bytes())
}

/// The SHA-256 of bytes, in lower-case hexadecimal.
pub fn hash_of_bytes(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let mut digits = String::with_capacity(2 * digest.len());
    for byte in digest {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
