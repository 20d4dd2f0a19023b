//! What the scripts in the HTML of an output are for.

use serde_json::{Map, Value};

/// The maximum size of a script that only loads another one, in bytes.
pub(crate) const MAX_LOADER_BYTES: usize = 64 * 1024;

/// How such scripts load another one, in lower case.
const LOADERS: [&str; 6] =
    ["createelement('script')", "createelement(\"script\")", "import(", "require(", "require.config", "importscripts("];

/// What the scripts of an output are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HtmlScripts {
    /// Whether one does something itself, and does not only load another one.
    pub(crate) draws: bool,
    /// Whether one is long enough to be a library.
    pub(crate) bring_library: bool,
    /// Whether one comes from elsewhere, or loads one.
    pub(crate) load_others: bool,
    /// Whether there is anything else, such as a place for the chart.
    has_elements: bool,
    /// Whether something is seen without the scripts.
    pub(crate) is_seen: bool,
}

impl HtmlScripts {
    /// The scripts of HTML; `None` if it has none.
    pub(crate) fn of(html: &str) -> Option<Self> {
        let html = html.to_ascii_lowercase();
        let mut parts = html.split("<script");
        let mut found = Self::default();
        found.look_at_elements(parts.next().unwrap_or_default());
        let mut parts = parts.peekable();
        parts.peek()?;
        for part in parts {
            let (tag, rest) = part.split_once('>').unwrap_or((part, ""));
            let (body, after) = rest.split_once("</script").unwrap_or((rest, ""));
            found.look_at_elements(after.split_once('>').map_or("", |(_, elements)| elements));
            let tag: String = tag.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            let body = body.trim_start();
            // A library has such words too; a loader is short.
            let is_library = body.len() > MAX_LOADER_BYTES;
            let loads = !is_library && LOADERS.iter().any(|loader| body.contains(loader));
            let loads = loads || tag.contains("src=") || body.starts_with("import ") || body.starts_with("require");
            found.bring_library |= is_library;
            found.load_others |= loads;
            found.draws |= !loads && !body.is_empty();
        }
        Some(found)
    }

    /// The text between scripts.
    fn look_at_elements(&mut self, part: &str) {
        self.has_elements |= !part.trim().is_empty();
        let text = part.split('<').enumerate().map(|(at, piece)| match at {
            0 => piece,
            _ => piece.split_once('>').map_or("", |(_, text)| text),
        });
        self.is_seen |= text.into_iter().any(|text| !text.trim().is_empty())
            || ["<img", "<svg", "<table"].iter().any(|element| part.contains(element));
    }

    /// Whether it only brings what later outputs need.
    pub(crate) const fn is_library(self) -> bool {
        self.bring_library && !self.load_others && !self.has_elements
    }
}

/// A library for charts, if an output is nothing else.
pub(crate) fn library(output: &Value) -> Option<&str> {
    let data = output.get("data")?.as_object().filter(|data| data.len() == 1)?;
    let html = data.get("text/html")?.as_str().filter(|html| html.len() > MAX_LOADER_BYTES)?;
    HtmlScripts::of(html)?.is_library().then_some(html)
}

/// Whether an output that is HTML and has no text shows nothing without its scripts.
pub(crate) fn needs_scripts(data: &Map<String, Value>) -> Option<HtmlScripts> {
    let html = data.get("text/html")?.as_str().filter(|_| !data.contains_key("text/plain"))?;
    HtmlScripts::of(html).filter(|scripts| !scripts.is_seen)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_seen_without_scripts_is_known() {
        for (html, is_seen) in [
            ("<div id=\"c\"></div><script>draw()</script>", false),
            ("<style></style><script>x</script> \n", false),
            ("<p>Loading</p><script>draw()</script>", true),
            ("<script>draw()</script><table></table>", true),
            ("<script>1<2</script", false),
        ] {
            assert_eq!(HtmlScripts::of(html).unwrap().is_seen, is_seen, "{html}");
        }
        assert_eq!(HtmlScripts::of("<table></table>"), None);
    }

    #[test]
    fn an_output_that_only_brings_a_library_is_found() {
        let script = format!("<script>{}</script>", "x();".repeat(MAX_LOADER_BYTES));
        let output = |data| json!({ "output_type": "display_data", "data": data, "metadata": {} });
        assert_eq!(library(&output(json!({ "text/html": script }))), Some(script.as_str()));
        for data in [
            json!({ "text/html": script, "text/plain": "Figure" }),
            json!({ "text/html": format!("<div></div>{script}") }),
            json!({ "text/html": "<script>draw()</script>" }),
            json!({ "image/png": script }),
        ] {
            assert_eq!(library(&output(data)), None);
        }
    }
}
