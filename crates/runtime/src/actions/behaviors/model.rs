//! A model as the source of behaviors: what its prompts get, and how its replies are read.

use bcc_lang::message::message::Message;
use serde_json::{Value, json};

use crate::actions::behaviors::config::{BEHAVIOR, LoopConfig, REFLECTION, ServerRequest};
use crate::actions::behaviors::frame::{Current, LoopFrame};
use crate::actions::behaviors::plan;
use crate::actions::behaviors::source::{FirstPiece, SourceAnswer, masker};
use crate::notebook::action::NAMES;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::response::{Reflection, reflection};
use crate::notebook::state::NotebookState;
use crate::program::exchange::Ask;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::depth::{MOST_LEVELS, deeper_than};
use bcc_lang::value::mask::Masker;
use bcc_llm::reply::shape::ReplyShape;

/// The names of actions that a model is not offered: they take code to mean something, or move what the loop itself moves.
const NOT_OFFERED: [&str; 3] = ["end_phase", "next_event", "update_workflow"];

/// One of the two questions to a model.
struct Question<'a> {
    name: &'static str,
    version: u32,
    shape: &'a ReplyShape,
    target: String,
    round: u32,
}

impl LoopConfig {
    pub async fn ask_model(
        &self,
        turn: &Turn<'_>,
        frame: &LoopFrame,
        state: &NotebookState,
        asked: &ServerRequest,
    ) -> Result<SourceAnswer, ActionError> {
        let target = self.target_of(turn, state)?;
        let round = frame.behaviors + 1;
        let mut names = self.names(turn, state, &target, frame.feedback.as_ref()).await?;
        names.give("iteration", Value::from(round));
        names.give("behaviors_left", Value::from(self.last(turn).saturating_sub(frame.behaviors)));
        names.give("max_actions", Value::from(self.max_actions));
        let actions = offered(turn);
        let exec = actions.iter().any(|name| name == "exec");
        names.give("actions", json!(actions));
        let question = Question { name: BEHAVIOR, version: asked.version, shape: &asked.behavior, target, round };
        let inputs = vec![("todo_list".to_owned(), json!(state.todo_list)), ("exec".to_owned(), Value::from(exec))];
        let reply = self.exchanged(turn, question, asked, names, inputs).await?;
        Ok(reply.map(|around| (FirstPiece { around: Some(around), ..FirstPiece::default() }, None)))
    }

    pub async fn judged_by_model(
        &self,
        turn: &Turn<'_>,
        frame: &LoopFrame,
        current: &Current,
        asked: &ServerRequest,
    ) -> Result<Result<Reflection, Message>, ActionError> {
        let state = turn.notebook_state();
        let target = self.target_of(turn, &state)?;
        let mut names = self.names(turn, &state, &target, Some(&current.counts)).await?;
        names.give("iteration", Value::from(frame.behaviors));
        names.give("behaviors_left", Value::from(self.last(turn).saturating_sub(frame.behaviors)));
        names.give_text("behavior", current.target.as_str());
        let (version, shape) = (asked.reflection_version, &asked.reflection);
        let question = Question { name: REFLECTION, version, shape, target, round: frame.behaviors };
        let inputs = vec![("todo_list".to_owned(), json!(state.todo_list))];
        let reply = self.exchanged(turn, question, asked, names, inputs).await?;
        Ok(reply.and_then(|reply| reflection(&reply).map_err(|rubbish| rubbish.message)))
    }

    /// What the step is to achieve: the author's words in the topic of the script, those of the plan in a step beyond it.
    pub fn target_of(&self, turn: &Turn<'_>, state: &NotebookState) -> Result<String, ActionError> {
        let planned = plan::goal(state);
        if state.location.step_id.as_deref().is_some_and(|step| step != turn.topic.id) && !planned.is_empty() {
            return Ok(planned);
        }
        let names = turn.names(1);
        let written = match self.target.as_ref().or(turn.topic.goal.as_ref()) {
            Some(text) => turn.text(text, &names)?,
            None => String::new(),
        };
        let name = || turn.topic.name.clone().unwrap_or_else(|| turn.topic.id.clone());
        Ok(if written.trim().is_empty() { name() } else { written })
    }

