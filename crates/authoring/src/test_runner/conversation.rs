//! One conversation of a test: its items are gone through one after the other, until something is not as expected.

use crate::test_runner::result::Shown;
use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::test_runner::clock::TestClock;
use crate::test_runner::judge::{Judge, judge};
use crate::test_runner::kernel::TestKernel;
use crate::test_runner::log::Log;
use crate::test_runner::models::{TestModels, Watch};
use crate::test_runner::result::{TestFailure, TranscriptLine};
use crate::test_runner::scripts::LoadedScript;
use crate::test_runner::stop_reasons;
use bcc_engine::variables::given_value;
use bcc_lang::message::message::Message;
use bcc_lang::script::test::dialogue::{DialogueStep, Restart};
use bcc_lang::script::test::test::WrittenTest;
use bcc_lang::script::test::text_expectation::TextExpectation;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::error::is_no_reply;
use bcc_llm::model::provider::Provider;
use bcc_llm::providers::scripted::time::VirtualTime;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::services::Services;
use bcc_runtime::run::error::RunError;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_runtime::run::start::{NewSession, SessionParts};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;

/// The id of the session; each test has a store of its own.
const SESSION: &str = "test";

/// The most errors and warnings of a session that are told with a failure.
const MOST_TROUBLES: usize = 10;

/// How often whoever runs beside the conversation is let go on before time may pass: each of these lets everybody do what
/// can be done at once, and what one does may give another something to do.
const ROUNDS_OF_WORK: u32 = 8;

pub struct TestSetting<'t> {
    pub test: &'t WrittenTest,
    pub file: &'t Arc<SourceFile>,
    pub tried: &'t LoadedScript,
    pub models: Arc<TestModels>,
    pub watch: Arc<Watch>,
    pub time: Arc<VirtualTime>,
    /// Whether it is one of several cases.
    pub one_of_several: bool,
    /// Who plays the simulated persons, in the order of the test.
    pub personas: VecDeque<Arc<dyn Provider>>,
}

/// A conversation while it goes on, and what came of it.
pub struct TestConversation<'t> {
    pub(crate) setting: TestSetting<'t>,
    archive: Arc<MemoryStore>,
    pub(crate) log: Arc<Log>,
    services: Services,
    pub(crate) session: Option<Session>,
    pub lines: Vec<TranscriptLine>,
    /// The events from which [`TestConversation::lines`] was read.
    read: usize,
    /// The lines that the test has looked at, or passed over.
    pub(crate) looked: usize,
    /// The first event since the person's newest words.
    pub(crate) since: usize,
    /// The sensitive values of the session, while it is put down.
    masker: Masker,
    /// Whether the test speaks of a session that fails or stops, since it went on for the last time.
    pub(crate) spoke_of_trouble: bool,
    pub failures: Vec<TestFailure>,
    /// What is no failure and yet worth knowing.
    pub notes: Vec<Message>,
    /// How often the session was begun or taken up.
    pub sessions: u64,
    answers: u32,
}

pub enum ConversationEnd {
    Failed,
    Broken(Message),
}

impl From<RunError> for ConversationEnd {
    fn from(error: RunError) -> Self {
        Self::Broken(error.to_message())
    }
}

impl<'t> TestConversation<'t> {
    /// A conversation that has not begun.
    pub fn new(setting: TestSetting<'t>) -> Self {
        let log = Arc::new(Log::default());
        let services = Services {
            models: Arc::clone(&setting.models) as Arc<_>,
            clock: Arc::new(TestClock::new(setting.test.clock, Arc::clone(&setting.time))),
            observer: Arc::clone(&log) as Arc<_>,
            recheck: Arc::clone(&setting.tried.recheck),
            recorder: None,
            outside: HostServices {
                kernel: Arc::new(TestKernel::default()),
                permits: Arc::clone(&setting.tried.outside.permits),
                ..HostServices::default()
            },
        };
        Self {
            setting,
            archive: Arc::new(MemoryStore::default()),
            log,
            services,
            session: None,
            lines: vec![],
            read: 0,
            looked: 0,
            since: 0,
            masker: Masker::default(),
            spoke_of_trouble: false,
            failures: vec![],
            notes: vec![],
            sessions: 0,
            answers: 0,
        }
    }

