//! The programs of conversation tests: none runs. Their results are those of the test, else those of `simulate`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::test::effects::CommandResults;
use bcc_lang::source::span::Span;
use bcc_llm::providers::scripted::time::VirtualTime;
use bcc_runtime::effects::commands::{CommandRequest, Commands, process_result};
use bcc_runtime::effects::process::{ProcessResult, StartError};

/// An attempt for which neither the test nor the script has a result.
#[derive(Clone, Debug)]
pub(crate) struct MissingResult {
    pub action: String,
    /// The position of the list that has no more results, and the number of its results.
    pub list: Option<(Span, usize)>,
}

pub(crate) struct TestCommands {
    results: Vec<CommandResults>,
    state: Mutex<State>,
    time: Arc<VirtualTime>,
}

#[derive(Default)]
struct State {
    /// The number of attempts of each action.
    attempts: BTreeMap<String, usize>,
    missing: Option<MissingResult>,
}

impl TestCommands {
    pub(crate) fn new(results: Vec<CommandResults>, time: Arc<VirtualTime>) -> Self {
        Self { results, state: Mutex::default(), time }
    }

    /// The first attempt without a result.
    pub(crate) fn missing(&self) -> Option<MissingResult> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).missing.clone()
    }
}

#[async_trait]
impl Commands for TestCommands {
    fn needs_permission(&self) -> bool {
        false
    }

    async fn run(&self, request: &CommandRequest<'_>) -> Result<ProcessResult, StartError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let attempts = state.attempts.entry(request.action.to_owned()).or_default();
        *attempts += 1;
        let number = *attempts - 1;
        let list = self.results.iter().find(|list| list.action.value == request.action);
        let result = match list {
            Some(list) => list.results.get(number).map(process_result),
            None => request.simulated.cloned(),
        };
        result.ok_or_else(|| {
            let list = list.map(|list| (list.action.span, list.results.len()));
            state.missing.get_or_insert(MissingResult { action: request.action.to_owned(), list });
            StartError {
                message: msg!("the test has no result for it"),
                help: Message::word("no program runs in tests: write its results under `commands:` of the test"),
            }
        })
    }

    async fn pause(&self, time: Duration) {
        self.time.sleep(time).await;
    }
}
