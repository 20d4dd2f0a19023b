//! What begins by a link, and the conversations that began by it.

use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::Engine;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_lang::source::compose::parse;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::value::exact::ExactValues;
use bcc_runtime::program::program::Program;
use bcc_store::contract::Store;
use bcc_store::link_rows::LinkRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::{hex, new_secret, token_hash};
use crate::problem::Problem;

/// How many conversations begin by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// A new one for each visitor.
    Open,
    /// One.
    OneTime,
}

impl LinkKind {
    pub(crate) const fn limit(self) -> Option<u64> {
        match self {
            Self::Open => None,
            Self::OneTime => Some(1),
        }
    }
}

/// What a person agrees to before a conversation begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsentText {
    /// The text. Its lines are shown as they are.
    pub text: String,
    /// The language of the text, such as `en` or `zh`.
    pub language: String,
}

impl ConsentText {
    /// The hash of the text, by which it is kept what somebody agreed to.
    pub(crate) fn sha256(&self) -> String {
        hex(&token_hash(&self.text))
    }
}

/// What begins by a link, as the store keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkTerms {
    /// The path of the script in the project.
    pub script: String,
    pub kind: LinkKind,
    #[serde(default)]
    pub variables: ExactValues,
    /// The user of all its sessions. Without it, each has a user of its own.
    pub user: Option<String>,
    pub consent: Option<ConsentText>,
    /// The language of the page: `en` or `zh`.
    pub language: String,
    /// The name of the conversation for people.
    pub title: String,
    /// The name of the token of who made it.
    pub created_by: Option<String>,
}

impl LinkTerms {
    pub(crate) fn of(link: &LinkRow) -> Result<Self, Problem> {
        let unreadable = |error| Problem::failure(&msg!("a link in the store cannot be read: {error}"));
        serde_json::from_str(&link.body).map_err(unreadable)
    }

    /// The language of the page.
    pub(crate) fn language(&self) -> Language {
        Language::parse(&self.language).unwrap_or_default()
    }
}

/// The language in which a script is written.
pub fn script_language(program: &Program) -> Language {
    let written = parse(&program.file).root.and_then(|root| PromptLanguage::of_script(&root));
    match written.unwrap_or_else(|| program.templates.language()) {
        PromptLanguage::Zh => Language::Chinese,
        PromptLanguage::En => Language::English,
    }
}

/// A link that was made, and its token, which is stored nowhere.
#[derive(Debug)]
pub struct NewLink {
    pub row: LinkRow,
    /// The path of its page.
    pub path: String,
}

impl NewLink {
    /// Makes a link with these terms.
    ///
    /// # Errors
    /// Those of the store; the system gives no random numbers.
    pub(crate) async fn make(
        store: &dyn Store,
        terms: &LinkTerms,
        expires_at: Option<String>,
    ) -> Result<Self, Problem> {
        let token = new_secret().ok_or_else(|| Problem::failure(&"the system gives no random numbers".into()))?;
        let unwritable = |error| Problem::failure(&msg!("the link cannot be written: {error}"));
        let row = LinkRow {
            id: secret_id("link"),
            token_sha256: hex(&token_hash(&token)),
            created_at: stamp(now()),
            expires_at,
            body: serde_json::to_string(terms).map_err(unwritable)?,
            ..LinkRow::default()
        };
        store.create_link(&row).await?;
        Ok(Self { row, path: format!("/t/{token}") })
    }

    /// Makes a link for one conversation of the script, which is run by the command line.
    ///
    /// # Errors
    /// The store cannot be written, or the system gives no random numbers.
    pub async fn for_one_talk(engine: &Engine, program: &Program, script: String) -> Result<Self, Problem> {
        let terms = LinkTerms {
            script,
            kind: LinkKind::OneTime,
            variables: ExactValues::new(),
            user: None,
            consent: None,
            language: script_language(program).name().to_owned(),
            title: title(program),
            created_by: None,
        };
        Self::make(engine.store().as_ref(), &terms, None).await
    }
}

/// The name of a conversation for people.
pub(crate) fn title(program: &Program) -> String {
    program.name.clone().unwrap_or_else(|| program.id.clone())
}