    /// Errors: when something is not as expected (see [`TestConversation::failures`]), or the interpreter cannot go on.
    pub async fn hold(&mut self) -> Result<(), ConversationEnd> {
        self.begin().await?;
        self.advance().await?;
        let test = self.setting.test;
        for step in &test.dialogue {
            match step {
                DialogueStep::Ai(wording) => self.heard(wording).await?,
                DialogueStep::User(words) => self.says(&words.text, words.node.span).await?,
                DialogueStep::Persona(persona) => {
                    let Some(provider) = self.setting.personas.pop_front() else {
                        return Err(ConversationEnd::Broken(Message::word("there is no model for a simulated person")));
                    };
                    self.played(persona, &provider).await?;
                }
                DialogueStep::Expect(expect) => self.judged(expect, self.since)?,
                DialogueStep::Wait(time, _) => self.wait(*time).await?,
                DialogueStep::Restart(restart) => self.restart(restart).await?,
            }
        }
        self.ended()
    }

    fn parts(&self, lock: Box<dyn bcc_store::contract::SessionLock>, budget: Budget) -> SessionParts {
        SessionParts {
            id: SESSION.to_owned(),
            program: Arc::clone(&self.setting.tried.program),
            services: self.services.clone(),
            archive: Arc::clone(&self.archive) as Arc<dyn Store>,
            lock,
            script: self.setting.tried.program.id.clone(),
            model: self.setting.models.name.clone(),
            budget,
        }
    }

    async fn begin(&mut self) -> Result<(), ConversationEnd> {
        let test = self.setting.test;
        let mut given = Vec::with_capacity(test.vars.len());
        for (name, value) in &test.vars {
            match given_value(&self.setting.tried.program, &name.value, value.clone()) {
                Ok(value) => given.push((name.value.clone(), value)),
                Err(error) => {
                    let help = error.help().cloned();
                    return Err(self.failure(
                        name.span,
                        error.to_message(),
                        Message::default(),
                        Message::default(),
                        help,
                    ));
                }
            }
        }
        let lock = self.archive.lock(SESSION, "a test").await.map_err(RunError::from)?;
        let birth = NewSession {
            user: test.user_id.clone().unwrap_or_else(|| "default".to_owned()),
            script_sha256: String::new(),
            settings: "{}".to_owned(),
            manifest: "{}".to_owned(),
            documents: vec![],
            given,
        };
        let session = Session::start(self.parts(lock, Budget::of(test.budget.as_ref())), birth).await?;
        self.session = Some(session);
        self.sessions += 1;
        Ok(())
    }

    /// Runs turns until the person is waited for or nothing can go on.
    async fn advance(&mut self) -> Result<(), ConversationEnd> {
        let time = Arc::clone(&self.setting.time);
        self.spoke_of_trouble = false;
        let Some(session) = &mut self.session else { return Ok(()) };
        let _: SessionPause = in_time(&time, session.advance()).await?;
        self.settle().await?;
        self.read_lines();
        stop_reasons::short(self)?;
        match self.setting.watch.endless() {
            Some(why) => {
                let span = self.setting.test.name.as_ref().map_or(Span::default(), |name| name.node.span);
                let message = msg!("the conversation does not end: {why}");
                let help = Message::word("check whether routes form a loop, or raise `turns:` in the test");
                Err(self.failure(span, message, Message::default(), Message::default(), Some(help)))
            }
            None => Ok(()),
        }
    }

    /// Lets monitors that need no time come in, as at a terminal.
    async fn settle(&mut self) -> Result<(), ConversationEnd> {
        loop {
            work().await;
            // What comes when the session is over is taken by nobody.
            let Some(session) = self.session.as_mut().filter(|session| !session.status().is_final()) else {
                return Ok(());
            };
            let arrived = tokio::select! {
                biased;
                () = session.arrived() => true,
                () = std::future::ready(()) => false,
            };
            if !arrived {
                return Ok(());
            }
            session.note_arrivals().await?;
        }
    }

    fn read_lines(&mut self) {
        self.lines.extend(self.log.lines(self.read));
        self.read = self.log.count();
    }

    /// Takes up a session that stopped because its model gave no reply. Gives whether it did.
    pub(crate) async fn go_on(&mut self) -> Result<bool, ConversationEnd> {
        if self.status() != Some(SessionStatus::Stopped) || stop_reasons::is_short(self) || stop_reasons::is_spent(self)
        {
            return Ok(false);
        }
        self.take_up(Budget::default()).await?;
        self.advance().await?;
        Ok(true)
    }

