//! The `msg!` and `#[derive(ToMessage)]` macros (docs/languages.md). Use them through `bcc_lang::message`, which has their types.

mod derive;
mod format;
mod msg;

use proc_macro::TokenStream;

/// Builds a `Message` from a literal, which identifies it in the catalogues, and its arguments. The syntax is that of `format!`:
/// `msg!("there is no model `{name}`")`, `msg!("line {} has {count} items", line, count = items.len())`.
///
/// An argument that implements `ToMessage` is stored as a message and translated with the outer one. Any other argument is formatted
/// with `Display` (or as its placeholder specifies, `{x:?}`) and is the same in every language.
#[proc_macro]
pub fn msg(input: TokenStream) -> TokenStream {
    msg::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `ToMessage` for an error from its `thiserror` attribute `#[error("…")]`: the literal identifies the message, and the
/// fields that it names are the arguments. `#[error(transparent)]` forwards the message of the only field. A literal that
/// calls functions of its fields is rejected; such an error must implement the trait by hand.
#[proc_macro_derive(ToMessage, attributes(error))]
pub fn to_message(input: TokenStream) -> TokenStream {
    derive::expand(syn::parse_macro_input!(input as syn::DeriveInput))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
