//! How much of the outputs of code is kept (docs/kernel.md, "What is kept of outputs").

/// The limits on outputs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// The text of one cell: what it prints, and plain texts of its results.
    pub text: u64,
    /// One picture, table or other displayed data of one type. Of base64, the bytes that it stands for.
    pub display: u64,
    /// The large outputs of a session, together. The same output counts once.
    pub session: u64,
}

const TEXT_NOTE_START: &str = "[bcc-script left out text, ";
const TEXT_NOTE_END: &str = ": `max_text` of `[kernel]` in bcc-script.toml sets the limit]";

impl Default for OutputLimits {
    fn default() -> Self {
        Self { text: 1 << 20, display: 16 << 20, session: 1 << 30 }
    }
}

impl OutputLimits {
    /// The maximum size of a message of a kernel: an output that is kept fits, with the rest of its message.
    pub fn message_bytes(&self) -> u64 {
        let base64 = self.display.div_ceil(3).saturating_mul(4);
        self.text.max(base64).saturating_add(4 << 20)
    }

    /// [`OutputLimits::message_bytes`] as a size in memory.
    pub fn max_message_bytes(&self) -> usize {
        usize::try_from(self.message_bytes()).unwrap_or(usize::MAX)
    }

    /// The note after a text that is larger than `max_text`: how much of it was left out.
    pub fn text_note(left_out: u64, all: u64) -> String {
        format!("{TEXT_NOTE_START}{left_out} of {all} bytes{TEXT_NOTE_END}")
    }

    /// How large a text was before [`OutputLimits::text_note`] took the place of its end; `None` if it has no such note.
    pub fn bytes_before_text_note(text: &str) -> Option<u64> {
        let note = text.trim_end().lines().next_back()?.strip_prefix(TEXT_NOTE_START)?.strip_suffix(TEXT_NOTE_END)?;
        let (left_out, all) = note.strip_suffix(" bytes")?.split_once(" of ")?;
        left_out.parse::<u64>().ok()?;
        all.parse().ok()
    }

    /// The note in place of an output that is larger than the limit of the project with this name.
    pub fn note(what: &str, bytes: u64, setting: &str) -> String {
        format!(
            "[bcc-script left out {what}, {bytes} bytes: `{setting}` of `[kernel]` in bcc-script.toml sets the limit]"
        )
    }
}
