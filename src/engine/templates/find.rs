//! One template by the name that a person types: `ai_ask`, `ai_ask_v1`, `ai_ask_v1.md`, `safety.md`, `default:safety.md`.

use std::collections::BTreeMap;

use crate::check::templates::unused::name_and_version;
use crate::engine::error::EngineError;
use crate::engine::templates::shelf::{Shelf, Standing};
use crate::prompt::layers::DEFAULT_SCHEME;
use crate::prompt::loaded::DEFAULT_PREFIX;
use crate::prompt::near::did_you_mean;

/// The file that serves a template in a scheme, with those behind it that it overrides.
#[derive(Clone, Debug)]
pub struct Served<'s> {
    /// The name of the file: `ai_ask_v1.md`.
    pub name: &'s str,
    /// What is served.
    pub file: &'s Standing,
    /// What would be served without it, and so on.
    pub overrides: Vec<&'s Standing>,
}

/// The template that is meant by `typed` in a scheme. A name without a version means `version`, else version 1, which is what
/// an action without `version` gets; else the lowest that there is.
///
/// # Errors
/// `Usage`: there is no such scheme, or no such template in it, with near names and the versions that there are.
pub fn find<'s>(shelf: &'s Shelf, scheme: &str, typed: &str, version: Option<u32>) -> Result<Served<'s>, EngineError> {
    shelf.known(scheme)?;
    let (scheme, bare) = match typed.strip_prefix(DEFAULT_PREFIX) {
        Some(bare) => (DEFAULT_SCHEME, bare),
        None => (scheme, typed),
    };
    let all = shelf.served(scheme);
    let stem = bare.strip_suffix(".md").unwrap_or(bare);
    let written = format!("{stem}.md");
    let exact = name_and_version(&written).map(|(_, version)| version);
    if let (Some(asked), Some(written)) = (version, exact)
        && asked != written
    {
        let message = format!("`{typed}` names version {written}, and `--version` version {asked}");
        return Err(EngineError::usage(message).with_help("leave one of the two out"));
    }
    let versions: Vec<u32> = all.keys().filter_map(|name| version_of(name, stem)).collect();
    let name = match version.filter(|_| exact.is_none()) {
        Some(version) => Some(format!("{stem}_v{version}.md")),
        None if all.contains_key(written.as_str()) => Some(written),
        None => versions.iter().min().map(|lowest| format!("{stem}_v{lowest}.md")),
    };
    let found = name.as_deref().and_then(|name| all.get_key_value(name));
    let Some((name, (file, overrides))) = found.and_then(|(name, files)| Some((name, files.split_first()?))) else {
        return Err(unknown(scheme, typed, stem, version, &versions, &all));
    };
    Ok(Served { name, file, overrides: overrides.to_vec() })
}

/// The version of a file that belongs to `stem`.
fn version_of(file: &str, stem: &str) -> Option<u32> {
    name_and_version(file).filter(|(name, _)| *name == stem).map(|(_, version)| version)
}

fn unknown(
    scheme: &str,
    typed: &str,
    stem: &str,
    version: Option<u32>,
    versions: &[u32],
    all: &BTreeMap<&str, Vec<&Standing>>,
) -> EngineError {
    let shown = typed.escape_debug();
    if let (Some(version), false) = (version, versions.is_empty()) {
        let mut versions = versions.to_vec();
        versions.sort_unstable();
        let versions = versions.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("there is no template `{shown}` in version {version} in the scheme `{scheme}`");
        return EngineError::usage(message).with_help(format!("there is version {versions}"));
    }
    let known = all.keys().flat_map(|name| {
        let stem = name_and_version(name).map_or_else(|| name.strip_suffix(".md"), |(stem, _)| Some(stem));
        [Some(*name), name.strip_suffix(".md"), stem].into_iter().flatten()
    });
    let near = did_you_mean(stem, known);
    let help = near.unwrap_or_else(|| format!("`bcc-script templates list --scheme {scheme}` shows what there is"));
    EngineError::usage(format!("there is no template `{shown}` in the scheme `{scheme}`")).with_help(help)
}
