//! How the templates of two schemes differ: line by line, and in what they ask of the model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use crate::templates::catalog::{CatalogEntry, TemplateCatalog};
use crate::templates::find::find;
use crate::templates::includes::MARK;
use bcc_check::templates::fields::WrittenField;
use bcc_check::templates::unused::name_and_version;
use bcc_engine::error::EngineError;
use bcc_lang::schema::embedded;
use bcc_lang::template::builtin::schemes;
use bcc_lang::template::layers::{DEFAULT_SCHEME, TemplateFile};
use bcc_lang::template::templates::Templates;

/// Stands in the place of a file that one of the schemes does not have.
const NO_FILE: &str = "/dev/null";

/// Comparing one file takes no longer than this; what is left then counts as different.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonBase<'a> {
    /// Another scheme, as it is served.
    Scheme(&'a str),
    /// What the binary alone has for the same scheme.
    BuiltIn,
}

impl ComparisonBase<'_> {
    /// What is compared with when nobody says: the default scheme; for that, the binary's.
    pub fn usual(scheme: &str) -> Self {
        if scheme == DEFAULT_SCHEME { Self::BuiltIn } else { Self::Scheme(DEFAULT_SCHEME) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateDifference {
    /// The name of the file: `ai_ask_v1.md`.
    pub name: String,
    /// A unified diff; empty when nothing differs, or nothing but line ends.
    pub unified: String,
    /// Whether the two files are the same, byte for byte.
    pub same: bool,
    /// The other file, as people are shown it; none where there is none.
    pub other: Option<String>,
    /// Fields of the reply that the other one asks for and this one does not.
    pub lacks_fields: Vec<String>,
    /// Names that the other one uses and this one does not.
    pub lacks_names: Vec<String>,
    /// Whether only one of the two ends its lines as Windows does.
    pub line_ends: bool,
    /// Whether one of the two has a mistake, so that nobody knows what it lacks.
    pub mistaken: bool,
    pub fault: Option<String>,
}

/// Compares a template of a scheme, named as people name it, or all that differ; of all, those that cannot be read are told with
/// the rest.
/// Errors: `Usage` for a scheme or a template that there is not, or a file that cannot be read.
pub fn diff(
    shelf: &TemplateCatalog,
    scheme: &str,
    against: ComparisonBase<'_>,
    typed: Option<(&str, Option<u32>)>,
) -> Result<Vec<TemplateDifference>, EngineError> {
    shelf.known(scheme)?;
    let these = Side::of(shelf, scheme, false)?;
    let others = match against {
        ComparisonBase::Scheme(other) => {
            shelf.known(other)?;
            Side::of(shelf, other, false)?
        }
        ComparisonBase::BuiltIn => Side::of(shelf, scheme, true)?,
    };
    let one = typed.map(|(typed, version)| {
        let here = find(shelf, scheme, typed, version);
        let found = match (here, against) {
            // The other scheme may have it alone.
            (Err(_), ComparisonBase::Scheme(other)) if find(shelf, other, typed, version).is_ok() => {
                find(shelf, other, typed, version)
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
                fault: Some(error.to_string()),
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

/// How much nearer another scheme must be to be named, as shares of lines that are the same.
const CLEARLY: f32 = 0.25;

/// The scheme of the binary that the project's own files of a scheme were probably copied from, where they are clearly nearer to it
/// than to what is compared with when nobody says.
pub fn nearer(shelf: &TemplateCatalog, scheme: &str) -> Option<String> {
    let own: Vec<(&str, &str)> = shelf
        .files()
        .iter()
        .filter(|file| file.place == format!("custom/{scheme}"))
        .filter_map(|file| Some((file.name.as_str(), file.text.as_deref().ok()?)))
        .collect();
    let alike = |other: &str| -> f32 {
        let served = shelf.served(other);
        let of = |(name, text): &(&str, &str)| {
            let other = served.get(name).and_then(|files| files.first())?.text.as_deref().ok()?;
            Some(TextDiff::configure().timeout(LIMIT).diff_lines(other, text).ratio())
        };
        let shares: Vec<f32> = own.iter().filter_map(of).collect();
        if shares.is_empty() { 0.0 } else { shares.iter().sum::<f32>() / shares.len() as f32 }
    };
    let (usual, mut best) = (alike(DEFAULT_SCHEME), None);
    for other in schemes().filter(|other| *other != scheme) {
        let share = alike(other);
        if share > usual + CLEARLY && best.is_none_or(|(_, most)| share > most) {
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
    fn of(shelf: &'s TemplateCatalog, scheme: &str, built_in: bool) -> Result<Self, EngineError> {
        let taken = |file: &&&CatalogEntry| !built_in || file.is_built_in();
        let served = shelf.served(scheme).into_iter();
        let files = served.filter_map(|(name, files)| Some((name, *files.iter().find(taken)?))).collect();
        let mut pinned = shelf.pinned(scheme);
        pinned.retain(|file: &TemplateFile| !built_in || file.place.starts_with("builtin/"));
        Ok(Self { files, templates: Templates::new(&pinned, MARK)? })
    }

    /// What the template says; nothing where that is not sure.
    fn says(&self, name: &str) -> Option<WrittenField> {
        let number = self.templates.number(name)?;
        let (stem, version) = name_and_version(name)?;
        self.templates.get(stem, version).ok()?;
        Some(WrittenField::by(&self.templates, number))
    }
}

fn compare(name: &str, others: &Side<'_>, these: &Side<'_>) -> Result<TemplateDifference, EngineError> {
    let (other, this) = (others.files.get(name).copied(), these.files.get(name).copied());
    let text = |file: Option<&CatalogEntry>| file.map_or(Ok(String::new()), |file| file.readable().map(str::to_owned));
    let (before, after) = (text(other)?, text(this)?);
    let same = before == after && other.is_some() == this.is_some();
    let windows = |text: &str| text.contains("\r\n");
    let line_ends = other.is_some() && this.is_some() && windows(&before) != windows(&after);
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
    difference.mistaken = true;
    if let (Some(other), Some(this)) = (others.says(name), these.says(name)) {
        difference.mistaken = false;
        let kind = name_and_version(name).map(|(kind, _)| kind);
        if let Some(reply) = kind.and_then(embedded::reply).and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            let here = this.fields(&reply);
            difference.lacks_fields = other.fields(&reply).into_iter().filter(|field| !here.contains(field)).collect();
        }
        difference.lacks_names = other.names.difference(&this.names).cloned().collect();
    }
    Ok(difference)
}
