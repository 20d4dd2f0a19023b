//! A server with the offline responder, in this process.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use bcc_engine::engine::Engine;
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_server::access::AccessRules;
use bcc_server::serve::Server;
use bcc_server::settings::{BehaviorSettings, ChatSettings, ServeSettings, ServerLimits};
use tokio::sync::oneshot::Sender;
use tokio::task::JoinHandle;

/// A server that runs until it is stopped.
pub(crate) struct BenchServer {
    /// Host and port.
    pub(crate) address: String,
    stop: Sender<()>,
    running: JoinHandle<bool>,
}

impl BenchServer {
    /// Serves a project in a new folder, whose only script is `echo`. Its sessions do not leave memory.
    pub(crate) async fn start(directory: &Path, script: &str) -> Self {
        std::fs::create_dir_all(directory.join("scripts")).expect("the folder is new");
        std::fs::create_dir_all(directory.join(".bcc")).expect("the folder is new");
        std::fs::write(directory.join("scripts/echo.yaml"), script).expect("the folder exists");
        let environment = Environment::default();
        let project =
            Project::in_directory(directory.to_path_buf(), true, &environment).expect("it has no configuration");
        let engine = Engine::with_shared_store(project, environment, None).expect("the store is new");
        let limits = ServerLimits {
            requests_per_minute: NonZeroU32::MAX,
            idle_time: Duration::from_secs(3600),
            ..ServerLimits::default()
        };
        let settings = ServeSettings {
            continue_trace: None,
            talk_request: None,
            address: "127.0.0.1:0".parse().expect("an address"),
            access: AccessRules::default(),
            limits,
            chat: ChatSettings::default(),
            behavior: BehaviorSettings::default(),
            model: Some("offline".to_owned()),
        };
        let server = Server::bind(engine, settings).await.expect("the port is free");
        let address = server.address().expect("it listens").to_string();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Self { address, stop, running }
    }

    /// Stops it when all turns have ended.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        assert!(self.running.await.expect("it does not panic"), "all turns have ended");
    }
}
