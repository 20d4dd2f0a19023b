//! Tries models: one word each, and what of the rest a model supports.

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
use crate::models::environment::key_alone;
use crate::models::factory::ModelFactory;
use crate::models::shared::{SharedModels, connect};
use crate::project::Project;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose, Task};
use bcc_llm::providers::http::config::{ServerConfig, Structured};

const WORD: &str = "Hello";

/// Enough for a greeting and, of most models that think first, for their thoughts.
const MOST_TOKENS: u32 = 512;

/// The longest that one request may take, whatever the configuration allows.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);

/// A busy server is given one more chance.
const ATTEMPTS: u32 = 2;

/// What trying a model showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelCheck {
    pub name: String,
    /// Its provider and model, as events show it.
    pub model: String,
    pub ok: bool,
    /// Whether its server was reached; `None` where there is none.
    pub reachable: Option<bool>,
    pub answers: bool,
    /// Whether its words came piece by piece; `None` where a reply is too short to tell, or there is none.
    pub streams: Option<bool>,
    pub counts_tokens: Option<bool>,
    /// Whether it takes a JSON Schema for its reply, and keeps to it.
    pub json_schema: Option<bool>,
    /// Whether it can be made to answer with a JSON object.
    pub json_object: Option<bool>,
    /// Whether it takes the same schema as a tool.
    pub tool: Option<bool>,
    pub first_token_ms: Option<u64>,
    pub ms: Option<u64>,
    pub error: Option<Message>,
    pub help: Option<Message>,
    pub note: Option<Message>,
}

/// The names of all models of a project, as far as there are any to try.
pub fn every(project: &Project, environment: &Environment) -> Vec<String> {
    let alone = key_alone(&project.config, environment).map(|_| "default".to_owned());
    alone.into_iter().chain(project.config.models.keys().cloned()).collect()
}

/// Something to try.
enum Subject {
    Server(ProviderKind, Box<ServerConfig>),
    Offline,
    Replay,
}

