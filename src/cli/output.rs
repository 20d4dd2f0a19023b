//! Writes a session to standard output and keeps the first failure: no further answer is taken for a reader that has left, or from a
//! person who cannot see the question.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use crate::cli::progress;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::Notify;

/// The first failure of this process.
static FAILURE: OnceLock<Message> = OnceLock::new();

/// Notified at the first failure.
static FAILED: Notify = Notify::const_new();

/// Writes `text` at once. After a failure, nothing more is written.
pub fn write(text: &str) {
    if FAILURE.get().is_some() {
        return;
    }
    if let Err(error) = write_bytes(text.as_bytes()) {
        fail(&error);
    }
}

/// Writes all bytes at once, also to an output that another process has set to non-blocking.
pub fn write_bytes(bytes: &[u8]) -> io::Result<()> {
    progress::suspended(|| {
        let mut output = io::stdout().lock();
        output.flush()?;
        write_all(output.as_fd(), bytes)
    })
}

/// The first failure.
pub fn failure() -> Option<&'static Message> {
    FAILURE.get()
}

/// Waits for the first failure. Cancel safe.
pub async fn failed() {
    let notified = FAILED.notified();
    if FAILURE.get().is_none() {
        notified.await;
    }
}

/// The failure, also if the reader of standard output has left since the last write.
pub fn failure_now() -> Option<&'static Message> {
    let output = io::stdout();
    // No event is requested: only errors are reported.
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    if FAILURE.get().is_none()
        && poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
        && polled.iter().any(|output| output.revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL))
    {
        fail(&io::Error::from(Errno::PIPE));
    }
    FAILURE.get()
}

fn fail(error: &io::Error) {
    if FAILURE.set(msg!("cannot write to standard output: {error}")).is_ok() {
        FAILED.notify_one();
    }
}

fn write_all(output: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&output, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
