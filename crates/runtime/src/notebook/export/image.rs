//! Images of outputs as addresses that hold them: no form of a notebook has files beside it.

use serde_json::{Map, Value};

/// The most bytes of an image, as base64, that stands in markdown or HTML. The `.ipynb` has all of them.
pub const MOST_IMAGE_BYTES: usize = 8 * 1024 * 1024;

/// The types of pictures that are shown.
const PICTURES: [&str; 3] = ["image/png", "image/jpeg", "image/gif"];

/// A picture among the data of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// A `data:` address of nothing but safe characters.
    Shown(String),
    /// One that is too large, or no base64: its type, and how many bytes it has.
    LeftOut(&'static str, usize),
}

/// The first picture in `data`.
pub fn picture(data: &Map<String, Value>) -> Option<Picture> {
    let (mime, text) = PICTURES.iter().find_map(|mime| Some((*mime, data.get(*mime)?.as_str()?)))?;
    if text.len() > MOST_IMAGE_BYTES {
        return Some(Picture::LeftOut(mime, text.len()));
    }
    let base64: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    Some(match is_base64(&base64) {
        true => Picture::Shown(format!("data:{mime};base64,{base64}")),
        false => Picture::LeftOut(mime, text.len()),
    })
}

/// Whether an address is itself a picture, as markdown may have one.
pub fn is_picture_address(address: &str) -> bool {
    address.len() <= MOST_IMAGE_BYTES
        && PICTURES.iter().any(|mime| {
            let data = address.strip_prefix("data:").and_then(|rest| rest.strip_prefix(mime));
            data.and_then(|rest| rest.strip_prefix(";base64,")).is_some_and(is_base64)
        })
}

/// The address of a drawing (`image/svg+xml`). As an image, a browser runs nothing of it and loads nothing for it.
pub fn drawing(data: &Map<String, Value>) -> Option<String> {
    let svg = data.get("image/svg+xml")?.as_str().filter(|svg| svg.len() <= MOST_IMAGE_BYTES)?;
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

fn is_base64(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn data(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn only_base64_of_a_size_that_a_page_may_have_is_a_picture() {
        let shown = picture(&data(json!({ "image/png": "iVBO\nRw==\n" })));
        assert_eq!(shown, Some(Picture::Shown("data:image/png;base64,iVBORw==".into())));
        let broken = picture(&data(json!({ "image/png": "\" onerror=\"x" })));
        assert_eq!(broken, Some(Picture::LeftOut("image/png", 12)));
        let large = "A".repeat(MOST_IMAGE_BYTES + 1);
        assert_eq!(
            picture(&data(json!({ "image/jpeg": large }))),
            Some(Picture::LeftOut("image/jpeg", MOST_IMAGE_BYTES + 1))
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
