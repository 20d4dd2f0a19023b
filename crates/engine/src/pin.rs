//! Pinning (docs/sessions.md): the script, skills, templates and schemas that a session started with, by content hash.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::EngineError;
use crate::trust::document_hash::document_hash;
use bcc_check::check::check;
use bcc_check::context::CheckContext;
use bcc_check::library::SkillLibrary;
use bcc_lang::schema::embedded;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::ParsedYaml;
use bcc_lang::template::layers::TemplateFile;
use bcc_lang::template::templates::Templates;
use bcc_runtime::actions::{KINDS, project_kinds};
use bcc_runtime::program::custom::CustomKind;
use bcc_runtime::program::kind::Kind;
use bcc_runtime::program::monitor::Monitor;
use bcc_runtime::program::program::Program;
use bcc_store::content_hash::hash_of_bytes;
use bcc_store::contract::Store;
use bcc_store::rows::DocumentRow;

/// The hash by which a document is stored, in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hash_of_bytes(bytes)
}

/// The reply schemas of this release, by kind or monitor. Those of a project override them.
pub fn builtin_reply_schemas() -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = KINDS.iter().flat_map(|kind| [Some(kind.name()), kind.monitor().map(Monitor::name)]);
    let other = KINDS.iter().flat_map(|kind| kind.prompts()).map(|(name, _)| *name);
    names.flatten().chain(other).filter_map(|name| Some((name, embedded::reply(name)?)))
}

/// All texts that a session is made from.
#[derive(Clone, Debug)]
pub struct Pinned {
    pub script: Arc<SourceFile>,
    /// The files of the skills that the script uses.
    pub skills: Vec<Arc<SourceFile>>,
    /// The templates of its scheme, in look-up order.
    pub templates: Vec<TemplateFile>,
    pub schemas: BTreeMap<String, String>,
    pub kinds: BTreeMap<String, CustomKind>,
    /// Whether this program has written the script, so that nobody has to trust it.
    pub is_generated: bool,
}

/// The names and hashes of a [`Pinned`], as they are stored.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    script: Named,
    /// Not in sessions of earlier releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skills: Vec<Named>,
    templates: Vec<Placed>,
    schemas: Vec<Named>,
    /// Not in sessions of earlier releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<CustomKind>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Named {
    name: String,
    sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Placed {
    place: String,
    name: String,
    sha256: String,
}

impl Pinned {
    /// A script with its templates, the reply schemas of this release and those of the project. The skills are added after the
    /// check, which finds those that the script uses.
    pub fn new(
        script: Arc<SourceFile>,
        templates: Vec<TemplateFile>,
        project_schemas: BTreeMap<String, String>,
    ) -> Self {
        let mut schemas: BTreeMap<String, String> =
            builtin_reply_schemas().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        schemas.extend(project_schemas);
        Self { script, skills: vec![], templates, schemas, kinds: BTreeMap::new(), is_generated: false }
    }

    /// The same texts with the custom kinds of the project.
    #[must_use]
    pub(crate) fn with_kinds(self, kinds: BTreeMap<String, CustomKind>) -> Self {
        Self { kinds, ..self }
    }

    /// Adds the files of the skills that the checked script uses.
    pub(crate) fn add_skills(&mut self, program: &Program) {
        self.skills = program.skills.values().filter_map(|skill| skill.file.clone()).collect();
    }

    /// The documents that are not part of this release, each with its name and hash.
    pub(crate) fn own_documents(&self) -> Vec<(String, String)> {
        let scripts = self.skills.iter().chain(Some(&self.script).filter(|_| !self.is_generated));
        let scripts = scripts.map(|file| (file.name().to_owned(), document_hash(file.text().as_bytes())));
        let own = |file: &&TemplateFile| !file.place.starts_with("builtin/");
        let templates = self.templates.iter().filter(own);
        let hash = |text: &str| sha256(text.as_bytes());
        let templates = templates.map(|file| (format!("{}/{}", file.place, file.name), hash(&file.text)));
        let builtin: BTreeMap<_, _> = builtin_reply_schemas().collect();
        let own = |(name, text): &(&String, &String)| builtin.get(name.as_str()) != Some(&text.as_str());
        let schemas = self.schemas.iter().filter(own);
        let schemas = schemas.map(|(name, text)| (format!("schemas/replies/{name}.json"), hash(text)));
        scripts.chain(templates).chain(schemas).collect()
    }

    /// The manifest as JSON, and the documents that it names.
    pub fn documents(&self) -> Result<(String, Vec<DocumentRow>), EngineError> {
        let mut documents = Vec::new();
        let manifest = self.manifest(|text| {
            let sha256 = sha256(text.as_bytes());
            documents.push(DocumentRow { sha256: sha256.clone(), text: text.to_owned() });
            sha256
        })?;
        Ok((manifest, documents))
    }

    /// The manifest as JSON: two that are equal have the same texts.
    pub(crate) fn key(&self) -> Result<String, EngineError> {
        self.manifest(|text| sha256(text.as_bytes()))
    }

