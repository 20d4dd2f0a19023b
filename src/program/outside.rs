//! What a session may touch outside of the conversation.

use std::sync::Arc;

use crate::effects::behaviors::{BehaviorServer, ServerError};
use crate::effects::permits::Permits;
use crate::notebook::kernel::contract::{Kernel, NoKernel};

/// The behavior servers that a session may ask.
pub trait BehaviorServers: Send + Sync {
    /// The server of this name.
    ///
    /// # Errors
    /// When the configuration has no such server, or it is not trusted.
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError>;
}

/// No server at all.
struct NoServers;

impl BehaviorServers for NoServers {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        Err(ServerError {
            code: "server-unknown",
            message: format!("there is no behavior server `{name}`"),
            help: Some(format!("write `[behavior_servers.{name}]` with its `url` into bcc-script.toml")),
        })
    }
}

/// The outside world of one session; by default it has none.
#[derive(Clone)]
pub struct Outside {
    /// What is allowed, and where.
    pub permits: Arc<Permits>,
    /// The kernel of the session.
    pub kernel: Arc<dyn Kernel>,
    /// The behavior servers.
    pub servers: Arc<dyn BehaviorServers>,
}

impl Default for Outside {
    fn default() -> Self {
        Self { permits: Arc::default(), kernel: Arc::new(NoKernel), servers: Arc::new(NoServers) }
    }
}
