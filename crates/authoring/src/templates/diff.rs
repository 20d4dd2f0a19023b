//! Compares the templates of two schemes: their lines, and the fields and names that they use.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use crate::templates::catalog::{CatalogEntry, TemplateCatalog};
use crate::templates::find::find;
use crate::templates::includes::NONCE;
use bcc_check::templates::fields::WrittenField;
use bcc_check::templates::unused::name_and_version;
use bcc_engine::error::EngineError;
use bcc_lang::schema::embedded;
use bcc_lang::template::builtin::schemes;
use bcc_lang::template::layers::{DEFAULT_SCHEME, TemplateFile};
use bcc_lang::template::templates::Templates;

/// The name in a diff for a file that one of the schemes does not have.
const NO_FILE: &str = "/dev/null";

/// The timeout for comparing one file; the remainder counts as different.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonBase<'a> {
    /// Another scheme, with the templates that it uses.
    Scheme(&'a str),
    /// The built-in templates of the same scheme.
    BuiltIn,
}

impl ComparisonBase<'_> {
    /// The default comparison: with the default scheme; for that one, with the built-in templates.
    pub fn default_for(scheme: &str) -> Self {
        if scheme == DEFAULT_SCHEME { Self::BuiltIn } else { Self::Scheme(DEFAULT_SCHEME) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateDifference {
    /// The name of the file: `ai_ask_v1.md`.
    pub name: String,
    /// A unified diff; empty if nothing differs except line endings.
    pub unified: String,
    /// Whether the two files are identical.
    pub same: bool,
    /// The displayed path of the other file; `None` if there is none.
    pub other: Option<String>,
    /// Fields of the reply that only the other file asks for.
    pub missing_fields: Vec<String>,
    /// Names that only the other file uses.
    pub missing_names: Vec<String>,
    /// Whether only one of the two has Windows line endings.
    pub line_ends: bool,
    /// Whether one of the two has an error, so that missing fields and names are unknown.
    pub has_errors: bool,
    pub error: Option<Message>,
}

/// Compares one template of a scheme, or all that differ. When all are compared, unreadable files are part of the result.
/// Errors: `Usage` if there is no such scheme or template, or if a file cannot be read.
pub fn diff(
    catalog: &TemplateCatalog,
    scheme: &str,
    against: ComparisonBase<'_>,
    typed: Option<(&str, Option<u32>)>,
) -> Result<Vec<TemplateDifference>, EngineError> {
    catalog.check_scheme(scheme)?;
    let these = Side::of(catalog, scheme, false)?;
    let others = match against {
        ComparisonBase::Scheme(other) => {
            catalog.check_scheme(other)?;
            Side::of(catalog, other, false)?
        }
        ComparisonBase::BuiltIn => Side::of(catalog, scheme, true)?,
    };
    let one = typed.map(|(typed, version)| {
        let here = find(catalog, scheme, typed, version);
        let found = match (here, against) {
            // Only the other scheme may have it.
            (Err(_), ComparisonBase::Scheme(other)) if find(catalog, other, typed, version).is_ok() => {
                find(catalog, other, typed, version)
            }
            (here, _) => here,
        };
        found.map(|served| served.name.to_owned())
    });
    let names: BTreeSet<&str> = match one.transpose()? {
        Some(name) => these.files.keys().chain(others.files.keys()).copied().filter(|one| *one == name).collect(),
        None => these.files.keys().chain(others.files.keys()).copied().collect(),
    };
    let mut differences = Vec::new();
    for name in names {
        let difference = match compare(name, &others, &these) {
            Err(error) if typed.is_none() => TemplateDifference {
                name: name.to_owned(),
                error: Some(error.to_message()),
                ..TemplateDifference::default()
            },
            difference => difference?,
        };
        if typed.is_some() || !difference.same {
            differences.push(difference);
        }
    }
    Ok(differences)
}

/// How much more similar another scheme must be to be suggested, as a share of equal lines.
const MIN_DIFFERENCE: f32 = 0.25;

/// The built-in scheme that the project's files of a scheme were probably copied from, if they are clearly more similar
/// to it than to the default scheme.
pub fn likely_source(catalog: &TemplateCatalog, scheme: &str) -> Option<String> {
    let own: Vec<(&str, &str)> = catalog
        .files()
        .iter()
        .filter(|file| file.place == format!("custom/{scheme}"))
        .filter_map(|file| Some((file.name.as_str(), file.text.as_deref().ok()?)))
        .collect();
    let similarity = |other: &str| -> f32 {
        let served = catalog.served(other);
        let of = |(name, text): &(&str, &str)| {
            let other = served.get(name).and_then(|files| files.first())?.text.as_deref().ok()?;
            Some(TextDiff::configure().timeout(LIMIT).diff_lines(other, text).ratio())
        };
        let shares: Vec<f32> = own.iter().filter_map(of).collect();
        if shares.is_empty() { 0.0 } else { shares.iter().sum::<f32>() / shares.len() as f32 }
    };
    let (usual, mut best) = (similarity(DEFAULT_SCHEME), None);
    for other in schemes().filter(|other| *other != scheme) {
        let share = similarity(other);
        if share > usual + MIN_DIFFERENCE && best.is_none_or(|(_, best_share)| share > best_share) {
            best = Some((other, share));
        }
    }
    best.map(|(other, _)| other.to_owned())
}

struct Side<'s> {
    files: BTreeMap<&'s str, &'s CatalogEntry>,
    templates: Templates,
}

impl<'s> Side<'s> {
    fn of(catalog: &'s TemplateCatalog, scheme: &str, built_in: bool) -> Result<Self, EngineError> {
        let is_selected = |file: &&&CatalogEntry| !built_in || file.is_built_in();
        let served = catalog.served(scheme).into_iter();
        let files = served.filter_map(|(name, files)| Some((name, *files.iter().find(is_selected)?))).collect();
        let mut pinned = catalog.pinned(scheme);
        pinned.retain(|file: &TemplateFile| !built_in || file.place.starts_with("builtin/"));
        Ok(Self { files, templates: Templates::new(&pinned, NONCE)? })
    }

    /// The fields and names that a template uses; `None` if they cannot be determined.
    fn written_fields(&self, name: &str) -> Option<WrittenField> {
        let number = self.templates.number(name)?;
        let (stem, version) = name_and_version(name)?;
        self.templates.get(stem, version).ok()?;
        Some(WrittenField::collect(&self.templates, number))
    }
}

fn compare(name: &str, others: &Side<'_>, these: &Side<'_>) -> Result<TemplateDifference, EngineError> {
    let (other, this) = (others.files.get(name).copied(), these.files.get(name).copied());
    let text = |file: Option<&CatalogEntry>| file.map_or(Ok(String::new()), |file| file.readable().map(str::to_owned));
    let (before, after) = (text(other)?, text(this)?);
    let same = before == after && other.is_some() == this.is_some();
    let has_crlf = |text: &str| text.contains("\r\n");
    let line_ends = other.is_some() && this.is_some() && has_crlf(&before) != has_crlf(&after);
    let (before, after) =
        if line_ends { (before.replace("\r\n", "\n"), after.replace("\r\n", "\n")) } else { (before, after) };
    let shown = |file: Option<&CatalogEntry>| file.map_or_else(|| NO_FILE.to_owned(), CatalogEntry::shown);
    let mut unified = String::new();
    if before != after {
        let diff = TextDiff::configure().timeout(LIMIT).diff_lines(&before, &after);
        unified = diff.unified_diff().header(&shown(other), &shown(this)).to_string();
    }
    let mut difference = TemplateDifference {
        name: name.to_owned(),
        unified,
        same,
        other: other.map(CatalogEntry::shown),
        line_ends,
        ..TemplateDifference::default()
    };
    if same || other.is_none() || this.is_none() || name_and_version(name).is_none() {
        return Ok(difference);
    }
    difference.has_errors = true;
    if let (Some(other), Some(this)) = (others.written_fields(name), these.written_fields(name)) {
        difference.has_errors = false;
        let kind = name_and_version(name).map(|(kind, _)| kind);
        if let Some(reply) = kind.and_then(embedded::reply).and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            let here = this.fields(&reply);
            difference.missing_fields =
                other.fields(&reply).into_iter().filter(|field| !here.contains(field)).collect();
        }
        difference.missing_names = other.names.difference(&this.names).cloned().collect();
    }
    Ok(difference)
}
