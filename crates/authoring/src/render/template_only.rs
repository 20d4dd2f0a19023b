//! Renders a template without a script: it gets only the given variables.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use std::path::Path;
use std::sync::Arc;

use crate::render::missing_names;
use crate::render::prompt::Prompt;
use crate::render::request::RenderRequest;
use crate::render::variables::only_given;
use crate::templates::catalog::TemplateCatalog;
use crate::templates::find::find;
use bcc_engine::error::EngineError;
use bcc_engine::files::TemplateFolders;
use bcc_engine::project::Project;
use bcc_lang::template::front_matter::HistoryMode;
use bcc_lang::template::layers::{DEFAULT_SCHEME, collect};
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::messages::messages;

/// The prompt of the template `name` with the given variables.
/// Errors: `Usage` if there is no such template or scheme, or the variables cannot be read; `Failed` if it cannot be rendered.
pub fn prompt_of_template(project: &Project, request: &RenderRequest, name: &str) -> Result<Prompt, EngineError> {
    let marks = Arc::new(Marks::default());
    let scheme = request.scheme.as_deref().or(project.config.project.scheme.as_deref());
    let catalog = TemplateCatalog::of(&project.directory);
    let served = find(&catalog, scheme.unwrap_or(DEFAULT_SCHEME), name, None)?;
    let templates = templates(project, scheme)?.with_marks(Arc::clone(&marks));
    let matches = |loaded: &LoadedTemplate| loaded.place() == served.file.place && loaded.name() == served.name;
    let template = templates.at(templates.files().iter().position(matches).unwrap_or(usize::MAX))?;
    let scopes = only_given(request.variables_file.as_deref(), &request.variables)?;
    let names = TemplateNames::new(scopes);
    let rendered = messages(&template, &names).map_err(|error| {
        let failed = EngineError::failed(missing_names::with_unknown_names(error.to_message(), &marks));
        match error.help {
            Some(help) => failed.with_help(help),
            None => failed,
        }
    })?;
    let loaded = templates.last_rendered(&marks).and_then(|number| templates.files().get(number));
    let mut prompt = loaded.map(Prompt::of).unwrap_or_default();
    prompt.messages = rendered;
    prompt.warnings = names.take_warnings();
    missing_names::note(&mut prompt, &templates, &marks);
    if prompt.history == HistoryMode::Messages {
        let note =
            "the template sets `history: messages`: the messages of a conversation would follow its system message";
        prompt.notes.push(Message::word(note));
    }
    Ok(prompt)
}

/// The templates of a new session with this scheme, or with that of the project.
/// Errors: if there is no such scheme, or a file cannot be read.
pub fn templates(project: &Project, scheme: Option<&str>) -> Result<Templates, EngineError> {
    let scheme = scheme.or(project.config.project.scheme.as_deref());
    let files = collect(&TemplateFolders::of(&project.directory), scheme)?;
    Ok(Templates::new(&files, &uuid::Uuid::now_v7().simple().to_string())?)
}

/// Whether a name looks like a script file, to detect that NAME and `--script` were confused.
pub fn looks_like_a_script(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}
