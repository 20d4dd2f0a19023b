//! The leases of a process: it runs a session as long as the database says so.
//!
//! A process extends all its leases at once, with its row in `process`. If it cannot for [`LEASE_TIME`], another one may take its
//! sessions, and it counts them as lost itself; the database rejects what it would still commit. A process that waits for a session marks
//! its lease as wanted, and its owner gives it up as soon as the session rests ([`crate::postgres::lease_requests`]). A notification makes that quick; where none arrives, as
//! behind some poolers, marks are looked for.
//!
//! All of this is done by a thread of its own, with its own connections: a process that is busy, or that ends, keeps and releases its
//! leases all the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, oneshot};
use tokio::time::Instant;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

use crate::contract::{LockNotice, LockReply, LockRequest, SessionLock};
use crate::error::StoreError;
use crate::lock_signals::LockSignals;
use crate::postgres::client::{Database, tls};
use crate::postgres::error::{Concern, no_thread};
use crate::postgres::lease_requests::{self, CHANNEL, WantedLease};
use crate::postgres::read;
use crate::postgres::schema::if_known;
use crate::postgres::text::TextParameter;
use crate::postgres::write::random_number;

/// How long the leases of a process last without renewal.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(12);

/// How often they are renewed.
const RENEWAL: Duration = Duration::from_secs(3);

/// How much of its leases a process has left at least that lives: it renews them in time, or a second later.
pub(crate) const MIN_LEFT: Duration = LEASE_TIME.saturating_sub(RENEWAL).saturating_sub(Duration::from_secs(1));

/// How often a process looks for leases that others want.
const LOOK: Duration = Duration::from_millis(250);

/// How long what is done between two renewals may take, so that these are not late: to release leases, and to remove what others have left.
const SIDE_TIME: Duration = Duration::from_secs(1);

/// The maximum number of leases that are released with one statement.
const MAX_RELEASES: usize = 1_000;

/// How long a process that ends tries to release its leases. If it cannot, they expire.
const END_TIME: Duration = Duration::from_secs(2);

/// How long to wait before listening again after the connection was lost.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);

/// How many renewals there are between two removals of what others have left.
const RENEWALS_PER_REMOVAL: u64 = 100;

/// A lease that this process has, or that it has lost while somebody still holds it.
struct HeldLease {
    token: i64,
    holder: String,
    signals: Arc<LockSignals>,
    is_lost: bool,
}

/// What the threads share.
struct Shared {
    /// The number of the process.
    process: i64,
    /// Whether it runs one session, and keeps it when another process asks for it.
    runs_one: bool,
    /// The leases that it has, by session. A lost one stays until its holder drops it: what the holder would still commit names its token,
    /// and is rejected.
    held: Mutex<HashMap<String, HeldLease>>,
}

/// A lease to release.
struct Release {
    key: Vec<u8>,
    token: i64,
}

/// The thread that keeps the leases.
struct Keeper {
    releases: UnboundedSender<Release>,
    /// Dropped when the store is closed. A lease may still exist then.
    open: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The leases of a process.
pub(crate) struct Leases {
    database: Arc<Database>,
    shared: Arc<Shared>,
    /// Started with the first lease.
    keeper: OnceCell<Keeper>,
}

/// The lease of one session. When it is dropped, the lease is released.
struct Lease {
    shared: Arc<Shared>,
    releases: UnboundedSender<Release>,
    id: String,
    key: Vec<u8>,
    token: i64,
    signals: Arc<LockSignals>,
}

#[async_trait]
impl SessionLock for Lease {
    async fn notice(&self) -> LockNotice {
        self.signals.notice().await
    }

    async fn interrupted(&self) {
        self.signals.interrupted().await;
    }

