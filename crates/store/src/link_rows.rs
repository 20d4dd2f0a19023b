//! The rows of links, by which people begin conversations. JSON is passed as text and not parsed here; times come from the caller, as in
//! [`crate::rows`].

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRow {
    /// Its id, by which its owner names it.
    pub id: String,
    /// The hash of its token, in hexadecimal digits. The token itself is stored nowhere.
    pub token_sha256: String,
    pub created_at: String,
    /// After this time, no conversation begins; none if it never expires.
    pub expires_at: Option<String>,
    /// When it was revoked; none while it is valid.
    pub revoked_at: Option<String>,
    /// What begins by it, as JSON.
    pub body: String,
    /// How many conversations have begun. Counted when it is read.
    pub talks: u64,
}

/// A conversation that began by a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTalkRow {
    /// The id of the link.
    pub link: String,
    /// The hash of the secret with which the person comes back, in hexadecimal digits.
    pub secret_sha256: String,
    /// The session, which need not exist yet.
    pub session: String,
    pub began_at: String,
    /// What the person agreed to, as JSON; none if nothing was asked.
    pub consent: Option<String>,
    /// Whether the session was created. Then one that is missing was deleted.
    pub is_started: bool,
    /// When the person withdrew the consent.
    pub withdrawn_at: Option<String>,
}

/// What happened to the attempt to begin a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TalkOutcome {
    Begun,
    /// It had begun before, with the same secret; nothing has changed.
    Repeated(LinkTalkRow),
    /// As many conversations have begun as the link permits.
    UsedUp,
    /// There is no such link, or it is revoked.
    Closed,
}