/// Tries the models of these names at the same time; the results stand in their order.
///
/// # Errors
/// When there is no such model, or one of them would be sent something and the project is not trusted. What is wrong with a
/// model itself is part of its result.
pub async fn check(
    project: &Project,
    environment: &Environment,
    names: &[String],
) -> Result<Vec<ModelCheck>, EngineError> {
    let shared = SharedModels::default();
    let maker = ModelFactory { project, environment, shared: &shared };
    for name in names {
        let table = project.config.models.get(name);
        if table.is_none() && name != OFFLINE && name != "default" {
            return Err(maker.unknown(name));
        }
        if !project.trusted && table.is_some_and(|table| table.provider.sends()) {
            return Err(maker.untrusted(name));
        }
    }
    let mut running = Vec::new();
    for name in names {
        let subject = subject(&maker, name);
        let name = name.clone();
        // Each on a task of its own: they wait for different servers.
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

fn subject(maker: &ModelFactory<'_>, name: &str) -> Result<Subject, EngineError> {
    let server = |kind, config| Ok(Subject::Server(kind, Box::new(config)));
    match maker.project.config.models.get(name) {
        Some(table) => match table.provider {
            ProviderKind::OpenAi | ProviderKind::Anthropic => server(table.provider, maker.server(name, table)?),
            ProviderKind::Offline => Ok(Subject::Offline),
            ProviderKind::Replay => maker.replay(name, table).map(|_| Subject::Replay),
        },
        None => match key_alone(&maker.project.config, maker.environment).filter(|_| name == "default") {
            Some(alone) => server(alone.kind, alone.server(maker.environment)?),
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
    plain.max_attempts = ATTEMPTS.min(config.max_attempts);
    plain.timeout = LONGEST_REQUEST.min(config.timeout);
    // A model that thinks for a set number of tokens wants to be allowed more of them.
    plain.max_tokens = config.max_tokens.or(Some(MOST_TOKENS));
    let with = |structured| ServerConfig { structured, ..plain.clone() };
    let (heard, reply) = match ask(kind, with(Structured::Off), None).await {
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
    checked.streams = heard.streams(&reply.text);
    checked.first_token_ms = heard.first.map(millis);
    checked.ms = Some(millis(heard.took));
    if !checked.answers {
        let help = "a reasoning model may need more tokens; try a larger `max_tokens`, or another model";
        let why = if reply.cut_off { msg!(" within {MOST_TOKENS} tokens") } else { Message::default() };
        return checked.fail(msg!("it returned no text{why}"), Some(help.into()));
    }
    checked.ok = true;
    let forms = kind.forms();
    for (form, result) in [
        (Structured::JsonSchema, &mut checked.json_schema),
        (Structured::JsonObject, &mut checked.json_object),
        (Structured::Tool, &mut checked.tool),
    ] {
        if forms.contains(&form) {
            *result = Some(keeps_to(kind, with(form)).await);
        }
    }
    // A form that the settings name is asked for in every call, and nothing else is tried.
    if matches!(config.structured, Structured::JsonSchema | Structured::JsonObject | Structured::Tool)
        && let Err(error) = ask(kind, with(config.structured), Some(tiny())).await
    {
        let named = config.structured.name();
        let help = msg!(
            "write `structured = \"auto\"` to use another form when the server rejects one ({named} is not accepted)"
        );
        checked.fail(error.to_message(), Some(help));
    }
}

/// A schema that any model can keep to.
fn tiny() -> Value {
    json!({
        "type": "object",
        "properties": { "hello": { "type": "boolean" } },
        "required": ["hello"],
        "additionalProperties": false,
    })
}

/// Whether a reply that is asked for in this form comes in it.
async fn keeps_to(kind: ProviderKind, config: ServerConfig) -> bool {
    let named = config.structured != Structured::JsonObject;
    let Ok((_, reply)) = ask(kind, config, Some(tiny())).await else { return false };
    let value: Option<Value> = serde_json::from_str(reply.text.trim()).ok();
    value.is_some_and(|value| if named { value.get("hello").is_some_and(Value::is_boolean) } else { value.is_object() })
}

async fn ask(
    kind: ProviderKind,
    config: ServerConfig,
    schema: Option<Value>,
) -> Result<(CapturedDeltas, ModelReply), ModelError> {
    let provider: Arc<dyn Provider> = connect(kind, config)?;
    // Servers refuse to promise JSON when the prompt does not mention it.
    let content = if schema.is_some() { "Answer in JSON: {\"hello\": true}" } else { WORD };
    let request = ModelRequest {
        messages: vec![ChatMessage { role: Role::User, content: content.to_owned() }],
        schema: schema.map(Arc::new),
        temperature: None,
        max_tokens: None,
        task: Task {
            purpose: Purpose::Action,
            kind: String::new(),
            action_id: String::new(),
            path: String::new(),
            content: content.to_owned(),
            wanted: Vec::new(),
            answer: None,
            inputs: Vec::new(),
            round: 1,
            call: 0,
            opening: true,
        },
    };
    let mut heard = CapturedDeltas::new();
    let reply = provider.complete(&request, &mut heard).await?;
    heard.took = heard.asked.elapsed();
    Ok((heard, reply))
}

/// When the pieces of a reply came.
struct CapturedDeltas {
    asked: Instant,
    pieces: u64,
    first: Option<Duration>,
    took: Duration,
}

impl CapturedDeltas {
    #[allow(clippy::disallowed_methods, reason = "how long a server takes is what is asked for here")]
    fn new() -> Self {
        Self { asked: Instant::now(), pieces: 0, first: None, took: Duration::ZERO }
    }

    /// Whether `text` came piece by piece; a word or two say nothing about that.
    fn streams(&self, text: &str) -> Option<bool> {
        const TELLING: usize = 16;
        match self.pieces {
            0 => None,
            1 => (text.chars().count() > TELLING).then_some(false),
            _ => Some(true),
        }
    }
}

impl LiveObserver for CapturedDeltas {
    fn text(&mut self, _piece: &str) {
        self.pieces += 1;
        self.first.get_or_insert(self.asked.elapsed());
    }

    fn restart(&mut self) {
        let anew = Self::new();
        *self = anew;
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

    /// The same for programs.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
