//! The context of a check: the kinds, templates, schemas, skills and models of the project.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::library::SkillLibrary;
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::custom::CustomKind;
use bcc_runtime::program::kind::Kind;

/// The data that the check of a document needs in addition to its text.
pub struct CheckContext<'a> {
    pub kinds: &'a [&'a dyn Kind],
    /// The kinds that the project defines, by name; `kinds` contains them too.
    pub custom: &'a BTreeMap<String, CustomKind>,
    pub templates: Arc<Templates>,
    pub reply_schemas: &'a BTreeMap<String, Value>,
    pub library: &'a SkillLibrary,
    /// The models of the project's configuration, if it could be read.
    pub models: Option<&'a [String]>,
}
