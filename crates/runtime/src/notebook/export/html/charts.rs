//! Charts: HTML outputs that scripts draw, in frames that may run them.

use bcc_lang::source::render::html::escape;

/// The prefix of HTML that may run its scripts.
const FRAME: &str = "<!DOCTYPE html><meta charset=\"utf-8\"><script>for(const name of ['RTCPeerConnection','webkitRTCPeerConnection'])\
delete globalThis[name]</script><style>:root{color-scheme:light dark}body{margin:0;font:14px/1.5 system-ui,sans-serif}</style>";

/// The script of the page: it gives each chart that needs one the libraries that are in the page once.
const PAGE_SCRIPT: &str = "<script>const libraries=Array.from(document.querySelectorAll('pre.library'),l=>l.textContent).join('');\
for(const c of document.querySelectorAll('iframe[data-chart]'))c.srcdoc=libraries+c.dataset.chart</script>\n";

/// The maximum size of an HTML output that may run its scripts, in bytes. The library of a chart alone has about 5 MiB.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The maximum size of a script that only loads another one, in bytes.
const MAX_LOADER_BYTES: usize = 64 * 1024;

/// The maximum number of libraries in a page.
const MAX_LIBRARIES: usize = 8;

/// How such scripts load another one, in lower case.
const LOADERS: [&str; 6] =
    ["createelement('script')", "createelement(\"script\")", "import(", "require(", "require.config", "importscripts("];

/// The charts of a page so far.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    libraries: usize,
    use_libraries: bool,
}

impl Charts {
    /// An output as a frame that runs its scripts, or as a library for the charts after it; `None` if it has no scripts, or they need
    /// what is not here.
    ///
    /// The frame has an origin of its own: scripts reach neither the page nor other frames, and the policy of the page lets them load
    /// nothing. No policy covers WebRTC, so its usual way is taken from them as well; a script that is meant to send what it has can
    /// still find one.
    pub(crate) fn html(&mut self, html: &str) -> Option<String> {
        if html.len() > MAX_BYTES {
            return None;
        }
        let scripts = Scripts::of(html);
        if scripts.is_library() {
            if self.libraries == MAX_LIBRARIES {
                return Some(String::new());
            }
            let prefix = if self.libraries == 0 { FRAME } else { "" };
            self.libraries += 1;
            return Some(format!("<pre class=\"library\" hidden>{}</pre>\n", escape(&format!("{prefix}{html}"))));
        }
        let (attribute, prefix) = match self.libraries > 0 && scripts.draws && !scripts.bring_library {
            true => {
                self.use_libraries = true;
                ("data-chart", "")
            }
            false if scripts.draws && !scripts.load_others => ("srcdoc", FRAME),
            false => return None,
        };
        Some(format!(
            "<iframe class=\"html chart\" sandbox=\"allow-scripts\" style=\"height:34em\" {attribute}=\"{}\"></iframe>\n",
            escape(&format!("{prefix}{html}"))
        ))
    }

    /// What the page ends with.
    pub(crate) const fn tail(&self) -> &'static str {
        if self.use_libraries { PAGE_SCRIPT } else { "" }
    }
}

/// What the scripts of an output are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scripts {
    /// Whether one does something itself, and does not only load another one.
    draws: bool,
    /// Whether one is long enough to be a library.
    bring_library: bool,
    /// Whether one comes from elsewhere, or loads one.
    load_others: bool,
    /// Whether there is anything else, such as a place for the chart.
    has_elements: bool,
    /// Whether something is seen without the scripts.
    is_seen: bool,
}

impl Scripts {
    pub(crate) fn of(html: &str) -> Self {
        let html = html.to_ascii_lowercase();
        let mut parts = html.split("<script");
        let mut found = Self::default();
        found.look_at_elements(parts.next().unwrap_or_default());
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
        found
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

    /// Whether something is seen although no script runs.
    pub(crate) const fn is_seen_without_running(self) -> bool {
        self.is_seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> String {
        format!("<script>{}createElement('script')</script>", "x();".repeat(MAX_LOADER_BYTES))
    }

    #[test]
    fn only_html_that_brings_its_scripts_runs_alone() {
        let chart = format!("<div></div>{}", library());
        for html in ["<div></div><script>draw(1)</script>", chart.as_str(), "<script type=module>draw()</script>"] {
            let shown = Charts::default().html(html).unwrap();
            assert!(shown.contains(" srcdoc="), "{}", html.get(..40).unwrap_or(html));
        }
        for html in [
            "<table></table>",
            "<script src=\"https://cdn.example/x.js\"></script>",
            "<script>import x from 'https://cdn.example/x.js'</script>",
            "<script src = 'x.js'></script><script>draw()</script>",
            "<script>require(['plotly'], draw)</script>",
            "<script>var s = document.createElement('script'); s.src = \"https://cdn.example\"</script>",
        ] {
            assert_eq!(Charts::default().html(html), None, "{html}");
        }
    }

    #[test]
    fn a_library_is_in_the_page_once_for_all_charts_after_it() {
        let mut charts = Charts::default();
        let chart = "<div><script src=\"https://cdn.example/math.js\"></script><script>draw()</script></div>";
        assert_eq!(charts.html(chart), None, "what it draws with is not here");
        assert_eq!(charts.tail(), "");
        let hidden = charts.html(&library()).unwrap();
        assert!(hidden.starts_with("<pre class=\"library\" hidden>") && hidden.contains("RTCPeerConnection"));
        for _ in 0..3 {
            let shown = charts.html(chart).unwrap();
            assert!(shown.contains(" data-chart=") && shown.contains("sandbox=\"allow-scripts\""), "{shown}");
            assert!(!shown.contains("x();"));
        }
        assert_eq!(charts.html("<script src=x></script>"), None);
        assert_eq!(charts.tail(), PAGE_SCRIPT);
        for _ in 1..MAX_LIBRARIES {
            assert!(!charts.html(&library()).unwrap().is_empty());
        }
        assert_eq!(charts.html(&library()).unwrap(), "");
    }

    #[test]
    fn what_is_seen_without_scripts_is_known() {
        for (html, is_seen) in [
            ("<div id=\"c\"></div><script>draw()</script>", false),
            ("<style></style><script>x</script> \n", false),
            ("<p>Loading</p><script>draw()</script>", true),
            ("<script>draw()</script><table></table>", true),
            ("<script>1<2</script", false),
        ] {
            assert_eq!(Scripts::of(html).is_seen_without_running(), is_seen, "{html}");
        }
    }
}
