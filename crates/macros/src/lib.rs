//! The macros of messages (docs/languages.md). Use them through `bcc_lang::message`, which has the types that they make.

mod derive;
mod format;
mod msg;

use proc_macro::TokenStream;

/// A `Message`: the literal, which identifies it in the catalogues, and its arguments. It is written as `format!` is:
/// `msg!("there is no model `{name}`")`, `msg!("line {} has {count} items", line, count = items.len())`.
///
/// An argument that can become a message itself (`ToMessage`) is kept as one and translated with it; any other is shown with
/// `Display` (or as its placeholder says, `{x:?}`) and is the same in every language.
#[proc_macro]
pub fn msg(input: TokenStream) -> TokenStream {
    msg::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `ToMessage` for an error from the `#[error("…")]` that `thiserror` reads: the literal identifies the message, and the
/// fields that it names are its arguments. `#[error(transparent)]` passes on the message of the only field. A literal that
/// calls functions of its fields is refused: such an error implements the trait by hand.
#[proc_macro_derive(ToMessage, attributes(error))]
pub fn to_message(input: TokenStream) -> TokenStream {
    derive::expand(syn::parse_macro_input!(input as syn::DeriveInput))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
