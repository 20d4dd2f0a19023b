//! The kernel of a build without the feature `jupyter`.

use crate::notebook::kernel::contract::{KernelError, NoKernel};
use crate::notebook::kernel::location::KernelLocation;
use bcc_lang::message::message::Message;

/// A kernel that rejects all code, either because code is not allowed or because this build has no kernels.
pub fn no_kernel(location: KernelLocation) -> NoKernel {
    NoKernel(location.permission_error.unwrap_or_else(|| KernelError {
        code: "no-kernels-built-in",
        message: Message::word("this bcc-script was built without kernel support: it cannot run code"),
        help: Some(Message::word("install it with its default features, or build it with `--features jupyter`")),
    }))
}
