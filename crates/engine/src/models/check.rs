//! `models check`: sends short prompts to models, and reports which features they support.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::config::model_table::ProviderKind;
use crate::config::validation::OFFLINE;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::models::environment::environment_key;
use crate::models::factory::ModelFactory;
use crate::models::shared::{SharedModels, connect};
use crate::project::Project;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Task};
use bcc_llm::providers::http::config::{ServerConfig, Structured};

const GREETING: &str = "Hello";

/// Enough for a greeting, and for the reasoning of most reasoning models.
const MAX_TOKENS: u32 = 512;

/// The limit on the timeout of one request, even if the configuration sets a longer one.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(30);

/// A busy server is asked a second time.
const MAX_ATTEMPTS: u32 = 2;

/// The result of the check of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelCheck {
    pub name: String,
    /// Its provider and model, as in events.
    pub model: String,
    pub ok: bool,
    /// Whether its server was reached; `None` if it has no server.
    pub reachable: Option<bool>,
    pub answers: bool,
    /// Whether its reply was streamed; `None` if the reply is too short to tell, or there is none.
    pub streams: Option<bool>,
    pub counts_tokens: Option<bool>,
    /// Whether it accepts a JSON Schema for its reply, and follows it.
    pub json_schema: Option<bool>,
    /// Whether it can be forced to reply with a JSON object.
    pub json_object: Option<bool>,
    /// Whether it accepts the same schema as a tool.
    pub tool: Option<bool>,
    pub first_token_ms: Option<u64>,
    pub ms: Option<u64>,
    pub error: Option<Message>,
    pub help: Option<Message>,
    pub note: Option<Message>,
}

/// The names of all models of a project, and `default` if the environment defines it.
pub fn model_names(project: &Project, environment: &Environment) -> Vec<String> {
    let key = environment_key(&project.config, environment).map(|_| "default".to_owned());
    key.into_iter().chain(project.config.models.keys().cloned()).collect()
}

/// A model to check.
enum Subject {
    Server(ProviderKind, Box<ServerConfig>),
    Offline,
    Replay,
}

/// Checks these models in parallel, and returns the results in the same order.
///
/// # Errors
/// When there is no such model, or a model needs a server and the project is not trusted. Errors of a model itself are part of
/// its result.
pub async fn check(
    project: &Project,
    environment: &Environment,
    names: &[String],
) -> Result<Vec<ModelCheck>, EngineError> {
    let shared = SharedModels::default();
    let factory = ModelFactory { project, environment, shared: &shared };
    for name in names {
        let table = project.config.models.get(name);
        if table.is_none() && name != OFFLINE && name != "default" {
            return Err(factory.unknown(name));
        }
        if !project.trusted && table.is_some_and(|table| table.provider.sends()) {
            return Err(factory.untrusted(name));
        }
    }
    let mut running = Vec::new();
    for name in names {
        let subject = subject(&factory, name);
        let name = name.clone();
        // One task each: they wait for different servers.
        running.push(tokio::spawn(async move {
            let mut checked = ModelCheck { name, ..ModelCheck::default() };
            match subject {
                Ok(subject) => subject.check(&mut checked).await,
                Err(error) => checked.fail(error.to_message(), error.help().cloned()),
            }
            checked
        }));
    }
    let mut results = Vec::new();
    for task in running {
        results.push(task.await.map_err(|error| EngineError::failed(msg!("a check ended unexpectedly ({error})")))?);
    }
    Ok(results)
}

fn subject(factory: &ModelFactory<'_>, name: &str) -> Result<Subject, EngineError> {
    let server = |kind, config| Ok(Subject::Server(kind, Box::new(config)));
    match factory.project.config.models.get(name) {
        Some(table) => match table.provider {
            ProviderKind::OpenAi | ProviderKind::Anthropic => server(table.provider, factory.server(name, table)?),
            ProviderKind::Offline => Ok(Subject::Offline),
            ProviderKind::Replay => factory.replay(name, table).map(|_| Subject::Replay),
        },
        None => match environment_key(&factory.project.config, factory.environment).filter(|_| name == "default") {
            Some(key) => server(key.kind, key.server(factory.environment)?),
            None => Ok(Subject::Offline),
        },
    }
}

impl Subject {
    async fn check(self, checked: &mut ModelCheck) {
        match self {
            Self::Server(kind, config) => check_server(kind, &config, checked).await,
            Self::Offline => {
                checked.model = OFFLINE.to_owned();
                (checked.ok, checked.answers) = (true, true);
                checked.note = Some(msg!("built in, rule-based, no AI"));
            }
            Self::Replay => {
                checked.model = ProviderKind::Replay.name().to_owned();
                (checked.ok, checked.answers) = (true, true);
                checked.note = Some(msg!("its replies file can be read"));
            }
        }
    }
}

