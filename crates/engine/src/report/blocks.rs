//! The parts of a readable report, which each format writes. All texts are plain: a format escapes them.

#[derive(Clone, Debug)]
pub enum ReportBlock {
    /// The title of the document.
    Title(String),
    Heading(String),
    Subheading(String),
    Paragraph(String),
    /// Labels with values.
    Facts(Vec<(String, String)>),
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// What somebody said: the speaker, the time and the text with its lines.
    Quote {
        speaker: String,
        time: String,
        text: String,
    },
    /// Lines as they are, in a language that programs know.
    Code {
        language: &'static str,
        text: String,
    },
}