    async fn take_up(&mut self, budget: Budget) -> Result<(), ConversationEnd> {
        // The old one must be gone before its lock is free.
        self.put_down();
        work().await;
        let lock = self.archive.lock(SESSION, "a test").await.map_err(RunError::from)?;
        let session = Session::resume(self.parts(lock, budget)).await?;
        self.session = Some(session);
        self.sessions += 1;
        Ok(())
    }

    /// Ends the session as a process that dies does; what is sensitive in it stays known.
    fn put_down(&mut self) {
        if let Some(session) = self.session.take() {
            self.masker = session.masker.clone();
        }
    }

    /// What takes the sensitive values of the session out of texts.
    pub fn masker(&self) -> &Masker {
        self.session.as_ref().map_or(&self.masker, |session| &session.masker)
    }

    /// What the clock shows, as prompts have it.
    pub(crate) fn clock_words(&self) -> String {
        self.services.clock.words(self.session.as_ref().map_or(0, Session::last_seq))
    }

    pub(crate) fn status(&self) -> Option<SessionStatus> {
        self.session.as_ref().map(Session::status)
    }

    /// `ai`: the AI has said this.
    async fn heard(&mut self, wording: &TextExpectation) -> Result<(), ConversationEnd> {
        if self.takes(wording) {
            return Ok(());
        }
        if self.go_on().await? && self.takes(wording) {
            return Ok(());
        }
        Err(stop_reasons::unheard(self, wording))
    }

    /// Looks for a message that fits among those that nobody looked at, and takes it and all before it.
    fn takes(&mut self, wording: &TextExpectation) -> bool {
        let unlooked = |lines: &[TranscriptLine], from: usize| -> Vec<usize> {
            let ai = |(_, line): &(usize, &TranscriptLine)| line.speaker == Speaker::Ai;
            lines.iter().enumerate().skip(from).filter(ai).map(|(at, _)| at).collect()
        };
        let fits = |line: &TranscriptLine| wording.fault_said(&line.text, &line.action_id).is_none();
        if wording.only_forbids() {
            // It is about all that was said since the person's newest words, looked at or not.
            let from = self.lines.iter().rposition(|line| line.speaker == Speaker::User).map_or(0, |at| at + 1);
            return unlooked(&self.lines, from).iter().all(|at| self.lines.get(*at).is_some_and(fits));
        }
        let waiting = unlooked(&self.lines, self.looked);
        let most = if self.setting.test.strict { 1 } else { usize::MAX };
        let found = waiting.into_iter().take(most).find(|at| self.lines.get(*at).is_some_and(fits));
        if let Some(at) = found {
            self.looked = at + 1;
        }
        found.is_some()
    }

    /// `user`: the person says this.
    pub(crate) async fn says(&mut self, text: &str, span: Span) -> Result<(), ConversationEnd> {
        stop_reasons::overlooked(self, span)?;
        self.go_on().await?;
        if self.status() != Some(SessionStatus::WaitingInput) {
            return Err(stop_reasons::unawaited(self, text, span));
        }
        self.answers += 1;
        if self.answers > self.setting.test.turns {
            let message = msg!("the conversation has more than {} turns", self.setting.test.turns);
            let help = Message::word("to allow more turns, raise `turns:` in the test");
            return Err(self.failure(span, message, Message::default(), Message::default(), Some(help)));
        }
        let since = self.log.count();
        let Some(session) = &mut self.session else { return Ok(()) };
        match session.answer(text, None).await? {
            TakenAnswer::Yes => {}
            TakenAnswer::TooLong => {
                let message = Message::word("the person's answer is longer than the limit for answers");
                return Err(self.failure(span, message, Message::default(), Message::default(), None));
            }
            TakenAnswer::Before | TakenAnswer::Unknown | TakenAnswer::NotAwaited => {
                return Err(stop_reasons::unawaited(self, text, span));
            }
        }
        self.since = since;
        self.read_lines();
        self.looked = self.lines.len();
        self.advance().await
    }

