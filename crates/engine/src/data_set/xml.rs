//! Writes XML with quick-xml, element by element, so that a document of any size takes little memory.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::data_set::transcript::printable;

pub(crate) struct XmlWriter<W: Write>(Writer<W>);

impl<W: Write> XmlWriter<W> {
    /// Starts a document in UTF-8.
    pub(crate) fn new(writer: W) -> io::Result<Self> {
        let mut writer = Writer::new_with_indent(writer, b' ', 1);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
        Ok(Self(writer))
    }

    pub(crate) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) -> io::Result<()> {
        self.0.write_event(Event::Start(start(name, attributes)))
    }

    pub(crate) fn close(&mut self, name: &str) -> io::Result<()> {
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }

    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) -> io::Result<()> {
        self.0.write_event(Event::Empty(start(name, attributes)))
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.open(name, &[])?;
        self.0.write_event(Event::Text(BytesText::new(&printable(text))))?;
        self.close(name)
    }

    pub(crate) fn finish(self) -> W {
        self.0.into_inner()
    }
}

fn start<'n>(name: &'n str, attributes: &[(&str, &str)]) -> BytesStart<'n> {
    let mut start = BytesStart::new(name);
    for (name, value) in attributes {
        start.push_attribute((*name, &*printable(value)));
    }
    start
}