    fn set_busy(&self, is_busy: bool) {
        self.signals.set_busy(is_busy);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut held = self.shared.held();
        if held.get(&self.id).is_some_and(|lease| lease.token == self.token) {
            held.remove(&self.id);
        }
        drop(held);
        // Without a keeper, the store is closed, and all leases are released.
        let _ = self.releases.send(Release { key: std::mem::take(&mut self.key), token: self.token });
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, HashMap<String, HeldLease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends all leases. If they had expired, they are lost.
    async fn renew(&self, database: &Database) -> Result<(), StoreError> {
        let time = LEASE_TIME.as_secs_f64();
        let sql =
            "WITH before AS (SELECT expires_at < clock_timestamp() AS is_expired FROM bcc_script.process WHERE id = $1)
            INSERT INTO bcc_script.process (id, expires_at, runs_one)
            VALUES ($1, clock_timestamp() + make_interval(secs => $2), $3)
            ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
            RETURNING coalesce((SELECT is_expired FROM before), false)";
        let parameters =
            &[(&self.process as _, Type::INT8), (&time as _, Type::FLOAT8), (&self.runs_one as _, Type::BOOL)];
        let row = database.row(sql, parameters, Concern::default()).await?;
        if row.is_some_and(|row| row.try_get(0).is_ok_and(|is_expired| is_expired)) {
            self.lose_all();
        }
        Ok(())
    }

    /// Tells the holders of leases what others ask. Returns the leases that have no holder any more.
    async fn look(&self, database: &Database) -> Result<Vec<Release>, StoreError> {
        let mut left = vec![];
        for wanted in WantedLease::of(database, self.process).await? {
            let held =
                self.held().get(&wanted.session).filter(|lease| !lease.is_lost).map(|lease| Arc::clone(&lease.signals));
            match held {
                Some(signals) => wanted.tell(&signals, database).await?,
                None => left.push(Release { key: wanted.key, token: wanted.token }),
            }
        }
        Ok(left)
    }

    /// Counts all leases as lost: others may have taken them.
    fn lose_all(&self) {
        for lease in self.held().values_mut() {
            lease.is_lost = true;
            lease.signals.lose();
        }
    }
}

impl Leases {
    /// The leases of a new process. One that runs one session keeps it when another process asks for it.
    pub(crate) fn new(database: Arc<Database>, runs_one: bool) -> Self {
        let shared = Arc::new(Shared { process: random_number(), runs_one, held: Mutex::default() });
        Self { database, shared, keeper: OnceCell::new() }
    }

    /// The token of the lease of a session, if this process has it, or has lost it and still holds it.
    pub(crate) fn token(&self, id: &str) -> Option<i64> {
        self.shared.held().get(id).map(|lease| lease.token)
    }

