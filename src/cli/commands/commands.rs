//! Runs the terminal commands, such as `/vars`, which give a script author information during a conversation.

use serde_json::Value;

use crate::cli::commands::why::WhyRequest;
use crate::cli::commands::{back, place, plan, prompt, variables, why};
use crate::cli::language::{filled, translated};
use crate::cli::terminal::quiet;
use bcc_engine::error::EngineError;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

const HELP: &str = "/vars     the variables, and what set them\n/where    phase, topic, element, skill, action and round; what is waiting for what; the remaining budget\n/why      the decisions since your last answer, with reasons: how the reply was read, routes, triggers, what was skipped\n/why 3    the same since your third-last answer; /why all since the beginning\n/why raw  the same with the raw replies\n/plan     the actions of this topic, and what plans changed\n/prompt   the last prompt that was sent to the model\n/back     take your last answer back and answer again; what ran, variables that are kept for later sessions, and changes in plans are not undone\n/quit     save and leave (also Ctrl-D or Ctrl-C)\n//…       send a line that starts with a slash; a line that ends in \\ continues on the next line";

pub async fn command(line: &str, session: &mut Session, store: &dyn Store) -> Result<(), EngineError> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let text = match (name, rest.trim()) {
        ("help" | "h" | "?", _) => translated(HELP).into_owned(),
        ("vars", "") => variables::variables(session),
        ("where", "") => place::place(session, &last(store, &session.id, "outcome").await?),
        ("why", rest) => match WhyRequest::read(rest) {
            Some(request) => why::why(session, store, request).await?,
            None => {
                let literal = "/why does not accept `{rest}`: write /why, /why 3 or /why all, each with or without raw";
                filled(literal, &[("rest", rest)])
            }
        },
        ("plan", "") => plan::plan(session, store).await?,
        ("back", "") => match back::back(session).await? {
            Some(why) => why,
            None => return Ok(()),
        },
        ("prompt", "") => {
            let outcome = last(store, &session.id, "outcome").await?;
            prompt::prompt(&outcome, &last(store, &session.id, "model_call").await?)
        }
        _ => filled(
            "there is no command /{words}; /help lists the commands, and //{words} sends it to the AI",
            &[("words", line)],
        ),
    };
    quiet(&text);
    Ok(())
}

async fn last(store: &dyn Store, id: &str, kind: &str) -> Result<Value, EngineError> {
    let Some(row) = store.last_by_kind(id, kind).await? else { return Ok(Value::Null) };
    Ok(why::parse(&row.body)?.into_value())
}
