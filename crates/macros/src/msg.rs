//! Implementation of `msg!`.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

use crate::format::{Placeholder, placeholders};

/// One argument after the literal.
struct Argument {
    name: Option<Ident>,
    value: TokenStream,
    /// Whether a placeholder of the literal refers to it.
    used: bool,
}

impl Parse for Argument {
    /// Takes all tokens up to the next comma. That is enough for an expression, without the `full` feature of `syn`: only a comma
    /// between `<` and `>` outside brackets would be parsed incorrectly.
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let named = input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = if named { Some(input.parse::<Ident>()?) } else { None };
        if named {
            input.parse::<Token![=]>()?;
        }
        let mut value = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![,]) {
            value.extend([input.parse::<TokenTree>()?]);
        }
        Ok(Self { name, value, used: false })
    }
}

struct Input {
    literal: LitStr,
    arguments: Vec<Argument>,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let literal = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        let arguments = input.parse_terminated(Argument::parse, Token![,])?;
        Ok(Self { literal, arguments: arguments.into_iter().collect() })
    }
}

pub(crate) fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let Input { literal, mut arguments } = syn::parse2(input)?;
    let error = |text: String| syn::Error::new(literal.span(), text);
    let mut expanded: Vec<(String, TokenStream)> = Vec::new();
    let mut unnamed = 0;
    for Placeholder { name, spec } in placeholders(&literal.value()).map_err(error)? {
        let position = match name.as_str() {
            "" => {
                unnamed += 1;
                Some(unnamed - 1)
            }
            name => name.parse::<usize>().ok(),
        };
        let (key, value) = match position {
            Some(position) => {
                let argument = arguments.get_mut(position).filter(|argument| argument.name.is_none());
                let argument = argument.ok_or_else(|| error(format!("there is no argument {}", position + 1)))?;
                argument.used = true;
                let value = &argument.value;
                ((position + 1).to_string(), quote!(#value))
            }
            None => match arguments.iter_mut().find(|argument| argument.name.as_ref().is_some_and(|id| *id == name)) {
                Some(argument) => {
                    argument.used = true;
                    let value = &argument.value;
                    (name, quote!(#value))
                }
                None => {
                    let variable = Ident::new(&name, literal.span());
                    (name, quote!(#variable))
                }
            },
        };
        if !expanded.iter().any(|(known, _)| *known == key) {
            expanded.push((key, argument(&value, &spec)));
        }
    }
    if let Some(argument) = arguments.iter().find(|argument| !argument.used) {
        return Err(syn::Error::new_spanned(&argument.value, "this argument is not used in the literal"));
    }
    Ok(message(&literal, &expanded))
}

/// The expression for a message of a literal and its arguments.
pub(crate) fn message(literal: &LitStr, arguments: &[(String, TokenStream)]) -> TokenStream {
    let arguments = arguments.iter().map(|(name, value)| quote!((::std::borrow::Cow::Borrowed(#name), #value)));
    quote!(::bcc_lang::message::message::Message::new(#literal, ::std::vec![#(#arguments),*]))
}

/// The expression that converts one argument to a message.
pub(crate) fn argument(value: &TokenStream, spec: &str) -> TokenStream {
    if spec.is_empty() {
        return quote!({
            #[allow(unused_imports, reason = "one of the two gives the method")]
            use ::bcc_lang::message::argument::{ViaDisplay as _, ViaMessage as _};
            (&&::bcc_lang::message::argument::MessageArgument(&(#value))).message()
        });
    }
    let form = format!("{{:{spec}}}");
    quote!(::bcc_lang::message::message::Message::text(::std::format!(#form, #value)))
}
