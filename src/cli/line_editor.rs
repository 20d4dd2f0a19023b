//! The prompt of a terminal: line editing, history, and a trailing `\` that continues the line.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::sync::mpsc;

use crate::cli::async_runtime::start_thread;
use crate::cli::input::{InputLine, InputSource};
use crate::cli::lines::{MAX_ANSWER_BYTES, too_long};

/// Reads answers from a person. The editor blocks, so it runs on its own thread, and signals are handled meanwhile.
pub struct LineEditor {
    ask: Sender<()>,
    inputs: mpsc::Receiver<InputLine>,
    requested: bool,
    /// The original settings of the terminal.
    original: Option<Termios>,
}

/// The number and the interval of the checks whether the editor has started a line, before the terminal is restored.
const CHECKS: u32 = 50;
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Turns off bracketed paste, which the editor turned on.
const DISABLE_BRACKETED_PASTE: &[u8] = b"\x1b[?2004l";

impl LineEditor {
    /// Creates an editor; `None` if the terminal cannot be used, or no thread can be started. Its history stays in memory,
    /// because conversations are private.
    pub fn new() -> Option<Self> {
        let original = tcgetattr(std::io::stdin()).ok();
        let editor = DefaultEditor::new().ok()?;
        let (ask, requests) = channel();
        let (send, inputs) = mpsc::channel(1);
        start_thread("editor", move || serve(editor, &requests, &send)).ok()?;
        Some(Self { ask, inputs, requested: false, original })
    }
}

impl Drop for LineEditor {
    /// Restores the terminal. A signal can end the process while a line is edited, and the blocked editor thread cannot do it.
    fn drop(&mut self) {
        let Some(original) = self.original.as_ref().filter(|_| self.requested) else { return };
        // The thread may just be starting a line: wait until it has changed the settings, so that it does not change them later.
        for _ in 0..CHECKS {
            match tcgetattr(std::io::stdin()) {
                Ok(now) if now.local_modes.contains(LocalModes::ICANON) => std::thread::sleep(CHECK_INTERVAL),
                _ => break,
            }
        }
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, original);
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(DISABLE_BRACKETED_PASTE);
        let _ = output.flush();
    }
}

#[async_trait(?Send)]
impl InputSource for LineEditor {
    async fn next(&mut self) -> InputLine {
        if !self.requested {
            self.requested = true;
            if self.ask.send(()).is_err() {
                return InputLine::End;
            }
        }
        let input = self.inputs.recv().await.unwrap_or(InputLine::End);
        self.requested = false;
        input
    }
}

fn serve(mut editor: DefaultEditor, requests: &Receiver<()>, send: &mpsc::Sender<InputLine>) {
    while requests.recv().is_ok() {
        let input = read(&mut editor);
        if send.blocking_send(input).is_err() {
            return;
        }
    }
}

fn read(editor: &mut DefaultEditor) -> InputLine {
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "> " } else { "… " };
        match editor.readline(prompt) {
            Ok(line) => match line.strip_suffix('\\') {
                Some(continued) => {
                    text.push_str(continued);
                    text.push('\n');
                }
                None => {
                    text.push_str(&line);
                    break;
                }
            },
            Err(ReadlineError::Interrupted) => return InputLine::Interrupted,
            // Any other error of the terminal ends the input; the session can be resumed.
            Err(_) => return InputLine::End,
        }
    }
    if text.len() > MAX_ANSWER_BYTES {
        return InputLine::Rejected(too_long());
    }
    if text.trim().is_empty() {
        // An empty line is more likely a mistake than an answer.
        return InputLine::Blank;
    }
    let _ = editor.add_history_entry(text.as_str());
    classify(text)
}

/// A line that starts with a slash is a command; two slashes are an answer that starts with one slash.
fn classify(text: String) -> InputLine {
    match text.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => InputLine::Answer { text: rest.to_owned(), answer_id: None },
        Some(command) => match command.trim() {
            "quit" | "exit" => InputLine::End,
            command => InputLine::Command(command.to_owned()),
        },
        None => InputLine::Answer { text, answer_id: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slash_is_a_command_and_two_are_an_answer() {
        assert_eq!(classify("/vars".into()), InputLine::Command("vars".into()));
        assert_eq!(classify("/quit ".into()), InputLine::End);
        assert_eq!(classify("//etc".into()), InputLine::Answer { text: "/etc".into(), answer_id: None });
        assert_eq!(classify("小林".into()), InputLine::Answer { text: "小林".into(), answer_id: None });
    }
}
