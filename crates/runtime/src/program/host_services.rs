//! The host services of a session: permissions, kernel, commands, files, behavior servers, tools.

use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::effects::behaviors::{BehaviorServer, ResponseStream, ServerError};
use crate::effects::commands::{Commands, NoCommands};
use crate::effects::files::{NoFiles, ProjectFiles};
use crate::effects::permissions::Permissions;
use crate::effects::tools::{NoTools, Tools};
use crate::notebook::kernel::contract::{Kernel, NoKernel};

/// The behavior servers that a session may call.
pub trait BehaviorServers: Send + Sync {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError>;
}

struct NoServers;

impl BehaviorServers for NoServers {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        Err(ServerError {
            code: "server-unknown",
            message: msg!("there is no behavior server `{name}`"),
            help: Some(msg!("add `[behavior_servers.{name}]` with its `url` to bcc-script.toml")),
        })
    }
}

/// The host services of one session; by default there are none.
#[derive(Clone)]
pub struct HostServices {
    pub permissions: Arc<Permissions>,
    pub kernel: Arc<dyn Kernel>,
    pub commands: Arc<dyn Commands>,
    pub files: Arc<dyn ProjectFiles>,
    pub servers: Arc<dyn BehaviorServers>,
    pub tools: Arc<dyn Tools>,
    /// Responses of these servers that are still being received.
    pub pending_responses: Arc<PendingResponses>,
}

/// Responses of servers that are still being received, each under its own name. They outlive turns but not the process: a session
/// that is resumed by another process finds none and continues without the remainder.
#[derive(Default)]
pub struct PendingResponses(Mutex<BTreeMap<String, Box<dyn ResponseStream>>>);

impl PendingResponses {
    /// Stores a response until the next turn; replaces an earlier one with this name.
    pub fn insert(&self, name: &str, answer: Box<dyn ResponseStream>) {
        self.streams().insert(name.to_owned(), answer);
    }

    /// Removes a response. A turn that is dropped does not put it back, so that no part of it is processed twice.
    pub fn take(&self, name: &str) -> Option<Box<dyn ResponseStream>> {
        self.streams().remove(name)
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<String, Box<dyn ResponseStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for HostServices {
    fn default() -> Self {
        Self {
            permissions: Arc::default(),
            kernel: Arc::new(NoKernel::default()),
            commands: Arc::new(NoCommands),
            files: Arc::new(NoFiles),
            servers: Arc::new(NoServers),
            tools: Arc::new(NoTools),
            pending_responses: Arc::default(),
        }
    }
}
