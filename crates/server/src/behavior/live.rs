//! The lines of a streamed behavior, sent as soon as the model or the script has written them.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_llm::model::provider::LiveObserver;
use bcc_llm::reply::live_list::{LiveList, LiveListPart};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::Instrument;

use crate::behavior::actions::NextBehavior;
use crate::behavior::answers::{live_behavior, text_without_actions};
use crate::behavior::legacy_form::LegacyForm;
use crate::behavior::lines::{LINES, lines};
use crate::behavior::request::BehaviorRequest;
use crate::problem::Problem;
use crate::state::ServerState;

/// How many actions are sent before the reply is complete. The rest of a longer reply follows at its end, as far as it is used.
const MAX_LIVE_ACTIONS: usize = 1_000;

/// The names that the lines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineForm {
    Current,
    /// Those of older notebook clients, for which every line is an action.
    Older,
}

/// Turns the text of a model into lines while it arrives. What was sent stays sent: the complete reply only adds to it.
pub(crate) struct LiveBehavior {
    request: BehaviorRequest,
    language: Language,
    form: LineForm,
    client: UnboundedSender<Value>,
    sent: Vec<Value>,
    /// Whether the first line is the `behavior`.
    starts_with_behavior: bool,
    list: LiveList,
    /// The elements of a script's answer that were read so far.
    elements: Vec<Value>,
    actions: usize,
    /// What the older form of the next action depends on.
    legacy: LegacyForm,
    /// How many of the lines that were sent the current text of the model has as well.
    repeated: usize,
    /// Whether the current text has other lines than those that were sent.
    is_other: bool,
}

impl LiveObserver for LiveBehavior {
    fn text(&mut self, piece: &str) {
        for part in self.list.push(piece) {
            match part {
                LiveListPart::Start(fields) => self.start(fields),
                LiveListPart::Item(action) => self.action(&action),
            }
        }
    }

    fn restart(&mut self) {
        self.list = actions_list();
        self.elements.clear();
        self.legacy = LegacyForm::default();
        (self.actions, self.repeated, self.is_other) = (0, 0, false);
    }
}

fn actions_list() -> LiveList {
    LiveList::of_field("actions")
}

impl LiveBehavior {
    fn new(request: BehaviorRequest, language: Language, form: LineForm, client: UnboundedSender<Value>) -> Self {
        Self {
            request,
            language,
            form,
            client,
            sent: vec![],
            starts_with_behavior: false,
            list: actions_list(),
            elements: vec![],
            actions: 0,
            legacy: LegacyForm::default(),
            repeated: 0,
            is_other: false,
        }
    }

    /// Whether the client has got a line.
    pub(crate) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The list begins. A `behavior` that the model writes later is sent after the actions.
    fn start(&mut self, mut fields: Map<String, Value>) {
        if self.form == LineForm::Older || !fields.get("behavior").is_some_and(Value::is_object) {
            return;
        }
        fields.insert("actions".to_owned(), json!([]));
        if let Ok(behavior) = NextBehavior::read(&Value::Object(fields))
            && let Some(line) = behavior.to_lines(&self.request).into_iter().next()
        {
            self.starts_with_behavior = true;
            self.line(line);
        }
    }

    /// What the script has appended to its answer so far; the first ones were there before. If they were not, nothing more is sent.
    pub(crate) fn elements(&mut self, elements: &[Value]) {
        let Some(appended) = elements.strip_prefix(self.elements.as_slice()) else {
            self.is_other = true;
            return;
        };
        self.elements.extend_from_slice(appended);
        for element in appended {
            // A list says nothing about the behavior. Until an action can be carried out, nothing is sent: the script may be run again.
            if self.form == LineForm::Current
                && !self.has_sent()
                && NextBehavior::read(&json!([element])).is_ok()
                && let Some(line) = self.head_of_list()
            {
                self.starts_with_behavior = true;
                self.line(line);
            }
            self.action(element);
        }
    }

    fn head_of_list(&self) -> Option<Value> {
        let behavior = NextBehavior::read(&json!([])).ok()?;
        behavior.to_lines(&self.request).into_iter().next()
    }

    fn action(&mut self, action: &Value) {
        self.actions += 1;
        if self.actions > MAX_LIVE_ACTIONS {
            return;
        }
        // One that cannot be carried out is left out of the complete reply as well.
        let Ok(behavior) = NextBehavior::read(&json!({ "actions": [action] })) else { return };
        let lines = match self.form {
            LineForm::Current => behavior.action_lines(),
            LineForm::Older => behavior.older_action_lines(&mut self.legacy),
        };
        for line in lines {
            self.line(line);
        }
    }

