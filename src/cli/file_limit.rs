//! A write beyond the limit of file sizes (`ulimit -f`) is an error like that of a full disk, instead of the end of the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

/// Catches the signal that ends a process at such a write. Programs that are started get the signal as usual: a handler, unlike
/// an ignored signal, is not inherited.
pub fn report_as_write_error() -> std::io::Result<()> {
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}
