//! A template by itself: it gets the variables that it is given, and nothing of an engine or a script.

use std::path::Path;
use std::sync::Arc;

use crate::engine::error::EngineError;
use crate::engine::files::TemplateFolders;
use crate::engine::project::Project;
use crate::engine::render::action::kind_of;
use crate::engine::render::lacking;
use crate::engine::render::prompt::Prompt;
use crate::engine::render::request::RenderRequest;
use crate::engine::render::scene::alone;
use crate::program::messages::messages;
use crate::prompt::front::HistoryMode;
use crate::prompt::layers::collect;
use crate::prompt::marks::Marks;
use crate::prompt::names::Names;
use crate::prompt::templates::Templates;

/// The prompt of the template `name` with these variables only.
///
/// # Errors
/// `Usage` when there is no such template or scheme, or the variables cannot be read; `Failed` when it cannot be rendered.
pub fn of_template(project: &Project, request: &RenderRequest, name: &str) -> Result<Prompt, EngineError> {
    let marks = Arc::new(Marks::default());
    let templates = templates(project, request.scheme.as_deref())?.marking(Arc::clone(&marks));
    let version = name.strip_suffix(".md").unwrap_or(name).strip_prefix(kind_of(name)).unwrap_or_default();
    let version: u32 = version.strip_prefix("_v").and_then(|version| version.parse().ok()).unwrap_or(1);
    let template = templates.get(kind_of(name), version)?;
    let scopes = alone(request.variables_file.as_deref(), &request.variables)?;
    let rendered = messages(&template, &Names::new(scopes)).map_err(|error| {
        let failed = EngineError::failed(error.to_string());
        match error.help {
            Some(help) => failed.with_help(help),
            None => failed,
        }
    })?;
    let file = marks.template().unwrap_or_default();
    let loaded = templates.number(&file).and_then(|number| templates.files().get(number));
    let mut prompt = loaded.map(Prompt::of).unwrap_or_default();
    prompt.messages = rendered;
    lacking::note(&mut prompt, &templates, &marks);
    if prompt.history == HistoryMode::Messages {
        prompt.notes.push(
            "the template says `history: messages`: the messages of a talk would stand behind its system message"
                .to_owned(),
        );
    }
    Ok(prompt)
}

/// The templates that a session of this scheme would begin with now; without one, of the project's.
///
/// # Errors
/// When there is no such scheme, or a file cannot be read.
pub fn templates(project: &Project, scheme: Option<&str>) -> Result<Templates, EngineError> {
    let scheme = scheme.or(project.config.project.scheme.as_deref());
    let files = collect(&TemplateFolders::of(&project.directory), scheme)?;
    Ok(Templates::new(&files, &uuid::Uuid::now_v7().simple().to_string())?)
}

/// Whether a path is a file that could hold a script, so that NAME and `--script` are not mixed up.
pub fn looks_like_a_script(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}
