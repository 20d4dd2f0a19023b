//! The formats of notebook files and their writers: a head, each cell in order, a tail. Only the headings for the table of
//! contents are stored, so a long notebook needs no second copy in memory.

use std::path::Path;

use crate::notebook::cell::Cell;
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::export::html::page::HtmlPage;
use crate::notebook::export::image::PictureFile;
use crate::notebook::export::ipynb::Ipynb;
use crate::notebook::export::markdown::Markdown;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// nbformat 4.5, for Jupyter.
    Ipynb,
    Markdown,
    /// One HTML page.
    Html,
}

impl ExportForm {
    /// The format for the extension of a file: `.ipynb`, `.md` or `.html`.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "ipynb" => Some(Self::Ipynb),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

/// Writes one notebook: call [`Writer::head`], [`Writer::cell`] for each cell in order, and [`Writer::tail`]. The concatenated
/// results are the file.
pub struct Writer {
    brief: NotebookMetadata,
    kind: Kind,
}

enum Kind {
    Ipynb(Ipynb),
    Markdown(Markdown),
    Html(HtmlPage),
}

impl Writer {
    /// `libraries` are those of the notebook for charts on a page; if that runs no scripts, their texts may be empty.
    pub fn new(form: ExportForm, brief: NotebookMetadata, libraries: Vec<String>) -> Self {
        let kind = match form {
            ExportForm::Ipynb => Kind::Ipynb(Ipynb::default()),
            ExportForm::Markdown => Kind::Markdown(Markdown::default()),
            ExportForm::Html => Kind::Html(HtmlPage::new(brief.runs_scripts, libraries)),
        };
        Self { brief, kind }
    }

    /// The text before the cells.
    pub fn head(&self) -> String {
        match &self.kind {
            Kind::Ipynb(ipynb) => ipynb.head(),
            Kind::Markdown(markdown) => markdown.head(&self.brief),
            Kind::Html(page) => page.head(&self.brief),
        }
    }

    /// The text of the next cell.
    pub fn cell(&mut self, cell: &Cell) -> String {
        match &mut self.kind {
            Kind::Ipynb(ipynb) => ipynb.cell(cell, &self.brief),
            Kind::Markdown(markdown) => markdown.cell(cell, &self.brief),
            Kind::Html(page) => page.cell(cell, &self.brief),
        }
    }

    /// The pictures of the cells since the last call that the text refers to as files.
    pub fn pictures(&mut self) -> Vec<PictureFile> {
        match &mut self.kind {
            Kind::Markdown(markdown) => std::mem::take(&mut markdown.pictures),
            Kind::Ipynb(_) | Kind::Html(_) => vec![],
        }
    }

    /// The text after the cells.
    pub fn tail(self) -> String {
        match self.kind {
            Kind::Ipynb(ipynb) => ipynb.tail(&self.brief),
            Kind::Markdown(markdown) => markdown.tail(),
            Kind::Html(page) => page.tail(&self.brief),
        }
    }
}
