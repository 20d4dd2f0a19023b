//! Connections to the database: a pool, the first migration, and statements that are sent again when a connection breaks.

use std::fmt;
use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use tokio::sync::{Mutex, OnceCell};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;
use crate::postgres::error::{Concern, is_passing, is_undefined, no_answer, store_error, unreachable};
use crate::postgres::schema;

/// The maximum number of connections of one process.
const MAX_CONNECTIONS: usize = 16;

/// The maximum number of those of [`Database::apart`].
const APART_CONNECTIONS: usize = 2;

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// How long one statement may take before it counts as lost, and is sent again over another connection.
const STATEMENT_TIME: Duration = Duration::from_secs(15);

/// How long a statement is tried again while the database cannot be reached: long enough for one that restarts.
const RETRY_TIME: Duration = Duration::from_secs(20);

/// The same before the database was reached for the first time: its address may be wrong.
const FIRST_RETRY_TIME: Duration = Duration::from_secs(4);

/// The first pause before a statement is sent again; each further one is twice as long, up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// A parameter of a statement, with its type.
pub(crate) type Parameter<'p> = (&'p (dyn ToSql + Sync), Type);

/// A database.
pub(crate) struct Database {
    config: Config,
    pool: Pool,
    /// How it is called in messages: without a password.
    pub(crate) name: String,
    migrated: OnceCell<()>,
    /// The task that brings the database to the newest layout, while there is one.
    migration: Mutex<Option<JoinHandle<Result<(), StatementFailure>>>>,
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Database").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Statements that are sent in one transaction.
#[async_trait]
pub(crate) trait TransactionWrites: Sync {
    /// Sends them. They must have the same effect when they are sent twice.
    async fn send(&self, client: &Client) -> Result<(), StatementFailure>;
}

/// Waits for the answer to a statement, but not forever.
pub(crate) async fn in_time<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StatementFailure> {
    let answer = tokio::time::timeout(STATEMENT_TIME, answer).await.map_err(|_| StatementFailure::TimeUp)?;
    answer.map_err(StatementFailure::Statement)
}

/// A connection that may be in a transaction, or whose answer is still to come. Until either has ended, nobody else gets it, also if
/// whoever waits for the database has gone away: it is closed, and the database forgets what was written in a transaction.
struct BusyConnection(Option<Object>);

impl BusyConnection {
    fn get(&self) -> Result<&Object, StatementFailure> {
        self.0.as_ref().ok_or(StatementFailure::TimeUp)
    }