    fn manifest(&self, mut hash: impl FnMut(&str) -> String) -> Result<String, EngineError> {
        let mut of_file = |file: &Arc<SourceFile>| Named { name: file.name().to_owned(), sha256: hash(file.text()) };
        let (script, skills) = (of_file(&self.script), self.skills.iter().map(&mut of_file).collect());
        let placed = |file: &TemplateFile| Placed {
            place: file.place.clone(),
            name: file.name.clone(),
            sha256: hash(&file.text),
        };
        let templates = self.templates.iter().map(placed).collect();
        let schema = |(name, text): (&String, &String)| Named { name: name.clone(), sha256: hash(text) };
        let schemas = self.schemas.iter().map(schema).collect();
        let manifest = Manifest { script, skills, templates, schemas, kinds: self.kinds.values().cloned().collect() };
        serde_json::to_string(&manifest).map_err(|error| EngineError::failed(error.to_message()))
    }

    /// The documents that a stored manifest names.
    pub async fn load(store: &dyn Store, manifest: &str) -> Result<Self, EngineError> {
        let damaged = |detail: Message| {
            let message = msg!("the documents of the session cannot be read from the store: {detail}");
            EngineError::failed(message)
        };
        let manifest: Manifest = serde_json::from_str(manifest).map_err(|error| damaged(error.to_message()))?;
        let hashes = [&manifest.script].into_iter().chain(&manifest.skills).chain(&manifest.schemas);
        let hashes = hashes.map(|named| &named.sha256).chain(manifest.templates.iter().map(|placed| &placed.sha256));
        let stored = store.documents(&hashes.cloned().collect::<Vec<_>>()).await?;
        let text = |hash: &str| {
            let text = stored.get(hash).ok_or_else(|| damaged(msg!("document {hash} is missing")))?;
            match sha256(text.as_bytes()) == hash {
                true => Ok(text.clone()),
                false => Err(damaged(msg!("document {hash} has another content than its hash says"))),
            }
        };
        let script = text(&manifest.script.sha256)?;
        let mut skills = Vec::new();
        for named in manifest.skills {
            skills.push(Arc::new(SourceFile::new(named.name, text(&named.sha256)?)));
        }
        let mut templates = Vec::new();
        for placed in manifest.templates {
            templates.push(TemplateFile { text: text(&placed.sha256)?, place: placed.place, name: placed.name });
        }
        let mut schemas = BTreeMap::new();
        for named in manifest.schemas {
            schemas.insert(named.name, text(&named.sha256)?);
        }
        let kinds = manifest.kinds.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        let script = Arc::new(SourceFile::new(manifest.script.name, script));
        Ok(Self { script, skills, templates, schemas, kinds, is_generated: false })
    }

    /// Checks the `parsed` script against the other documents. Returns the program if there is no error, and all findings.
    pub fn check(&self, parsed: ParsedYaml) -> Result<(Option<Program>, Vec<Diagnostic>), EngineError> {
        self.check_with(parsed, &SkillLibrary::of_files(&self.skills))
    }

    /// [`Pinned::check`] with all current skills of the project, before it is known which of them the script uses.
    pub(crate) fn check_with(
        &self,
        parsed: ParsedYaml,
        library: &SkillLibrary,
    ) -> Result<(Option<Program>, Vec<Diagnostic>), EngineError> {
        self.check_against(self.compiled()?, parsed, library)
    }

    /// The templates, ready to be rendered.
    pub fn compiled(&self) -> Result<Templates, EngineError> {
        // Unpredictable, so that no text can contain a line that is mistaken for a role marker.
        let nonce = uuid::Uuid::now_v7().simple().to_string();
        Ok(Templates::new(&self.templates, &nonce)?)
    }

    /// [`Pinned::check_with`] with compiled templates.
    pub(crate) fn check_against(
        &self,
        templates: Templates,
        parsed: ParsedYaml,
        library: &SkillLibrary,
    ) -> Result<(Option<Program>, Vec<Diagnostic>), EngineError> {
        let templates = Arc::new(templates);
        let mut reply_schemas: BTreeMap<String, Value> = BTreeMap::new();
        for (kind, text) in &self.schemas {
            let schema = serde_json::from_str(text).map_err(|error| {
                EngineError::usage(msg!("the reply schema `{kind}` in schemas/replies/ is not valid JSON: {error}"))
            })?;
            reply_schemas.insert(kind.clone(), schema);
        }
        let custom_kinds = project_kinds(&self.kinds);
        let kinds: Vec<&dyn Kind> = KINDS.iter().copied().chain(custom_kinds.iter().map(AsRef::as_ref)).collect();
        let (kinds, custom, reply_schemas) = (kinds.as_slice(), &self.kinds, &reply_schemas);
        let context = CheckContext { kinds, custom, templates, reply_schemas, library, models: None };
        Ok(check(&self.script, parsed, &context))
    }
}
