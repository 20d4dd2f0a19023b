//! How long an attempt is waited for: in all, until the first token, and through silence after it.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::model::error::{ModelError, Waited};
use crate::providers::http::config::ServerConfig;

/// How long the figures after a finished reply are waited for. The reply itself is there, and a person waits for it.
const LINGER: Duration = Duration::from_secs(2);

/// The limits of one attempt, counted from its beginning.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    config: &'a ServerConfig,
    host: &'a str,
    start: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No token has come.
    Waiting,
    /// Tokens come.
    Reading,
    /// The reply is whole.
    Lingering,
}

impl<'a> Patience<'a> {
    /// Begins to count.
    pub(crate) fn new(config: &'a ServerConfig, host: &'a str) -> Self {
        Self { config, host, start: Instant::now(), phase: Phase::Waiting }
    }

    /// The model has begun to work: from now on only silence counts.
    pub(crate) fn begun(&mut self) {
        if matches!(self.phase, Phase::Waiting) {
            self.phase = Phase::Reading;
        }
    }

    /// The reply is whole.
    pub(crate) fn finished(&mut self) {
        self.phase = Phase::Lingering;
    }

    /// What `future` gives, unless a limit passes first.
    ///
    /// # Errors
    /// [`ModelError::Timeout`] says which limit passed. Before the first token it is always the first-token one, even
    /// where the total is the shorter: that decides over a repetition.
    pub(crate) async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, ModelError> {
        let total = (self.start + self.config.timeout, Waited::Total, self.config.timeout);
        let phase = match self.phase {
            Phase::Waiting => {
                let limit = self.config.first_token_timeout.min(self.config.timeout);
                (self.start + limit, Waited::FirstToken, limit)
            }
            Phase::Reading => (Instant::now() + self.config.idle_timeout, Waited::Idle, self.config.idle_timeout),
            Phase::Lingering => {
                let limit = self.config.idle_timeout.min(LINGER);
                (Instant::now() + limit, Waited::Idle, limit)
            }
        };
        let (deadline, what, after) = if phase.0 <= total.0 { phase } else { total };
        timeout_at(deadline, future).await.map_err(|_| ModelError::Timeout {
            host: self.host.to_owned(),
            what,
            after,
            attempts: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn config(total: u64, first_token: u64, idle: u64) -> ServerConfig {
        ServerConfig {
            timeout: Duration::from_secs(total),
            first_token_timeout: Duration::from_secs(first_token),
            idle_timeout: Duration::from_secs(idle),
            ..ServerConfig::new("http://h", "m")
        }
    }

    async fn limit(patience: &Patience<'_>) -> (Waited, u64) {
        match patience.wait(pending::<()>()).await {
            Err(ModelError::Timeout { what, .. }) => (what, patience.start.elapsed().as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_token_is_waited_for_from_the_beginning() {
        let config = config(120, 60, 30);
        let patience = Patience::new(&config, "h");
        patience.wait(tokio::time::sleep(Duration::from_secs(50))).await.unwrap();
        assert_eq!(limit(&patience).await, (Waited::FirstToken, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn once_it_has_begun_only_silence_counts_until_the_total_is_used_up() {
        let config = config(120, 10, 30);
        let mut patience = Patience::new(&config, "h");
        patience.begun();
        for _ in 0..4 {
            patience.wait(tokio::time::sleep(Duration::from_secs(25))).await.unwrap();
        }
        assert_eq!(limit(&patience).await, (Waited::Total, 120));
        let mut patience = Patience::new(&config, "h");
        patience.begun();
        patience.wait(tokio::time::sleep(Duration::from_secs(25))).await.unwrap();
        assert_eq!(limit(&patience).await, (Waited::Idle, 55));
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_shorter_than_the_first_token_limit_counts_as_that() {
        let config = config(5, 60, 30);
        assert_eq!(limit(&Patience::new(&config, "h")).await, (Waited::FirstToken, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_finished_reply_is_not_held_up_by_what_should_follow_it() {
        let config = config(120, 60, 30);
        let mut patience = Patience::new(&config, "h");
        patience.finished();
        patience.begun();
        assert_eq!(limit(&patience).await, (Waited::Idle, 2));
    }
}
