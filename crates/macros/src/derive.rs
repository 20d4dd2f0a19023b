//! Implementation of `#[derive(ToMessage)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitStr};

use crate::format::{Placeholder, placeholders};
use crate::msg::{argument, message};

pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let body = match &input.data {
        Data::Struct(data) => {
            let (pattern, value) = expand_fields(&input.attrs, &data.fields, name)?;
            quote!(let Self #pattern = self; #value)
        }
        Data::Enum(data) => {
            let arms = data.variants.iter().map(|variant| {
                let (pattern, value) = expand_fields(&variant.attrs, &variant.fields, &variant.ident)?;
                let name = &variant.ident;
                Ok(quote!(Self::#name #pattern => #value))
            });
            let arms = arms.collect::<syn::Result<Vec<_>>>()?;
            quote!(match self { #(#arms,)* })
        }
        Data::Union(_) => return Err(syn::Error::new_spanned(name, "a union has no message")),
    };
    Ok(quote! {
        impl ::bcc_lang::message::argument::ToMessage for #name {
            fn to_message(&self) -> ::bcc_lang::message::message::Message {
                #body
            }
        }
    })
}

/// Returns the pattern that binds the fields named in the literal, and the expression for the message.
fn expand_fields(attributes: &[Attribute], fields: &Fields, at: &Ident) -> syn::Result<(TokenStream, TokenStream)> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.path().is_ident("error"))
        .ok_or_else(|| syn::Error::new_spanned(at, "`#[error(\"…\")]` is missing"))?;
    if attribute.parse_args::<Ident>().is_ok_and(|word| word == "transparent") {
        let (pattern, field) = bind_fields(fields, &["0".to_owned()], at)?;
        let field = field.into_iter().next().ok_or_else(|| syn::Error::new_spanned(at, "there is no field"))?;
        return Ok((pattern, argument(&quote!(*#field), "")));
    }
    let literal: LitStr = attribute.parse_args()?;
    let found = placeholders(&literal.value()).map_err(|text| syn::Error::new(literal.span(), text))?;
    let is_constant = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
    let mut names: Vec<String> = Vec::new();
    let mut arguments: Vec<(String, TokenStream)> = Vec::new();
    for Placeholder { name, .. } in &found {
        if is_constant(name) {
            let constant = format_ident!("{name}");
            arguments.push((name.clone(), argument(&quote!(#constant), "")));
        } else if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let (pattern, bindings) = bind_fields(fields, &names, at)?;
    for (name, binding) in names.iter().zip(&bindings) {
        let spec = found.iter().find(|place| place.name == *name).map_or("", |place| place.spec.as_str());
        let key = name.parse::<usize>().map_or_else(|_| name.clone(), |number| (number + 1).to_string());
        arguments.push((key, argument(&quote!(*#binding), spec)));
    }
    Ok((pattern, message(&literal, &arguments)))
}

/// Returns the pattern that binds these fields, and the bindings in the order of `names`.
fn bind_fields(fields: &Fields, names: &[String], at: &Ident) -> syn::Result<(TokenStream, Vec<Ident>)> {
    let unknown = |name: &str| syn::Error::new_spanned(at, format!("there is no field `{name}`"));
    match fields {
        Fields::Named(named) => {
            let fields: Vec<&Ident> = named.named.iter().filter_map(|field| field.ident.as_ref()).collect();
            let mut bindings = Vec::new();
            for name in names {
                let found = match name.parse::<usize>() {
                    Ok(number) => fields.get(number),
                    Err(_) => fields.iter().find(|field| **field == name),
                };
                bindings.push((*found.ok_or_else(|| unknown(name))?).clone());
            }
            Ok((quote!({ #(#bindings,)* .. }), bindings))
        }
        Fields::Unnamed(unnamed) => {
            let mut places: Vec<TokenStream> = vec![quote!(_); unnamed.unnamed.len()];
            let mut bindings = Vec::new();
            for name in names {
                let number: usize = name.parse().map_err(|_| unknown(name))?;
                let binding = format_ident!("field{number}");
                *places.get_mut(number).ok_or_else(|| unknown(name))? = quote!(#binding);
                bindings.push(binding);
            }
            Ok((quote!(( #(#places),* )), bindings))
        }
        Fields::Unit => match names.first() {
            Some(name) => Err(unknown(name)),
            None => Ok((quote!(), Vec::new())),
        },
    }
}
