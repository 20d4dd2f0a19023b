//! The prompt of a terminal: line editing, history, a trailing `\` that continues the line.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::sync::mpsc;

use crate::cli::input::{InputLine, InputSource};
use crate::cli::lines::MOST_ANSWER_BYTES;

/// Reads answers from a person. The editor blocks, so it lives on a thread of its own; signals are heard meanwhile.
pub struct LineEditor {
    ask: Sender<()>,
    inputs: mpsc::Receiver<InputLine>,
    asked: bool,
    /// The terminal as it was before anything was edited on it.
    before: Option<Termios>,
}

/// How often, and how long each time, a line that is about to be edited is waited for before the terminal is put back.
const GLANCES: u32 = 50;
const GLANCE: Duration = Duration::from_millis(1);

/// Ends the marking of pastes, which the editor began.
const PASTES_UNMARKED: &[u8] = b"\x1b[?2004l";

impl LineEditor {
    /// An editor on the terminal. What is typed is kept in memory for this process only: conversations are private.
    pub fn new() -> Result<Self, ReadlineError> {
        let before = tcgetattr(std::io::stdin()).ok();
        let editor = DefaultEditor::new()?;
        let (ask, asked) = channel();
        let (send, inputs) = mpsc::channel(1);
        std::thread::spawn(move || serve(editor, &asked, &send));
        Ok(Self { ask, inputs, asked: false, before })
    }
}

impl Drop for LineEditor {
    /// A signal may end the process in the middle of a line. The thread that edits it blocks and dies with the process,
    /// so the terminal is put back here.
    fn drop(&mut self) {
        let Some(before) = self.before.as_ref().filter(|_| self.asked) else { return };
        // The thread may have been asked for a line a moment ago: what it is about to change must not be changed after.
        for _ in 0..GLANCES {
            match tcgetattr(std::io::stdin()) {
                Ok(now) if now.local_modes.contains(LocalModes::ICANON) => std::thread::sleep(GLANCE),
                _ => break,
            }
        }
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(PASTES_UNMARKED);
        let _ = output.flush();
    }
}

#[async_trait(?Send)]
impl InputSource for LineEditor {
    async fn next(&mut self) -> InputLine {
        if !self.asked {
            self.asked = true;
            if self.ask.send(()).is_err() {
                return InputLine::End;
            }
        }
        let input = self.inputs.recv().await.unwrap_or(InputLine::End);
        self.asked = false;
        input
    }
}

fn serve(mut editor: DefaultEditor, asked: &Receiver<()>, send: &mpsc::Sender<InputLine>) {
    while asked.recv().is_ok() {
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
            // Whatever else ends the terminal ends the talk; nothing is lost by it.
            Err(_) => return InputLine::End,
        }
    }
    if text.len() > MOST_ANSWER_BYTES {
        return InputLine::Unusable(msg!("an answer longer than {MOST_ANSWER_BYTES} bytes was not accepted"));
    }
    if text.trim().is_empty() {
        // An empty line at a prompt is a slip of the finger more often than an answer.
        return InputLine::Unusable(Message::default());
    }
    let _ = editor.add_history_entry(text.as_str());
    classify(text)
}

/// A line that begins with one slash is a command; two slashes are one slash of an answer.
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
    fn one_slash_is_a_command_and_two_are_words() {
        assert_eq!(classify("/vars".into()), InputLine::Command("vars".into()));
        assert_eq!(classify("/quit ".into()), InputLine::End);
        assert_eq!(classify("//etc".into()), InputLine::Answer { text: "/etc".into(), answer_id: None });
        assert_eq!(classify("小林".into()), InputLine::Answer { text: "小林".into(), answer_id: None });
    }
}