async fn check_server(kind: ProviderKind, config: &ServerConfig, checked: &mut ModelCheck) {
    checked.model = format!("{}:{}", kind.name(), config.model);
    let mut plain = config.clone();
    plain.max_attempts = MAX_ATTEMPTS.min(config.max_attempts);
    plain.timeout = MAX_REQUEST_TIME.min(config.timeout);
    // A reasoning model with a token budget needs a larger limit, which is configured.
    plain.max_tokens = config.max_tokens.or(Some(MAX_TOKENS));
    let with = |structured| ServerConfig { structured, ..plain.clone() };
    let (captured, reply) = match ask(kind, with(Structured::Off), None).await {
        Ok(answer) => answer,
        Err(error) => {
            checked.reachable = match error {
                ModelError::Config { .. } | ModelError::Timeout { .. } => None,
                ModelError::Unreachable { .. } => Some(false),
                _ => Some(true),
            };
            return checked.fail(error.to_message(), None);
        }
    };
    checked.reachable = Some(true);
    checked.answers = !reply.text.trim().is_empty();
    checked.counts_tokens = Some(reply.counted);
    checked.streams = captured.streams(&reply.text);
    checked.first_token_ms = captured.first.map(millis);
    checked.ms = Some(millis(captured.elapsed));
    if !checked.answers {
        let help = "a reasoning model may need more tokens; try a larger `max_tokens`, or another model";
        let limit = match reply.cut_off {
            true => msg!(" within {MAX_TOKENS} tokens"),
            false => Message::default(),
        };
        return checked.fail(msg!("it returned no text{limit}"), Some(help.into()));
    }
    checked.ok = true;
    let forms = kind.forms();
    for (form, result) in [
        (Structured::JsonSchema, &mut checked.json_schema),
        (Structured::JsonObject, &mut checked.json_object),
        (Structured::Tool, &mut checked.tool),
    ] {
        if forms.contains(&form) {
            *result = Some(follows_form(kind, with(form)).await);
        }
    }
    // A configured form is used in every call, without a fallback to another form.
    if matches!(config.structured, Structured::JsonSchema | Structured::JsonObject | Structured::Tool)
        && let Err(error) = ask(kind, with(config.structured), Some(test_schema())).await
    {
        let named = config.structured.name();
        let help = msg!(
            "write `structured = \"auto\"` to use another form when the server rejects one ({named} is not accepted)"
        );
        checked.fail(error.to_message(), Some(help));
    }
}

/// A schema that any model can follow.
fn test_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "hello": { "type": "boolean" } },
        "required": ["hello"],
        "additionalProperties": false,
    })
}

/// Whether the model replies in this form if it is requested.
async fn follows_form(kind: ProviderKind, config: ServerConfig) -> bool {
    let named = config.structured != Structured::JsonObject;
    let Ok((_, reply)) = ask(kind, config, Some(test_schema())).await else { return false };
    let value: Option<Value> = serde_json::from_str(reply.text.trim()).ok();
    value.is_some_and(|value| if named { value.get("hello").is_some_and(Value::is_boolean) } else { value.is_object() })
}

async fn ask(
    kind: ProviderKind,
    config: ServerConfig,
    schema: Option<Value>,
) -> Result<(CapturedDeltas, ModelReply), ModelError> {
    let provider: Arc<dyn Provider> = connect(kind, config)?;
    // Servers reject the JSON mode if the prompt does not mention JSON.
    let content = if schema.is_some() { "Answer in JSON: {\"hello\": true}" } else { GREETING };
    let request = ModelRequest {
        messages: vec![ChatMessage { role: Role::User, content: content.to_owned() }],
        schema: schema.map(Arc::new),
        temperature: None,
        max_tokens: None,
        task: Task { content: content.to_owned(), round: 1, opening: true, ..Task::default() },
    };
    let mut captured = CapturedDeltas::new();
    let reply = provider.complete(&request, &mut captured).await?;
    captured.elapsed = captured.started.elapsed();
    Ok((captured, reply))
}

/// When the deltas of a reply were received.
struct CapturedDeltas {
    started: Instant,
    count: u64,
    first: Option<Duration>,
    elapsed: Duration,
}

impl CapturedDeltas {
    #[allow(clippy::disallowed_methods, reason = "how long a server takes is what is asked for here")]
    fn new() -> Self {
        Self { started: Instant::now(), count: 0, first: None, elapsed: Duration::ZERO }
    }

    /// Whether `text` was streamed; unknown for a single short delta.
    fn streams(&self, text: &str) -> Option<bool> {
        const MIN_CHARACTERS: usize = 16;
        match self.count {
            0 => None,
            1 => (text.chars().count() > MIN_CHARACTERS).then_some(false),
            _ => Some(true),
        }
    }
}

impl LiveObserver for CapturedDeltas {
    fn text(&mut self, _piece: &str) {
        self.count += 1;
        self.first.get_or_insert(self.started.elapsed());
    }

    fn restart(&mut self) {
        *self = Self::new();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl ModelCheck {
    fn fail(&mut self, error: Message, help: Option<Message>) {
        self.ok = false;
        self.error = Some(error);
        self.help = help;
    }

    /// The result as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