    /// Takes the lease of a session.
    ///
    /// Errors: [`StoreError::Held`].
    pub(crate) async fn take(&self, key: &[u8], id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError> {
        let keeper = self.keeper.get_or_try_init(|| self.start()).await?;
        // In this process, the first one gets it.
        let lease = match self.shared.held().entry(id.to_owned()) {
            Entry::Occupied(held) => return Err(self.is_held(id, &held.get().holder)),
            Entry::Vacant(place) => {
                let (token, signals) = (random_number(), Arc::<LockSignals>::default());
                let (holder, signals_of) = (holder.to_owned(), Arc::clone(&signals));
                place.insert(HeldLease { token, holder, signals: signals_of, is_lost: false });
                let (shared, releases) = (Arc::clone(&self.shared), keeper.releases.clone());
                Lease { shared, releases, id: id.to_owned(), key: key.to_vec(), token, signals }
            }
        };
        let sql = &if_known("SELECT is_taken, holder FROM bcc_script.take_lease($1, $2, $3, $4, $5)");
        let parameters = &[
            (&key as _, Type::BYTEA),
            (&TextParameter(id) as _, Type::TEXT),
            (&self.shared.process as _, Type::INT8),
            (&lease.token as _, Type::INT8),
            (&TextParameter(holder) as _, Type::TEXT),
        ];
        let row = self.database.row(sql, parameters, Concern { session: id, ..Concern::default() }).await?;
        if row.as_ref().is_some_and(|row| row.try_get(0).is_ok_and(|is_taken| is_taken)) {
            return Ok(Arc::new(lease));
        }
        let holder = row.and_then(|row| read::optional_text(&row, 1).ok().flatten());
        Err(self.is_held(id, holder.as_deref().unwrap_or("another process")))
    }

    fn is_held(&self, id: &str, holder: &str) -> StoreError {
        StoreError::Held { store: self.database.name.clone(), id: id.to_owned(), holder: holder.to_owned() }
    }

    /// Asks the process that has the lease of a session for it.
    pub(crate) async fn ask_for(&self, key: &[u8], request: LockRequest) -> Result<LockReply, StoreError> {
        lease_requests::ask(&self.database, key, request).await
    }

    /// Registers the process, and starts the thread that keeps its leases.
    async fn start(&self) -> Result<Keeper, StoreError> {
        self.shared.renew(&self.database).await?;
        let failed = || no_thread(&self.database.name);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|_| failed())?;
        let ((releases, received), (open, closed)) = (unbounded_channel(), oneshot::channel());
        let keeping = Keeping { shared: Arc::clone(&self.shared), database: self.database.apart()? };
        let thread = std::thread::Builder::new().name("leases".to_owned());
        let thread = thread.spawn(move || runtime.block_on(keeping.run(received, closed))).map_err(|_| failed())?;
        Ok(Keeper { releases, open: Some(open), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps the leases of sessions has panicked");
        }
    }
}

/// What the thread has.
struct Keeping {
    shared: Arc<Shared>,
    database: Database,
}

impl Keeping {
    /// Renews the leases, releases them, and looks for those that others want, until the store is closed.
    async fn run(self, mut releases: UnboundedReceiver<Release>, mut closed: oneshot::Receiver<()>) {
        let mut listener = Listener::default();
        let (mut renewed, mut next_renewal, mut renewals) = (Instant::now(), Instant::now() + RENEWAL, 0_u64);
        let (mut next_look, mut to_release) = (Instant::now() + LOOK, vec![]);
        loop {
            tokio::select! {
                biased;
                _ = &mut closed => break,
                // Before the others, so that many of them do not delay a renewal.
                () = tokio::time::sleep_until(next_look.min(next_renewal)) => {
                    if Instant::now() >= next_renewal {
                        let moment = self.renew().await;
                        next_renewal = Instant::now() + RENEWAL;
                        if let Some(moment) = moment {
                            renewed = moment;
                            renewals += 1;
                            if renewals % RENEWALS_PER_REMOVAL == 1 {
                                self.remove_expired().await;
                            }
                        }
                    }
                    if renewed.elapsed() >= LEASE_TIME {
                        self.shared.lose_all();
                    }
                    self.look().await;
                    next_look = Instant::now() + LOOK;
                }
                1.. = releases.recv_many(&mut to_release, MAX_RELEASES) => {
                    self.release(&to_release).await;
                    to_release.clear();
                }
                () = listener.wait(&self.database, self.shared.process) => self.look().await,
            }
        }
        let _ = tokio::time::timeout(END_TIME, self.end()).await;
    }

    /// Returns when the leases were renewed, by the clock of this process: not later than by that of the database.
    async fn renew(&self) -> Option<Instant> {
        let began = Instant::now();
        match tokio::time::timeout(RENEWAL, self.shared.renew(&self.database)).await {
            Ok(Ok(())) => return Some(began),
            Ok(Err(error)) => tracing::warn!(%error, "the leases of sessions were not renewed"),
            Err(_) => tracing::warn!("the database does not answer: the leases of sessions were not renewed"),
        }
        None
    }

