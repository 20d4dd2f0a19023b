//! What a session may touch outside of the conversation.

use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::effects::behaviors::{BehaviorServer, ResponseStream, ServerError};
use crate::effects::permissions::Permissions;
use crate::notebook::kernel::contract::{Kernel, NoKernel};

/// The behavior servers that a session may ask.
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

/// The outside world of one session; by default it has none.
#[derive(Clone)]
pub struct HostServices {
    pub permits: Arc<Permissions>,
    pub kernel: Arc<dyn Kernel>,
    pub servers: Arc<dyn BehaviorServers>,
    /// Answers of these servers that are still arriving.
    pub arriving: Arc<Arrivals>,
}

/// Answers of servers that are still arriving, each under a name of its own. They outlive turns, and end with the process: a
/// session that another process takes up finds none, and goes on without the rest.
#[derive(Default)]
pub struct Arrivals(Mutex<BTreeMap<String, Box<dyn ResponseStream>>>);

impl Arrivals {
    /// Keeps an answer until the next turn; one that was kept under this name before is given up.
    pub fn keep(&self, name: &str, answer: Box<dyn ResponseStream>) {
        self.held().insert(name.to_owned(), answer);
    }

    /// Takes an answer out. A turn that is dropped does not put it back, so that nothing of it can come twice.
    pub fn take(&self, name: &str) -> Option<Box<dyn ResponseStream>> {
        self.held().remove(name)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Box<dyn ResponseStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for HostServices {
    fn default() -> Self {
        Self {
            permits: Arc::default(),
            kernel: Arc::new(NoKernel::default()),
            servers: Arc::new(NoServers),
            arriving: Arc::default(),
        }
    }
}
