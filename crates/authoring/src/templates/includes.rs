//! The include graph of the templates of a scheme.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::templates::catalog::TemplateCatalog;
use bcc_engine::error::EngineError;
use bcc_lang::template::loaded::DEFAULT_PREFIX;
use bcc_lang::template::templates::Templates;

/// The placeholder for the random role markers: nothing is rendered here.
pub const NONCE: &str = "00000000000000000000000000000000";

#[derive(Clone, Debug, Default)]
pub(crate) struct IncludeGraph {
    /// For each used file, the names that it includes, with `default:` if it skips the scheme.
    pub includes: BTreeMap<String, BTreeSet<String>>,
    /// For each included file, by place and name, the names of the files that include it.
    pub included_by: BTreeMap<(String, String), BTreeSet<String>>,
    /// Whether there may be further includes: by a computed name, or in a file that has an error or cannot be read.
    pub incomplete: bool,
    /// The places and names of files with an error, with the first error.
    pub errors: BTreeMap<(String, String), Message>,
}

impl IncludeGraph {
    /// The include graph of a scheme. An unreadable file has no includes.
    /// Errors: `Usage` if no session could use these files.
    pub(crate) fn of(catalog: &TemplateCatalog, scheme: &str) -> Result<Self, EngineError> {
        let templates = Templates::new(&catalog.pinned(scheme), NONCE)?;
        let served = catalog.served(scheme);
        let unreadable = served.values().filter_map(|files| files.first()).any(|file| file.text.is_err());
        let mut graph = Self { incomplete: unreadable, ..Self::default() };
        for (number, loaded) in templates.files().iter().enumerate() {
            let is_served = templates.number(loaded.name()) == Some(number);
            let skipped = || templates.number(&format!("{DEFAULT_PREFIX}{}", loaded.name())) == Some(number);
            if !is_served && !skipped() {
                continue;
            }
            if let Some(mistake) = templates.mistakes(number).first() {
                graph.incomplete = true;
                let line = mistake.line.map(|line| msg!("line {line}"));
                let message = Message::list(Joint::Colon, line.into_iter().chain([mistake.message.clone()]));
                let key = (loaded.place().to_owned(), loaded.name().to_owned());
                graph.errors.insert(key, message);
            }
            for target in &loaded.uses().targets {
                let Some(name) = &target.name else {
                    graph.incomplete = true;
                    continue;
                };
                if is_served {
                    graph.includes.entry(loaded.name().to_owned()).or_default().insert(name.clone());
                }
                // Including itself does not make a file needed.
                let other = templates.number(name).filter(|other| *other != number);
                if let Some(file) = other.and_then(|number| templates.files().get(number)) {
                    let key = (file.place().to_owned(), file.name().to_owned());
                    graph.included_by.entry(key).or_default().insert(loaded.name().to_owned());
                }
            }
        }
        Ok(graph)
    }
}
