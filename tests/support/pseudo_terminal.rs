//! Runs the program in a pseudo-terminal, to test its input and output.

use std::io::{Read, Write};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Termios, tcgetattr};

use crate::process::{Home, POLL_INTERVAL, TIMEOUT, wait};

pub const CTRL_C: &str = "\u{3}";
pub const CTRL_D: &str = "\u{4}";
pub const BACKSPACE: &str = "\u{7f}";
pub const LEFT: &str = "\u{1b}[D";
pub const UP: &str = "\u{1b}[A";
pub const HOME: &str = "\u{1b}[H";

/// The maximum time to read the last output of a program that has exited, on a busy machine.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Terminal {
    pty: Arc<Pty>,
    /// The program's end. Held open, so that the kernel does not reset the terminal when the program closes it.
    pts: Pts,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    /// The length of the output that the test has read.
    consumed: usize,
    before: Termios,
}

impl Terminal {
    /// Starts the program with these arguments. The output has colors only with `colors`.
    pub fn start(home: &Home, arguments: &[&str], colors: bool) -> Self {
        Self::start_as(home, arguments, colors, "xterm-256color")
    }

    /// Starts the program in a terminal with this name.
    pub fn start_as(home: &Home, arguments: &[&str], colors: bool, term: &str) -> Self {
        let mut variables = vec![("TERM", term.to_owned())];
        if !colors {
            variables.push(("NO_COLOR", "1".to_owned()));
        }
        Self::start_with(home, arguments, &variables)
    }

    /// Starts the program with these environment variables in addition to the usual ones.
    pub fn start_with(home: &Home, arguments: &[&str], more: &[(&'static str, String)]) -> Self {
        Self::start_program(home, env!("CARGO_BIN_EXE_bcc-script"), arguments, more)
    }

    /// Starts another program, such as a shell, as [`Terminal::start_with`] starts this one.
    pub fn start_program(home: &Home, program: &str, arguments: &[&str], more: &[(&'static str, String)]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(40, 100)).unwrap();
        let before = tcgetattr(&pts).unwrap();
        let mut variables = home.variables();
        variables.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let mut command = Command::new(program).args(arguments).env_clear().envs(variables).current_dir(home.path());
        let child = command.spawn_borrowed(&pts).unwrap();
        let pty = Arc::new(pty);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (from, to) = (Arc::clone(&pty), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = (&*from).read(&mut buffer) {
                to.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self { pty, pts, child, shown, consumed: 0, before }
    }

    /// Types keys without Enter.
    pub fn types(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the prompt, then types a line and Enter.
    pub fn answers(&mut self, line: &str) {
        self.prompt();
        self.types(&format!("{line}\r"));
    }

    /// Waits for the prompt. The line editor reads input by then.
    pub fn prompt(&mut self) {
        self.until("> ");
    }

    /// Waits until `text` is shown after the output that was read before. Returns the output up to its end.
    pub fn until(&mut self, text: &str) -> String {
        let mut deadline = Instant::now() + TIMEOUT;
        let mut exited = false;
        loop {
            {
                let shown = self.shown.lock().unwrap();
                let new = &shown[self.consumed..];
                if let Some(at) = new.windows(text.len()).position(|part| part == text.as_bytes()) {
                    let end = at + text.len();
                    self.consumed += end;
                    return String::from_utf8_lossy(&new[..end]).into_owned();
                }
                assert!(
                    Instant::now() < deadline,
                    "`{text}` is not shown; after what was looked at: {:?}",
                    String::from_utf8_lossy(new)
                );
            }
            if !exited && self.child.try_wait().unwrap().is_some() {
                // All of its output is in the terminal by now, but may not be read yet.
                exited = true;
                deadline = Instant::now() + DRAIN_TIMEOUT;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    pub fn all_output(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Whether the terminal itself echoes characters and edits lines, as a shell needs it.
    pub fn is_cooked(&self) -> bool {
        let now = tcgetattr(&self.pts).unwrap();
        now.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the end of the program, which must restore the terminal. Returns the exit code.
    pub fn end(&mut self) -> Option<i32> {
        let status = wait(&mut self.child);
        let now = tcgetattr(&self.pts).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes, "the terminal is not as it was: {now:?}");
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        // Bracketed paste is switched off, too; that output may not be read yet.
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let shown = self.all_output();
            if shown.rfind("\u{1b}[?2004h") <= shown.rfind("\u{1b}[?2004l") {
                break;
            }
            assert!(Instant::now() < deadline, "pastes stay marked: {shown:?}");
            std::thread::sleep(POLL_INTERVAL);
        }
        status.code()
    }

    /// The printed command for resuming, without the name of the program.
    pub fn resume_command(&mut self) -> Vec<String> {
        self.until("Resume with: bcc-script ");
        let line = self.until("\n");
        line.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