    pub(crate) fn judged(
        &mut self,
        expect: &bcc_lang::script::test::expect::Expect,
        since: usize,
    ) -> Result<(), ConversationEnd> {
        let Some(session) = &self.session else { return Ok(()) };
        let judge_of = Judge {
            file: self.setting.file,
            session,
            log: &self.log,
            lines: &self.lines,
            watch: &self.setting.watch,
            since,
        };
        let failures = judge(expect, &judge_of);
        if failures.is_empty() {
            self.spoke_of_trouble |= stop_reasons::is_about_trouble(expect);
            return Ok(());
        }
        self.failures.extend(failures);
        Err(ConversationEnd::Failed)
    }

    /// `wait`: time passes, and whoever has slept so long comes in.
    async fn wait(&mut self, time: Duration) -> Result<(), ConversationEnd> {
        let clock = Arc::clone(&self.setting.time);
        let until = clock.now().saturating_add(time);
        while let Some(next) = clock.next().filter(|next| *next <= until) {
            clock.move_to(next);
            self.settle().await?;
        }
        clock.move_to(until);
        self.settle().await
    }

    async fn restart(&mut self, restart: &Restart) -> Result<(), ConversationEnd> {
        if self.status().is_some_and(SessionStatus::is_final) {
            let status = self.status().map(SessionStatus::name).unwrap_or_default();
            let message = msg!("the session cannot be resumed: it is {status}");
            return Err(self.failure(restart.span, message, Message::default(), Message::default(), None));
        }
        self.put_down();
        work().await;
        let time = &self.setting.time;
        time.move_to(time.now().saturating_add(restart.after));
        match self.take_up(Budget::of(restart.budget.as_ref())).await {
            Err(ConversationEnd::Broken(why)) if restart.budget.is_some() => {
                return Err(self.failure(restart.span, why, Message::default(), Message::default(), None));
            }
            other => other?,
        }
        self.advance().await
    }

    /// The dialogue is over: what must hold now?
    fn ended(&mut self) -> Result<(), ConversationEnd> {
        let test = self.setting.test;
        if let Some(expect) = &test.expect {
            self.judged(expect, 0)?;
        }
        stop_reasons::at_the_end(self)
    }

    pub fn turns(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.so_far().turns)
    }

    pub fn model_calls(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.so_far().model_calls)
    }

    /// What a reader of a failure should know of the models: their errors, and what could not be read of their replies.
    pub fn troubles(&self, status: crate::test_runner::result::TestStatus) -> Vec<Message> {
        if status == crate::test_runner::result::TestStatus::Passed {
            return vec![];
        }
        let mut troubles = Vec::new();
        for (kind, errors) in [("error", true), ("warning", false)] {
            let codes = self.log.codes(errors, 0).into_iter();
            // That the test has no reply is told by the failure itself.
            let telling = codes.filter(|(_, message)| !is_no_reply(message));
            troubles
                .extend(telling.map(|(code, message)| msg!("{kind} {code}: {message}", kind = Message::word(kind))));
        }
        let more = troubles.len().saturating_sub(MOST_TROUBLES);
        troubles.truncate(MOST_TROUBLES);
        if more > 0 {
            troubles.push(msg!("and {more} more"));
        }
        troubles
    }

    pub(crate) fn failure(
        &mut self,
        span: Span,
        message: Message,
        expected: impl Shown,
        found: impl Shown,
        help: Option<Message>,
    ) -> ConversationEnd {
        let line = self.setting.file.line(span.start);
        let said = self.lines.len();
        let (expected, found) = (expected.shown(), found.shown());
        self.failures.push(TestFailure { span, line, message, expected, exact: None, found, help, said });
        ConversationEnd::Failed
    }
}

/// Lets everybody else do what can be done at once.
async fn work() {
    for _ in 0..ROUNDS_OF_WORK {
        tokio::task::yield_now().await;
    }
}

/// Does `what`; when nothing can be done at once any more, the test's own time moves on to the next who waits for it.
pub(crate) async fn in_time<T>(time: &VirtualTime, what: impl Future<Output = T>) -> T {
    let mut what = std::pin::pin!(what);
    loop {
        tokio::select! {
            biased;
            done = &mut what => return done,
            () = work() => {}
        }
        match time.next() {
            Some(next) => time.move_to(next),
            // A real model is waited for in real time.
            None => return what.await,
        }
    }
}
