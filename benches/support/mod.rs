//! Shared by the benches: a long conversation with the offline provider, driven without a command line, and a folder on disk for its store.

#![allow(dead_code, reason = "each bench uses a part of this")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use mimalloc::MiMalloc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The allocator of the program, so that the benches measure what people run.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

pub(crate) mod bare;
pub(crate) mod recorder;

/// `max_rounds` of every action of the script: the maximum of the language.
pub(crate) const ROUNDS: usize = 50;

/// The answer of the person. It fills the text output of the action but never the number, so that every round is followed by another one.
const ANSWER: &str = "最近晚上总是睡得不太好，白天也提不起精神，不过今天比前些天好些了。";

struct NoObserver;

impl Observer for NoObserver {
    fn can_wait(&self) -> bool {
        true
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

/// A temporary directory below the target directory: on the disk of the build, because `/tmp` may be in memory.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory for the bench")
}

/// A script of `actions` questions, each followed up for [`ROUNDS`] rounds.
pub(crate) fn script(actions: usize) -> String {
    let mut script = "\
session:
  session_id: bench
  session_name: 睡眠访谈
  global_goal: 了解来访者的睡眠和精力
  declare:
    - { var: sleep, type: string, define: 来访者怎样描述自己的睡眠 }
    - { var: hours, type: integer, define: 每晚睡几个小时 }
  phases:
    - phase_id: interview
      phase_goal: 把情况问清楚
      topics:
        - topic_id: sleep_topic
          topic_goal: 知道来访者睡得怎么样
          actions:
"
    .to_owned();
    for number in 0..actions {
        let _ = write!(
            script,
            "            - action_type: ai_ask
              action_id: ask_{number}
              config:
                content: 你最近睡得怎么样？每晚大概睡几个小时？
                tone: 温和、不着急
                exit: 来访者说了睡眠怎么样，也说了几个小时
                max_rounds: {ROUNDS}
                output:
                  - {{ get: sleep, define: 来访者怎样描述自己的睡眠 }}
                  - {{ get: hours, define: 每晚睡几个小时, required: true }}
"
        );
    }
    script
}

/// A script on disk and the runtime to drive sessions of it.
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    pub(crate) directory: TempDir,
    file: PathBuf,
}

impl Bench {
    pub(crate) fn new(actions: usize) -> Self {
        let directory = directory();
        let file = directory.path().join("bench.yaml");
        std::fs::write(&file, script(actions)).expect("the script can be written");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { runtime, directory, file }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A session that has asked its first question, on the offline responder.
    pub(crate) fn session(&self, store: Arc<dyn Store>, id: &str) -> Session {
        self.session_on(store, id, "offline")
    }

    /// A session on this model that has asked its first question.
    pub(crate) fn session_on(&self, store: Arc<dyn Store>, id: &str, model: &str) -> Session {
        let environment = Environment::default();
        let project = Project::of(&self.file, Some(self.directory.path()), false, &environment).expect("a project");
        let engine = Engine::new(project, environment, store);
        let request = RunRequest {
            file: self.file.clone(),
            session: Some(id.to_owned()),
            model: Some(model.to_owned()),
            ..RunRequest::default()
        };
        let opened = self.runtime.block_on(engine.run(&request, Arc::new(NoObserver))).expect("the session begins");
        let mut session = opened.session;
        assert_eq!(self.runtime.block_on(session.advance()).expect("the first turn"), SessionPause::Waiting);
        session
    }

    /// Runs one turn: commits the answer, then everything up to the next pause. Returns whether the session continues.
    pub(crate) fn turn(&self, session: &mut Session) -> bool {
        self.runtime.block_on(async {
            let taken = session.answer_with_turn(ANSWER, None).await.expect("the answer is taken");
            assert_eq!(taken, TakenAnswer::Yes);
            session.advance().await.expect("the turn is taken") == SessionPause::Waiting
        })
    }
}

pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The size of a store in bytes, including its write-ahead log.
pub(crate) fn size(store: &Path) -> u64 {
    let file_size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    file_size(store) + file_size(Path::new(&log))
}
