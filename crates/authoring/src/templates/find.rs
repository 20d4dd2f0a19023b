//! Finds a template by a name that a user enters: `ai_ask`, `ai_ask_v1`, `ai_ask_v1.md`, `safety.md`, `default:safety.md`.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::templates::catalog::{CatalogEntry, TemplateCatalog};
use bcc_check::templates::unused::name_and_version;
use bcc_engine::error::EngineError;
use bcc_lang::source::near::did_you_mean;
use bcc_lang::template::layers::DEFAULT_SCHEME;
use bcc_lang::template::loaded::{DEFAULT_PREFIX, is_outside};

/// The template file that a scheme uses, with the files that it overrides.
#[derive(Clone, Debug)]
pub struct Served<'s> {
    /// The name of the file: `ai_ask_v1.md`.
    pub name: &'s str,
    pub file: &'s CatalogEntry,
    /// The files that it overrides, in lookup order.
    pub overrides: Vec<&'s CatalogEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed<'t> {
    /// `ai_ask`; for an include file, its name without the extension.
    pub name: &'t str,
    /// The version, if the name contains one: `ai_ask_v2`.
    pub version: Option<u32>,
}

/// Parses a template name that a user entered, with or without `default:`.
/// Errors: `Usage` for a path: templates are specified by file name only.
pub fn typed(typed: &str) -> Result<Typed<'_>, EngineError> {
    let bare = typed.strip_prefix(DEFAULT_PREFIX).unwrap_or(typed);
    if is_outside(bare) {
        let message = msg!("`{}` is a path, but templates are specified by file name only", typed.escape_debug());
        return Err(EngineError::usage(message).with_help("`bcc-script templates list` shows their names"));
    }
    let stem = bare.strip_suffix(".md").unwrap_or(bare);
    let version = name_and_version(&format!("{stem}.md")).map(|(_, version)| version);
    let name = version.and_then(|version| stem.strip_suffix(&format!("_v{version}"))).unwrap_or(stem);
    Ok(Typed { name, version })
}

/// Finds the template `typed` in a scheme. A name without a version means `version`, or version 1, which actions
/// without `version` use, or the lowest existing version.
/// Errors: `Usage` if there is no such scheme or template, with similar names and the existing versions.
pub fn find<'s>(
    catalog: &'s TemplateCatalog,
    scheme: &str,
    typed: &str,
    version: Option<u32>,
) -> Result<Served<'s>, EngineError> {
    catalog.check_scheme(scheme)?;
    let Typed { name: root, version: exact } = self::typed(typed)?;
    let (scheme, bare) = match typed.strip_prefix(DEFAULT_PREFIX) {
        Some(bare) => (DEFAULT_SCHEME, bare),
        None => (scheme, typed),
    };
    let all = catalog.served(scheme);
    let stem = bare.strip_suffix(".md").unwrap_or(bare);
    let written = format!("{stem}.md");
    if let (Some(asked), Some(written)) = (version, exact)
        && asked != written
    {
        let message = msg!("`{typed}` specifies version {written}, but `--version` specifies version {asked}");
        return Err(EngineError::usage(message).with_help("remove one of the two"));
    }
    let versions: Vec<u32> = all.keys().filter_map(|name| version_of(name, stem)).collect();
    let name = match version.filter(|_| exact.is_none()) {
        Some(version) => Some(format!("{stem}_v{version}.md")),
        None if all.contains_key(written.as_str()) => Some(written),
        None => versions.iter().min().map(|lowest| format!("{stem}_v{lowest}.md")),
    };
    let found = name.as_deref().and_then(|name| all.get_key_value(name));
    let Some((name, (file, overrides))) = found.and_then(|(name, files)| Some((name, files.split_first()?))) else {
        let of_root: Vec<u32> = all.keys().filter_map(|name| version_of(name, root)).collect();
        let versions = if exact.is_some() { &of_root } else { &versions };
        return Err(unknown(scheme, typed, stem, version.or(exact), versions, &all));
    };
    Ok(Served { name, file, overrides: overrides.to_vec() })
}

fn version_of(file: &str, stem: &str) -> Option<u32> {
    name_and_version(file).filter(|(name, _)| *name == stem).map(|(_, version)| version)
}

fn unknown(
    scheme: &str,
    typed: &str,
    stem: &str,
    version: Option<u32>,
    versions: &[u32],
    all: &BTreeMap<&str, Vec<&CatalogEntry>>,
) -> EngineError {
    let shown = typed.escape_debug();
    if let (Some(version), false) = (version, versions.is_empty()) {
        let mut versions = versions.to_vec();
        versions.sort_unstable();
        let versions = Message::values(&versions);
        let root = self::typed(typed).map_or(stem, |typed| typed.name).escape_debug();
        let message = msg!("there is no version {version} of the template `{root}` in the scheme `{scheme}`");
        return EngineError::usage(message).with_help(msg!("available versions: {versions}"));
    }
    let known = all.keys().flat_map(|name| {
        let stem = name_and_version(name).map_or_else(|| name.strip_suffix(".md"), |(stem, _)| Some(stem));
        [Some(*name), name.strip_suffix(".md"), stem].into_iter().flatten()
    });
    let near = did_you_mean(stem, known);
    let help = near.unwrap_or_else(|| msg!("`bcc-script templates list --scheme {scheme}` lists the templates"));
    EngineError::usage(msg!("there is no template `{shown}` in the scheme `{scheme}`")).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_version_are_parsed_and_paths_are_rejected() {
        for (text, name, version) in [
            ("ai_ask", "ai_ask", None),
            ("ai_ask_v2", "ai_ask", Some(2)),
            ("ai_ask_v12.md", "ai_ask", Some(12)),
            ("default:ai_ask_v1.md", "ai_ask", Some(1)),
            ("safety.md", "safety", None),
            ("my_very", "my_very", None),
            ("ai_v_x", "ai_v_x", None),
            ("x_v", "x_v", None),
            ("x_v01", "x_v01", None),
        ] {
            assert_eq!(typed(text).unwrap(), Typed { name, version }, "{text}");
        }
        for path in ["../x", "a/b.md", "default:../x", "a\\b", "c:x"] {
            assert!(typed(path).unwrap_err().to_string().contains("is a path"), "{path}");
        }
    }
}
