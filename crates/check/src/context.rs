//! What a document is checked against: the kinds, templates, schemas, skills and models of its project.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::library::SkillLibrary;
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::custom::CustomKind;
use bcc_runtime::program::kind::Kind;

/// What the check of a document needs besides its text.
pub struct CheckContext<'a> {
    pub kinds: &'a [&'a dyn Kind],
    /// Those of them that the project makes, by name; they stand among `kinds`, too.
    pub custom: &'a BTreeMap<String, CustomKind>,
    pub templates: Arc<Templates>,
    pub reply_schemas: &'a BTreeMap<String, Value>,
    pub library: &'a SkillLibrary,
    /// The models of the project's configuration, when that could be read.
    pub models: Option<&'a [String]>,
}