    /// The connection can be used for anything again.
    fn ended(mut self) {
        drop(self.0.take());
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// Brings a database to the newest layout, or leaves it as it was.
async fn migrate(pool: Pool, store: String) -> Result<(), StatementFailure> {
    let client = BusyConnection(Some(pool.get().await.map_err(StatementFailure::Pool)?));
    let migrated = schema::migrate(client.get()?, &store).await.map_err(StatementFailure::Statement)?;
    client.ended();
    migrated.map_err(StatementFailure::Store)
}

/// Why a statement failed.
pub(crate) enum StatementFailure {
    Pool(PoolError),
    Statement(tokio_postgres::Error),
    TimeUp,
    Store(StoreError),
}

impl Database {
    /// The database at a URL. No connection is made yet.
    ///
    /// Errors: [`StoreError::Unreachable`] for a URL that is none.
    pub(crate) fn new(url: &str) -> Result<Self, StoreError> {
        // The URL may have a password, and so does the message of the error.
        let invalid = || {
            unreachable(
                "postgres://…",
                Message::word("its address is not valid; write `postgres://USER:PASSWORD@HOST:PORT/DATABASE`"),
            )
        };
        let mut config = Config::from_str(url).map_err(|_| invalid())?;
        if config.get_hosts().is_empty() {
            return Err(invalid());
        }
        if config.get_application_name().is_none() {
            config.application_name("bcc-script");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIME);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(STATEMENT_TIME);
        }
        if config.get_keepalives_idle() > Duration::from_secs(60) {
            config.keepalives_idle(STATEMENT_TIME);
        }
        let name = name_of(&config);
        // A server on this machine has a certificate that nobody has signed, if any.
        if config.get_ssl_mode() == SslMode::Prefer && config.get_hosts().iter().all(is_local) {
            config.ssl_mode(SslMode::Disable);
        }
        Self::with(config, name, MAX_CONNECTIONS)
    }

    fn with(config: Config, name: String, connections: usize) -> Result<Self, StoreError> {
        let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match config.get_ssl_mode() {
            SslMode::Disable => Manager::from_config(config.clone(), NoTls, settings),
            _ => {
                let tls = tls()
                    .map_err(|_| unreachable(&name, Message::word("the certificates of the system cannot be read")))?;
                Manager::from_config(config.clone(), tls, settings)
            }
        };
        let pool = Pool::builder(manager)
            .max_size(connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(RETRY_TIME))
            .create_timeout(Some(CONNECT_TIME))
            .build()
            .map_err(|_| unreachable(&name, Message::word("no pool of connections can be made")))?;
        Ok(Self { config, pool, name, migrated: OnceCell::new(), migration: Mutex::default() })
    }

    /// The same database, with connections of its own: a connection belongs to the runtime in which it was made.
    pub(crate) fn apart(&self) -> Result<Self, StoreError> {
        Self::with(self.config.clone(), self.name.clone(), APART_CONNECTIONS)
    }

    /// The settings of a connection of its own, beside the pool.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Sends a statement, which must have the same effect when it is sent twice, and returns its rows.
    ///
    /// Errors: those of [`store_error`].
    pub(crate) async fn rows(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        concern: Concern<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.again(concern, async || {
            let client = BusyConnection(Some(self.client().await?));
            let answer = tokio::time::timeout(STATEMENT_TIME, client.get()?.query_typed(sql, parameters)).await;
            let rows = answer.map_err(|_| StatementFailure::TimeUp)?;
            client.ended();
            rows.map_err(StatementFailure::Statement)
        })
        .await
    }

    /// The only row of a statement, as [`Database::rows`].
    pub(crate) async fn row(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        concern: Concern<'_>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, parameters, concern).await?.into_iter().next())
    }

    /// Writes in one transaction: all of it has an effect, or nothing.
    ///
    /// Errors: those of [`store_error`], and those of `write`.
    pub(crate) async fn in_transaction(
        &self,
        concern: Concern<'_>,
        write: &dyn TransactionWrites,
    ) -> Result<(), StoreError> {
        self.again(concern, async || {
            let client = BusyConnection(Some(self.client().await?));
            in_time(client.get()?.batch_execute("BEGIN")).await?;
            write.send(client.get()?).await?;
            in_time(client.get()?.batch_execute("COMMIT")).await?;
            client.ended();
            Ok(())
        })
        .await
    }

    /// The layout that the database has, 0 if it has none yet, and the newest one that this version knows. Changes nothing.
    ///
    /// Errors: those of [`store_error`].
    pub(crate) async fn layouts(&self) -> Result<(u32, u32), StoreError> {
        let found = self.again(Concern::default(), async || {
            let client = BusyConnection(Some(self.pool.get().await.map_err(StatementFailure::Pool)?));
            let found = in_time(schema::layout(client.get()?)).await?;
            client.ended();
            Ok(found)
        });
        Ok((found.await?, schema::newest()))
    }

    /// A connection to a database that has the newest layout.
    async fn client(&self) -> Result<Object, StatementFailure> {
        self.migrated.get_or_try_init(|| self.migrate()).await?;
        self.pool.get().await.map_err(StatementFailure::Pool)
    }

    /// Brings the database to the newest layout, in a task of its own: who waits for it may go away at any moment, and the next one waits
    /// for the same task.
    async fn migrate(&self) -> Result<(), StatementFailure> {
        let mut migration = self.migration.lock().await;
        let task = migration.get_or_insert_with(|| tokio::spawn(migrate(self.pool.clone(), self.name.clone())));
        let migrated = task.await;
        *migration = None;
        // A task that was ended, as by the end of its runtime, has changed nothing.
        migrated.unwrap_or(Err(StatementFailure::TimeUp))
    }

    async fn again<T, F: Future<Output = Result<T, StatementFailure>>>(
        &self,
        concern: Concern<'_>,
        attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        let time = if self.migrated.initialized() { RETRY_TIME } else { FIRST_RETRY_TIME };
        let end = Instant::now() + time;
        let mut pause = PAUSE;
        loop {
            let failure = match attempt().await {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            let is_passing = match &failure {
                StatementFailure::Statement(error) | StatementFailure::Pool(PoolError::Backend(error)) => {
                    is_passing(error)
                }
                StatementFailure::Pool(_) | StatementFailure::TimeUp => true,
                StatementFailure::Store(_) => false,
            };
            if let StatementFailure::Statement(error) = &failure
                && is_undefined(error)
                && let Some(error) = self.overtaken().await
            {
                return Err(error);
            }
            if !is_passing || Instant::now() + pause > end {
                return Err(self.error(failure, concern));
            }
            tracing::debug!(store = %self.name, "the database cannot be reached; trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// The error if a newer release has changed the layout since this process connected: what a statement names may be gone.
    async fn overtaken(&self) -> Option<StoreError> {
        let client = self.pool.get().await.ok()?;
        let (found, known) = (in_time(schema::layout(&client)).await.ok()?, schema::newest());
        (found > known).then(|| StoreError::Newer { store: self.name.clone(), found, known })
    }

    fn error(&self, failure: StatementFailure, concern: Concern<'_>) -> StoreError {
        match failure {
            StatementFailure::Statement(error) | StatementFailure::Pool(PoolError::Backend(error)) => {
                store_error(&self.name, &error, concern)
            }
            StatementFailure::Pool(PoolError::Timeout(_)) => no_answer(&self.name),
            StatementFailure::Pool(_) => unreachable(&self.name, Message::word("no connection can be made")),
            StatementFailure::TimeUp => no_answer(&self.name),
            StatementFailure::Store(error) => error,
        }
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        Host::Unix(_) => true,
    }
}

/// TLS with the certificates that the system trusts.
pub(crate) fn tls() -> Result<MakeRustlsConnect, rustls::Error> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().and_then(
        |builder| {
            use rustls_platform_verifier::BuilderVerifierExt;
            builder.with_platform_verifier()
        },
    )?;
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// `postgres://USER@HOST:PORT/DATABASE`.
fn name_of(config: &Config) -> String {
    let mut name = "postgres://".to_owned();
    if let Some(user) = config.get_user() {
        name.push_str(user);
        name.push('@');
    }
    let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| {
        let host = match host {
            Host::Tcp(host) => host.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        match config.get_ports().get(place).or(config.get_ports().first()) {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    });
    name.push_str(&hosts.collect::<Vec<_>>().join(","));
    if let Some(database) = config.get_dbname() {
        name.push('/');
        name.push_str(database);
    }
    name
}