    async fn look(&self) {
        match tokio::time::timeout(RENEWAL, self.shared.look(&self.database)).await {
            Ok(Ok(left)) if left.is_empty() => {}
            Ok(Ok(left)) => self.release(&left).await,
            Ok(Err(error)) => tracing::debug!(%error, "wanted leases were not looked for"),
            Err(_) => tracing::debug!("the database does not answer: wanted leases were not looked for"),
        }
    }

    async fn release(&self, leases: &[Release]) {
        let sql = "DELETE FROM bcc_script.lease AS l USING unnest($1, $2) AS x(session, token)
            WHERE l.session_sha256 = x.session AND l.token = x.token";
        let sessions: Vec<&[u8]> = leases.iter().map(|lease| lease.key.as_slice()).collect();
        let tokens: Vec<i64> = leases.iter().map(|lease| lease.token).collect();
        let parameters = &[(&sessions as _, Type::BYTEA_ARRAY), (&tokens as _, Type::INT8_ARRAY)];
        let released = self.database.rows(sql, parameters, Concern::default());
        // One that is not released stays with this process, which can take it again at any time.
        match tokio::time::timeout(SIDE_TIME, released).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "leases were not released"),
            Err(_) => tracing::debug!("the database does not answer: leases were not released"),
        }
    }

    /// Removes processes that have long expired, with the leases that nobody took over.
    async fn remove_expired(&self) {
        let sql = "WITH expired AS (
                DELETE FROM bcc_script.process WHERE expires_at < clock_timestamp() - interval '1 hour' RETURNING id
            ) DELETE FROM bcc_script.lease WHERE process IN (SELECT id FROM expired)";
        match tokio::time::timeout(SIDE_TIME, self.database.rows(sql, &[], Concern::default())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "expired leases were not removed"),
            Err(_) => tracing::debug!("the database does not answer: expired leases were not removed"),
        }
    }

    /// The process has no leases any more.
    async fn end(&self) {
        let sql = "WITH ended AS (DELETE FROM bcc_script.process WHERE id = $1)
            DELETE FROM bcc_script.lease WHERE process = $1";
        if let Err(error) = self.database.rows(sql, &[(&self.shared.process, Type::INT8)], Concern::default()).await {
            tracing::debug!(%error, "the leases were not released; they expire");
        }
    }
}

/// Hears when another process wants a lease of this one.
#[derive(Default)]
struct Listener {
    connection: Option<Listening>,
    attempt: Option<tokio::task::JoinHandle<Option<Listening>>>,
    next_attempt: Option<Instant>,
}

/// A connection that listens, and the payloads that arrive.
struct Listening {
    _client: Client,
    payloads: UnboundedReceiver<String>,
}

impl Listener {
    /// Returns when another process wants something. May be called again at any time.
    async fn wait(&mut self, database: &Database, process: i64) {
        let process = process.to_string();
        loop {
            let Some(listening) = &mut self.connection else {
                if let Some(next) = self.next_attempt {
                    tokio::time::sleep_until(next).await;
                }
                let attempt = self.attempt.get_or_insert_with(|| tokio::spawn(connect(database.config().clone())));
                self.connection = attempt.await.ok().flatten();
                self.attempt = None;
                self.next_attempt = Some(Instant::now() + LISTEN_PAUSE);
                continue;
            };
            match listening.payloads.recv().await {
                Some(payload) if payload == process => return,
                Some(_) => {}
                None => self.connection = None,
            }
        }
    }
}

/// A connection that listens. None if there is none: notifications are a shortcut.
async fn connect(config: Config) -> Option<Listening> {
    match config.get_ssl_mode() {
        SslMode::Disable => listen(config.connect(NoTls).await.ok()?).await,
        _ => listen(config.connect(tls().ok()?).await.ok()?).await,
    }
}

/// Listens on a new connection.
async fn listen<S, T>((client, mut connection): (Client, Connection<S, T>)) -> Option<Listening>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (heard, payloads) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message
                && heard.send(notification.payload().to_owned()).is_err()
            {
                return;
            }
        }
    });
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await.ok()?;
    Some(Listening { _client: client, payloads })
}
