//! Charts: HTML outputs that scripts draw, in frames that may run them.

use bcc_lang::source::render::html::escape;

use crate::notebook::export::scripts::HtmlScripts;

/// The prefix of HTML that may run its scripts.
const FRAME: &str = "<!DOCTYPE html><meta charset=\"utf-8\"><script>for(const name of ['RTCPeerConnection','webkitRTCPeerConnection'])\
delete globalThis[name]</script><style>:root{color-scheme:light dark}body{margin:0;font:14px/1.5 system-ui,sans-serif}</style>";

/// The script of the page: it gives each chart that needs one the libraries that are in the page once.
const PAGE_SCRIPT: &str = "<script>const libraries=document.querySelector('pre.library').textContent;\
for(const c of document.querySelectorAll('iframe[data-chart]'))c.srcdoc=libraries+c.dataset.chart</script>\n";

/// The maximum size of an HTML output that may run its scripts, in bytes. The library of a chart alone has about 5 MiB.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The maximum number of libraries in a page.
const MAX_LIBRARIES: usize = 8;

/// What a page shows of an output with scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownChart {
    Frame(String),
    /// Nothing: it is a library for other charts.
    Library,
    /// It would be shown if the page ran scripts.
    NotRunning,
    /// It needs a script that is not here.
    NotHere,
}

/// The charts of a page so far.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    /// Whether the page runs their scripts. Otherwise libraries are only counted.
    runs_scripts: bool,
    libraries: Vec<String>,
    use_libraries: bool,
}

impl Charts {
    pub(crate) const fn new(runs_scripts: bool, libraries: Vec<String>) -> Self {
        Self { runs_scripts, libraries, use_libraries: false }
    }

    /// What is shown of HTML with these scripts.
    ///
    /// A frame has an origin of its own: scripts reach neither the page nor other frames, and the policy of the page lets them load
    /// nothing. No policy covers WebRTC, so its usual way is taken from them as well; a script that is meant to send what it has can
    /// still find one.
    pub(crate) fn show(&mut self, html: &str, scripts: HtmlScripts) -> ShownChart {
        if html.len() > MAX_BYTES {
            return ShownChart::NotHere;
        }
        if scripts.is_library() {
            if self.libraries.len() < MAX_LIBRARIES {
                self.libraries.push(if self.runs_scripts { html.to_owned() } else { String::new() });
            }
            return ShownChart::Library;
        }
        let uses_library = !self.libraries.is_empty() && scripts.draws && !scripts.bring_library;
        if !uses_library && !(scripts.draws && (scripts.bring_library || !scripts.load_others)) {
            return ShownChart::NotHere;
        }
        if !self.runs_scripts {
            return ShownChart::NotRunning;
        }
        self.use_libraries |= uses_library;
        let (attribute, prefix) = if uses_library { ("data-chart", "") } else { ("srcdoc", FRAME) };
        ShownChart::Frame(format!(
            "<iframe class=\"html chart\" sandbox=\"allow-scripts\" style=\"height:34em\" {attribute}=\"{}\"></iframe>\n",
            escape(&format!("{prefix}{html}"))
        ))
    }

    /// What the page ends with: the libraries, if a chart needs them.
    pub(crate) fn tail(&self) -> String {
        if !self.use_libraries {
            return String::new();
        }
        let libraries = escape(&format!("{FRAME}{}", self.libraries.concat()));
        format!("<pre class=\"library\" hidden>{libraries}</pre>\n{PAGE_SCRIPT}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::export::scripts::MAX_LOADER_BYTES;

    fn library() -> String {
        format!("<script>{}createElement('script')</script>", "x();".repeat(MAX_LOADER_BYTES))
    }

    fn shown(charts: &mut Charts, html: &str) -> ShownChart {
        charts.show(html, HtmlScripts::of(html).unwrap())
    }

    #[test]
    fn only_html_that_brings_its_scripts_runs_alone() {
        let chart = format!("<div></div>{}", library());
        let with_formulas = format!("{chart}<script src=\"https://cdn.example/math.js\"></script>");
        for html in [
            "<div></div><script>draw(1)</script>",
            chart.as_str(),
            with_formulas.as_str(),
            "<script type=module>draw()</script>",
        ] {
            let ShownChart::Frame(frame) = shown(&mut Charts::new(true, vec![]), html) else { panic!("{html}") };
            assert!(frame.contains(" srcdoc="), "{}", html.get(..40).unwrap_or(html));
            assert_eq!(shown(&mut Charts::new(false, vec![]), html), ShownChart::NotRunning);
        }
        for html in [
            "<script src=\"https://cdn.example/x.js\"></script>",
            "<script>import x from 'https://cdn.example/x.js'</script>",
            "<script src = 'x.js'></script><script>draw()</script>",
            "<script>require(['plotly'], draw)</script>",
            "<script>var s = document.createElement('script'); s.src = \"https://cdn.example\"</script>",
        ] {
            assert_eq!(shown(&mut Charts::new(true, vec![]), html), ShownChart::NotHere, "{html}");
        }
    }

    #[test]
    fn a_library_is_in_the_page_once_for_all_charts_after_it() {
        let mut charts = Charts::new(true, vec![]);
        let chart = "<div><script src=\"https://cdn.example/math.js\"></script><script>draw()</script></div>";
        assert_eq!(shown(&mut charts, chart), ShownChart::NotHere, "what it draws with is not here");
        assert_eq!(shown(&mut charts, &library()), ShownChart::Library);
        assert_eq!(charts.tail(), "", "no chart needs it");
        for _ in 0..3 {
            let ShownChart::Frame(frame) = shown(&mut charts, chart) else { panic!("{chart}") };
            assert!(frame.contains(" data-chart=") && frame.contains("sandbox=\"allow-scripts\""), "{frame}");
            assert!(!frame.contains("x();"));
        }
        assert_eq!(shown(&mut charts, "<script src=x></script>"), ShownChart::NotHere);
        let tail = charts.tail();
        assert!(tail.starts_with("<pre class=\"library\" hidden>") && tail.contains("RTCPeerConnection"));
        assert!(tail.ends_with(PAGE_SCRIPT) && tail.matches("<pre class=\"library\"").count() == 1);
        for _ in 0..2 * MAX_LIBRARIES {
            assert_eq!(shown(&mut charts, &library()), ShownChart::Library);
        }
        assert_eq!(charts.libraries.len(), MAX_LIBRARIES);
        let mut still = Charts::new(false, vec![String::new()]);
        assert_eq!(shown(&mut still, chart), ShownChart::NotRunning);
        assert_eq!(still.tail(), "");
    }
}
