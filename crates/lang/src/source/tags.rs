//! Checks tags such as `!!int`: whether they are known, and whether the tagged value fits.

use crate::message::msg;
use std::sync::Arc;

use granit_parser::Tag;

use crate::source::core_schema;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::Span;
use crate::source::text::{SourceFile, excerpt};

/// The type that a tag requires.
enum TagType<'t> {
    /// One of [`core_schema::TAGS`].
    Core(&'t str),
    /// `!` alone: a scalar is text, a collection is what it looks like.
    Bare,
    /// Anything else.
    Unknown(&'t str),
}

fn tag_type(tag: &Tag) -> TagType<'_> {
    match tag.core_suffix() {
        Some(name) => TagType::Core(name),
        None if tag.handle().is_empty() && tag.suffix() == "!" => TagType::Bare,
        None => TagType::Unknown(tag.suffix()),
    }
}

/// The name of a scalar's tag, if it has one. `span` is the position of the tag.
/// Errors: `unknown-tag`; `tag-mismatch` if the text does not fit.
pub(crate) fn of_scalar(
    tag: Option<&Tag>,
    text: &str,
    file: &Arc<SourceFile>,
    span: Span,
) -> Result<Option<String>, Box<Diagnostic>> {
    match tag.map(tag_type) {
        None => Ok(None),
        Some(TagType::Bare) => Ok(Some("str".to_owned())),
        Some(TagType::Unknown(name)) => Err(unknown(name, file, span)),
        Some(TagType::Core(name)) if core_schema::tagged(name, text).is_some() => Ok(Some(name.to_owned())),
        Some(TagType::Core(name)) => {
            let message = msg!("`{}` does not match the tag `!!{name}`", excerpt(text));
            let help = "change the text or remove the tag";
            Err(Box::new(Diagnostic::error("tag-mismatch", message, file, span).with_help(help)))
        }
    }
}

/// Checks the tag of a list (`expected` is `seq`) or a mapping (`map`).
/// Errors: `unknown-tag`; `tag-mismatch` for the tag of another type.
pub(crate) fn of_collection(
    tag: Option<&Tag>,
    expected: &str,
    file: &Arc<SourceFile>,
    span: Span,
) -> Result<(), Box<Diagnostic>> {
    match tag.map(tag_type) {
        Some(TagType::Unknown(name)) => Err(unknown(name, file, span)),
        Some(TagType::Core(name)) if name != expected => {
            let what = if expected == "seq" { "a list" } else { "a mapping" };
            let message = msg!("the tag `!!{name}` cannot be applied to {what}");
            Err(Box::new(Diagnostic::error("tag-mismatch", message, file, span).with_help("remove the tag")))
        }
        _ => Ok(()),
    }
}

fn unknown(name: &str, file: &Arc<SourceFile>, span: Span) -> Box<Diagnostic> {
    let near = match name {
        "string" | "text" => Some("str"),
        "integer" => Some("int"),
        "number" => Some("float"),
        "boolean" => Some("bool"),
        "list" | "array" => Some("seq"),
        "object" | "mapping" => Some("map"),
        _ => core_schema::TAGS.into_iter().find(|tag| *tag == name).or_else(|| near_miss(name, core_schema::TAGS)),
    };
    let help = match near {
        Some(near) => msg!("did you mean `!!{near}`?"),
        None => msg!("if this is text that starts with `!`, put it in quotes; otherwise remove the tag"),
    };
    let message = msg!("unknown tag `{}`", excerpt(file.slice(span)));
    Box::new(Diagnostic::error("unknown-tag", message, file, span).with_help(help))
}