    async fn names(
        &self,
        turn: &Turn<'_>,
        state: &NotebookState,
        target: &str,
        feedback: Option<&Feedback>,
    ) -> Result<TemplateNames, ActionError> {
        let seen = self.observe(turn, state, feedback, None).await?;
        let mut names = turn.names(self.max_behaviors);
        names.give_text("observation", seen.to_string());
        names.give_text("target", target);
        let masker = masker(turn);
        names.give("todo_list", json!(hidden(&state.todo_list, &masker)));
        let feedback = feedback.map(|feedback| Feedback {
            last_action_result: masker.text(&feedback.last_action_result),
            ..feedback.clone()
        });
        let feedback = feedback.and_then(|feedback| serde_json::to_string(&feedback).ok());
        names.give_text("feedback", feedback.unwrap_or_default());
        for name in ["tone", "exit"] {
            names.give_text(name, "");
        }
        names.give("understanding_threshold", Value::Null);
        Ok(names)
    }

    /// One exchange; gives the reply as it came, or why there is none.
    async fn exchanged(
        &self,
        turn: &Turn<'_>,
        question: Question<'_>,
        asked: &ServerRequest,
        names: TemplateNames,
        inputs: Vec<(String, Value)>,
    ) -> Result<Result<Value, Message>, ActionError> {
        let Question { name, version, shape, target, round } = question;
        let exchange = turn
            .exchange(Ask {
                kind: name,
                template: name,
                version,
                shape,
                content: &target,
                outputs: &asked.outputs,
                names,
                answer: None,
                inputs,
                round,
                opening: false,
                live: false,
                repair: asked.repair,
                reask: asked.reask,
            })
            .await?;
        // A list of actions alone is no object, and a behavior all the same. It is looked for first: whoever looks for an object
        // finds the first action in it.
        if name == BEHAVIOR {
            if let Some(list) = list_in(&exchange.raw).filter(|list| !deeper_than(list, MOST_LEVELS)) {
                return Ok(Ok(list));
            }
            if begins_with_list(&exchange.raw) {
                return Ok(Err(Message::word("it starts with a list of actions that cannot be read")));
            }
        }
        Ok(match exchange.reading {
            // It is kept in a frame, which must be read again.
            Ok(reply) if deeper_than(&Value::Object(reply.came.clone()), MOST_LEVELS) => {
                Err(Message::word("it is nested too deeply"))
            }
            // The older names are read, too, so what counts is what came and not what it was bent to.
            Ok(reply) => Ok(Value::Object(reply.came)),
            Err(_) => Err(Message::word("it contains no readable JSON object")),
        })
    }
}

/// The list of actions in a reply that holds no object around it, whatever words or fences stand beside it.
fn list_in(raw: &str) -> Option<Value> {
    let begin = raw.find('[')?;
    if raw.find('{').is_some_and(|object| object < begin) {
        return None;
    }
    let list: Value = serde_json::from_str(raw.get(begin..=raw.rfind(']')?)?).ok()?;
    let actions = list.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object));
    actions.then_some(list)
}

/// Whether a reply is a list, fenced or not, as far as it goes.
fn begins_with_list(raw: &str) -> bool {
    let raw = raw.trim_start();
    let inside = raw.strip_prefix("```").map(|fenced| fenced.trim_start_matches(char::is_alphanumeric).trim_start());
    inside.unwrap_or(raw).starts_with('[')
}

/// The todo list as a source may see it.
fn hidden(todo_list: &[String], masker: &Masker) -> Vec<String> {
    todo_list.iter().map(|item| masker.text(item)).collect()
}

/// The names of the actions that a model may use.
fn offered(turn: &Turn<'_>) -> Vec<String> {
    let may_run = turn.services.outside.kernel.permitted().is_ok();
    let own = NAMES.into_iter().filter(|name| !NOT_OFFERED.contains(name) && (may_run || *name != "exec"));
    own.map(str::to_owned).chain(turn.program.custom.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_actions_is_found_whole_or_not_at_all() {
        let table = [
            ("[{\"a\": 1}, {\"b\": [2]}]", Some(2), true),
            ("```json\n[{\"a\": 1},\n{\"b\": 2}]\n```", Some(2), true),
            ("Here they are:\n[{\"a\": 1}]", Some(1), false),
            ("[{\"a\": 1}, {\"b\":", None, true),
            ("```\n[{\"a\": 1},]\n```", None, true),
            ("{\"actions\": [{\"a\": 1}]}", None, false),
            ("As in [1], {\"actions\": []}", None, false),
            ("[]", None, true),
            ("no list", None, false),
        ];
        for (raw, count, begins) in table {
            let found = list_in(raw).map(|list| list.as_array().unwrap().len());
            assert_eq!((found, begins_with_list(raw)), (count, begins), "{raw}");
        }
    }
}
