//! XML, as far as a report needs it: elements, attributes and text, with all that authors, persons and models may write in
//! them. Forty lines that cannot write anything but well-formed XML 1.0 stand here in the place of a library.

use std::fmt::Write;

/// A document while it is written: what is opened is closed.
#[derive(Debug, Default)]
pub struct Xml {
    text: String,
    open: Vec<&'static str>,
}

impl Xml {
    /// A document without an element yet.
    pub fn new() -> Self {
        Self { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), open: vec![] }
    }

    /// Opens an element.
    pub fn open(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.start(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    /// Closes the innermost element.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&"  ".repeat(self.open.len()));
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    /// An element of nothing but text; an empty one without any.
    pub fn leaf(&mut self, name: &'static str, attributes: &[(&str, &str)], text: &str) {
        self.start(name, attributes);
        if text.is_empty() {
            self.text.push_str("/>\n");
        } else {
            self.text.push('>');
            escape(text, false, &mut self.text);
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    /// The whole document.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn start(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push('<');
        self.text.push_str(name);
        for (attribute, value) in attributes {
            let _ = write!(self.text, " {attribute}=\"");
            escape(value, true, &mut self.text);
            self.text.push('"');
        }
    }
}

/// Text with everything escaped that XML would read as its own: `>` too, so that no `]]>` is left. What XML 1.0 cannot hold at
/// all becomes a visible character. A reader gives back every other character as it was.
fn escape(text: &str, attribute: bool, to: &mut String) {
    for c in text.chars() {
        match c {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' if attribute => to.push_str("&quot;"),
            // A parser makes spaces of the first two in an attribute, and a line feed of the third anywhere.
            '\n' if attribute => to.push_str("&#10;"),
            '\t' if attribute => to.push_str("&#9;"),
            '\r' => to.push_str("&#13;"),
            '\n' | '\t' => to.push(c),
            // The pictures of control characters stand in their order.
            '\0'..='\u{1f}' => to.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => to.push('\u{fffd}'),
            other => to.push(other),
        }
    }
}