    fn line(&mut self, line: Value) {
        match self.sent.get(self.repeated) {
            _ if self.is_other => return,
            Some(sent) if *sent != line => {
                self.is_other = true;
                return;
            }
            Some(_) => {}
            None => self.send(line),
        }
        self.repeated += 1;
    }

    fn send(&mut self, line: Value) {
        self.sent.push(line.clone());
        // A client that has left gets nothing; this is dropped then.
        let _ = self.client.send(line);
    }

    /// Sends what is missing of the complete reply; without one, or if it is not what was sent, lines that say so.
    fn finish(mut self, reply: Option<&NextBehavior>) {
        let language = self.language;
        let nothing = || NextBehavior::nothing(&msg!("no usable actions were given").render(language));
        let lines = match reply {
            Some(reply) => self.lines_of(reply),
            None if self.has_sent() => vec![],
            None => self.lines_of(&nothing()),
        };
        let rest = match lines.strip_prefix(self.sent.as_slice()) {
            Some(rest) if !lines.is_empty() => rest.to_vec(),
            _ => {
                tracing::warn!(sent = self.sent.len(), "the rest of a reply for a client cannot be used");
                vec![self.unfinished()]
            }
        };
        for line in rest {
            self.send(line);
        }
    }

    /// The lines of a complete reply, in the order in which the first ones were sent.
    fn lines_of(&self, reply: &NextBehavior) -> Vec<Value> {
        if self.form == LineForm::Older {
            return reply.to_older_lines(&self.request, &text_without_actions(&self.request, self.language));
        }
        let mut lines = reply.to_lines(&self.request);
        if self.has_sent() && !self.starts_with_behavior && lines.len() > 1 {
            let behavior = lines.remove(0);
            lines.insert(lines.len().saturating_sub(1), behavior);
        }
        lines
    }

    /// The last line after actions whose rest cannot be used.
    fn unfinished(&self) -> Value {
        let reason = msg!("the rest of the actions could not be read").render(self.language);
        match self.form {
            LineForm::Current => NextBehavior::nothing(&reason).to_lines(&self.request).pop().unwrap_or_default(),
            LineForm::Older => json!({ "action": { "type": "add", "shot_type": "markdown", "content": reason } }),
        }
    }
}

/// Answers with the lines of the next behavior. The model is asked as long as the client reads.
///
/// # Errors
/// As when a behavior is asked for, before the first line.
pub(crate) async fn stream_behavior(
    state: ServerState,
    request: BehaviorRequest,
    language: Language,
    form: LineForm,
) -> Result<Response, Problem> {
    let (client, received) = unbounded_channel();
    let work = async move {
        let mut live = LiveBehavior::new(request.clone(), language, form, client);
        match live_behavior(&state, &request, &mut live).await {
            Err(problem) if !live.has_sent() => return Err(problem),
            Err(_) => live.finish(None),
            Ok(reply) => live.finish(reply.as_ref()),
        }
        Ok(())
    };
    let mut sent = Box::pin(sent_lines(Box::pin(work.in_current_span()), received));
    let Some(first) = sent.next().await.transpose()? else { return Ok(lines([])) };
    // Only the first one can be a problem.
    let rest = sent.filter_map(async |line| line.ok());
    let bytes = stream::once(async { first }).chain(rest).map(|line| Ok::<_, Infallible>(line_bytes(&line)));
    Ok(([(header::CONTENT_TYPE, LINES)], Body::from_stream(bytes)).into_response())
}

fn line_bytes(line: &Value) -> Bytes {
    Bytes::from(format!("{line}\n"))
}

type Work = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send>>;

/// The lines that the work sends, which goes on while they are read. A problem of the work is the last item.
fn sent_lines(work: Work, lines: UnboundedReceiver<Value>) -> impl Stream<Item = Result<Value, Problem>> + Send {
    stream::unfold((Some(work), lines), async |(mut work, mut lines)| {
        while let Some(running) = &mut work {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => return Some((Ok(line), (work, lines))),
                ended = running => {
                    work = None;
                    if let Err(problem) = ended {
                        return Some((Err(problem), (work, lines)));
                    }
                }
            }
        }
        let line = lines.recv().await?;
        Some((Ok(line), (work, lines)))
    })
}
