//! `run` of a state of the behavior protocol (docs/protocol.md, "State files"): a script with one behavior loop, in a session that
//! begins with the notebook of the state.

use std::path::Path;
use std::sync::Arc;

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::script::read::is_protocol_state;
use bcc_lang::source::diagnostic::{Diagnostic, Severity};
use bcc_lang::source::near::near_miss;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::ParsedYaml;
use bcc_runtime::notebook::given::GivenNotebook;
use bcc_runtime::notebook::protocol::state_document::read::{StateDocument, read_state};
use bcc_runtime::program::host_services::BehaviorServers;
use serde_json::{Value, json};

use crate::error::EngineError;
use crate::project::{CONFIG_FILE, Project};

/// The maximum number of behaviors, which the state does not limit.
const MAX_BEHAVIORS: u32 = 100;

/// The maximum length of the id of the script, which is made from the name of the file, in characters.
const MAX_ID_CHARS: usize = 60;

/// What the person says about a state.
pub(crate) struct StateRequest<'a> {
    pub file: &'a Arc<SourceFile>,
    pub behavior_server: Option<&'a str>,
    /// Whether a model or a recording is named.
    pub names_model: bool,
    /// Whether the session is to begin with other cells.
    pub has_cells: bool,
}

/// A state from which a session begins.
#[derive(Clone)]
pub struct GivenState {
    pub notebook: GivenNotebook,
    pub(crate) script: Arc<SourceFile>,
    /// What is not taken over.
    pub(crate) findings: Vec<Diagnostic>,
    /// The behavior server that continues it; without one, a model does.
    server: Option<String>,
    /// Whether somebody chose the model.
    is_model_named: bool,
}

impl GivenState {
    /// The state in the file of the request; none if it is a script or another document.
    ///
    /// # Errors
    /// `Invalid` if the state is broken; `Ended` if nothing is left to do; `Usage` if it is not clear which server continues it, or if
    /// cells are given in another way.
    pub(crate) fn of(
        project: &Project,
        request: &StateRequest<'_>,
        parsed: &ParsedYaml,
    ) -> Result<Option<Self>, EngineError> {
        let shown = request.file.name();
        let Some(root) = parsed.root.as_deref().filter(|root| is_protocol_state(root)) else {
            return match request.behavior_server {
                None => Ok(None),
                Some(_) => Err(EngineError::usage(msg!("`--behavior-server` is for states of the behavior protocol"))
                    .with_help("a script names the server of a `behavior_loop` in its `server`")),
            };
        };
        let (document, mut findings) = read_state(request.file, root);
        findings.extend(parsed.diagnostics.iter().cloned());
        let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
        let Some(StateDocument { notebook, is_over }) = document.filter(|_| !has_errors) else {
            return Err(EngineError::Invalid(findings));
        };
        if is_over {
            let message = msg!("the work of {shown} is over: no step is left");
            let help = "to go on with a step, take it out of the completed ones, and make it the current one";
            return Err(EngineError::Ended { message, help: Some(help.into()) });
        }
        if request.has_cells {
            return Err(
                EngineError::usage(msg!("{shown} is a state with a notebook of its own")).with_help("omit `--from`")
            );
        }
        let server = server(project, request)?;
        let script = generated_script(shown, &notebook, server.as_deref());
        Ok(Some(Self { notebook, script, findings, server, is_model_named: request.names_model }))
    }

    /// Refuses to begin if nobody can continue the state.
    ///
    /// # Errors
    /// `Usage`: the server cannot be asked, or no model is configured.
    pub(crate) fn check_source(&self, servers: &dyn BehaviorServers, is_unconfigured: bool) -> Result<(), EngineError> {
        if let Some(server) = &self.server {
            return match servers.server(server) {
                Ok(_) => Ok(()),
                Err(error) => {
                    let refused = EngineError::usage(error.message);
                    Err(match error.help {
                        Some(help) => refused.with_help(help),
                        None => refused,
                    })
                }
            };
        }
        if !is_unconfigured || self.is_model_named {
            return Ok(());
        }
        let shown = self.script.name();
        Err(EngineError::usage(msg!(
            "{shown} does not say who continues it, and no behavior server and no model is configured"
        ))
        .with_help(msg!(
            "add a server, `[behavior_servers.NAME]` with its `url`, to {CONFIG_FILE}, or choose a model with `--model`"
        )))
    }
}

/// The server that continues a state: the named one, or the only one, unless a model was asked for.
fn server(project: &Project, request: &StateRequest<'_>) -> Result<Option<String>, EngineError> {
    let configured = &project.config.behavior_servers;
    if let Some(name) = request.behavior_server {
        if !configured.contains_key(name) {
            let error = EngineError::usage(msg!("there is no behavior server `{name}`"));
            let near = near_miss(name, configured.keys().map(String::as_str));
            return Err(error.with_help(match near {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!("add `[behavior_servers.{name}]` with its `url` to {CONFIG_FILE}"),
            }));
        }
        return Ok(Some(name.to_owned()));
    }
    if request.names_model {
        return Ok(None);
    }
    let mut names = configured.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(Some(only.clone())),
        (Some(_), Some(_)) => {
            let listed = configured.keys().map(|name| Message::text(format!("`{name}`")));
            let listed = Message::list(Joint::Item, listed);
            Err(EngineError::usage(msg!(
                "several behavior servers could continue the state: {listed}",
                listed = listed
            ))
            .with_help("choose one with `--behavior-server NAME`"))
        }
        _ => Ok(None),
    }
}

/// The script of the session. Its ids are not those of the plan, so that entering its topic moves nothing.
fn generated_script(shown: &str, notebook: &GivenNotebook, server: Option<&str>) -> Arc<SourceFile> {
    let state = &notebook.state;
    let steps = || state.workflow.iter().flat_map(|plan| &plan.stages).flat_map(|stage| &stage.steps);
    let mut topic = "continue_state".to_owned();
    while steps().any(|step| step.id == topic) {
        topic.push('_');
    }
    let mut config = json!({ "max_behaviors": MAX_BEHAVIORS });
    if let (Some(server), Some(config)) = (server, config.as_object_mut()) {
        config.insert("server".to_owned(), Value::from(server));
    }
    let stem = Path::new(shown).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let id: String = stem
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
        .take(MAX_ID_CHARS)
        .collect();
    let id = if id.starts_with(|first: char| first.is_ascii_alphabetic()) { id } else { format!("state_{id}") };
    let action = json!({ "action_type": "behavior_loop", "action_id": "continue_work", "config": config });
    let topics = json!([{ "topic_id": topic, "actions": [action] }]);
    let session = json!({ "session_id": id, "phases": [{ "phase_id": "continue_phase", "topics": topics }] });
    let mut session = json!({ "session": session });
    // The language of the name selects the prompts, if no scheme is named.
    let goal = state.given.as_ref().and_then(|given| given.goal.clone());
    let name = state.title.clone().or(goal).or_else(|| Some(state.current_step()?.name.clone()));
    if let (Some(name), Some(fields)) = (name, session.get_mut("session").and_then(Value::as_object_mut)) {
        let name: String = name.chars().filter(|letter| !letter.is_control()).take(MAX_ID_CHARS).collect();
        fields.insert("session_name".to_owned(), Value::from(name));
    }
    let text = serde_json::to_string_pretty(&session).unwrap_or_default() + "\n";
    Arc::new(SourceFile::new(shown, text))
}
