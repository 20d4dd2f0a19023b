//! Images of outputs: embedded as `data:` addresses, or for Markdown as files of their own.

use bcc_store::content_hash::hash;
use serde_json::{Map, Value};

/// The maximum size of an embedded image in markdown or HTML, as base64 in bytes: that of the largest picture that is kept unless the
/// project sets another limit. The `.ipynb` file contains all images.
pub(crate) const MAX_IMAGE_BYTES: usize = 24 * 1024 * 1024;

/// The number of hexadecimal digits of the hash in the name of a file: enough that two pictures have different names.
const NAME_DIGITS: usize = 32;

/// The image types that are shown.
const PICTURES: [&str; 3] = ["image/png", "image/jpeg", "image/gif"];

/// An image in the data of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// A `data:` address of safe characters only.
    Shown(String),
    /// An image that is too large or not valid base64: its type and its size in bytes.
    LeftOut(&'static str, usize),
}

/// The first image in `data`.
pub fn picture(data: &Map<String, Value>) -> Option<Picture> {
    let (mime, text) = PICTURES.iter().find_map(|mime| Some((*mime, data.get(*mime)?.as_str()?)))?;
    if text.len() > MAX_IMAGE_BYTES {
        return Some(Picture::LeftOut(mime, text.len()));
    }
    let base64: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    Some(match is_base64(&base64) {
        true => Picture::Shown(format!("data:{mime};base64,{base64}")),
        false => Picture::LeftOut(mime, text.len()),
    })
}

/// A picture as a file of its own, which Markdown refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFile {
    /// The hash of its base64, and the extension of its type.
    pub name: String,
    pub base64: String,
}

/// The first image in `data` as a file. It may have any size.
pub fn picture_file(data: &Map<String, Value>) -> Option<PictureFile> {
    let (mime, text) = PICTURES.iter().find_map(|mime| Some((*mime, data.get(*mime)?.as_str()?)))?;
    let base64: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let extension = match mime {
        "image/jpeg" => "jpg",
        other => other.strip_prefix("image/").unwrap_or("png"),
    };
    let name = format!("{}.{extension}", hash(&base64).get(..NAME_DIGITS).unwrap_or_default());
    is_base64(&base64).then_some(PictureFile { name, base64 })
}

/// Whether an address is an embedded image, as markdown may contain.
pub(crate) fn is_picture_address(address: &str) -> bool {
    address.len() <= MAX_IMAGE_BYTES
        && PICTURES.iter().any(|mime| {
            let data = address.strip_prefix("data:").and_then(|rest| rest.strip_prefix(mime));
            data.and_then(|rest| rest.strip_prefix(";base64,")).is_some_and(is_base64)
        })
}

/// The address of an SVG image (`image/svg+xml`). Browsers run no scripts in it and load nothing for it.
pub fn drawing(data: &Map<String, Value>) -> Option<String> {
    let svg = data.get("image/svg+xml")?.as_str().filter(|svg| svg.len() <= MAX_IMAGE_BYTES)?;
    let mut address = String::with_capacity(svg.len() * 2 + 32);
    address.push_str("data:image/svg+xml;charset=utf-8,");
    for byte in svg.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' => {
                address.push(char::from(byte))
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    Some(address)
}

/// Whether the text is base64 that can be decoded, padded or not.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let fits = match digits.len() % 4 {
        0 => padding == 0,
        2 => padding == 0 || padding == 2,
        3 => padding <= 1,
        _ => false,
    };
    !digits.is_empty() && fits && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn data(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn base64_may_lack_its_padding_but_no_digit() {
        for text in ["iVBORw==", "iVBORw", "iVBORw0=", "iVBORw0", "AB==", "AAAA"] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["", "====", "AAAAA", "AA=A", "AAAA==", "A B=", "AA="] {
            assert!(!is_base64(text), "{text}");
        }
    }

    #[test]
    fn only_base64_within_the_size_limit_is_a_picture() {
        let shown = picture(&data(json!({ "image/png": "iVBO\nRw==\n" })));
        assert_eq!(shown, Some(Picture::Shown("data:image/png;base64,iVBORw==".into())));
        let broken = picture(&data(json!({ "image/png": "\" onerror=\"x" })));
        assert_eq!(broken, Some(Picture::LeftOut("image/png", 12)));
        let large = "A".repeat(MAX_IMAGE_BYTES + 1);
        assert_eq!(
            picture(&data(json!({ "image/jpeg": large }))),
            Some(Picture::LeftOut("image/jpeg", MAX_IMAGE_BYTES + 1))
        );
        assert_eq!(picture(&data(json!({ "image/webp": "AA==", "image/gif": 7 }))), None);
        assert!(is_picture_address("data:image/png;base64,AAAA"));
        for other in
            ["data:image/svg+xml;base64,AAAA", "data:image/png;base64,A\"A", "data:text/html,x", "http://x/a.png"]
        {
            assert!(!is_picture_address(other), "{other}");
        }
    }

    #[test]
    fn a_drawing_becomes_an_address_without_quotes() {
        let address = drawing(&data(json!({ "image/svg+xml": "<svg a=\"中\">'</svg>" }))).unwrap();
        assert!(address.starts_with("data:image/svg+xml") && address.is_ascii());
        assert!(!address.contains(['"', '\'', '<', '>', ' ']), "{address}");
    }
}
