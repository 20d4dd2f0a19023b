//! Which templates of a scheme pull in which others.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::templates::catalog::TemplateCatalog;
use bcc_engine::error::EngineError;
use bcc_lang::template::loaded::DEFAULT_PREFIX;
use bcc_lang::template::templates::Templates;

/// Stands in the place of the guarded role markers: nothing is rendered here.
pub const MARK: &str = "00000000000000000000000000000000";

#[derive(Clone, Debug, Default)]
pub struct IncludeGraph {
    /// For each file that is served, the names that it pulls in, `default:` in front where it skips the scheme.
    pub by: BTreeMap<String, BTreeSet<String>>,
    /// The places and names of files that are pulled in, with the names of those that do.
    pub into: BTreeMap<(String, String), BTreeSet<String>>,
    /// Whether more may be pulled in than is known: by a name that is computed, or by a file that has a mistake or cannot be
    /// read.
    pub unsure: bool,
    /// The places and names of files with a mistake, with the first.
    pub mistakes: BTreeMap<(String, String), String>,
}

impl IncludeGraph {
    /// Those of a scheme. A file that cannot be read pulls in nothing.
    /// Errors: `Usage` when no session could take these files.
    pub fn of(shelf: &TemplateCatalog, scheme: &str) -> Result<Self, EngineError> {
        let templates = Templates::new(&shelf.pinned(scheme), MARK)?;
        let served = shelf.served(scheme);
        let unreadable = served.values().filter_map(|files| files.first()).any(|file| file.text.is_err());
        let mut pulls = Self { unsure: unreadable, ..Self::default() };
        for (number, loaded) in templates.files().iter().enumerate() {
            let is_served = templates.number(loaded.name()) == Some(number);
            let skipped = || templates.number(&format!("{DEFAULT_PREFIX}{}", loaded.name())) == Some(number);
            if !is_served && !skipped() {
                continue;
            }
            if let Some(mistake) = templates.mistakes(number).first() {
                pulls.unsure = true;
                let line = mistake.line.map(|line| msg!("line {line}: ")).unwrap_or_default();
                let key = (loaded.place().to_owned(), loaded.name().to_owned());
                pulls.mistakes.insert(key, format!("{line}{}", mistake.message));
            }
            for target in &loaded.uses().targets {
                let Some(name) = &target.name else {
                    pulls.unsure = true;
                    continue;
                };
                if is_served {
                    pulls.by.entry(loaded.name().to_owned()).or_default().insert(name.clone());
                }
                // One that pulls itself in is needed by no other for that.
                let other = templates.number(name).filter(|other| *other != number);
                if let Some(file) = other.and_then(|number| templates.files().get(number)) {
                    let key = (file.place().to_owned(), file.name().to_owned());
                    pulls.into.entry(key).or_default().insert(loaded.name().to_owned());
                }
            }
        }
        Ok(pulls)
    }
}
