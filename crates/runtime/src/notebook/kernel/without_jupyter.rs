//! The kernel of a build without the feature `jupyter`: none.

use crate::notebook::kernel::contract::{KernelError, NoKernel};
use crate::notebook::kernel::location::KernelLocation;
use bcc_lang::message::message::Message;

/// A kernel that says that this build has none; where code is not allowed anyway, it says that.
pub fn no_kernel(location: KernelLocation) -> NoKernel {
    NoKernel(location.refused.unwrap_or_else(|| KernelError {
        code: "no-kernels-built-in",
        message: Message::word("this bcc-script was built without kernel support: it cannot run code"),
        help: Some(Message::word("install it with its default features, or build it with `--features jupyter`")),
    }))
}
