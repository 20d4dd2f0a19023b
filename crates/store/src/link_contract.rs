//! The part of the contract of stores that concerns links (docs/talk-page.md).

use async_trait::async_trait;

use crate::error::StoreError;
use crate::link_rows::{LinkRow, LinkTalkRow, TalkOutcome};

/// A store of links. What [`crate::contract::Store`] says of durability and errors holds here as well.
#[async_trait]
pub trait LinkStore: Send + Sync {
    /// Creates a link, whose `talks` are not stored. Returns false, and changes nothing, if there is one with its id or its token.
    async fn create_link(&self, link: &LinkRow) -> Result<bool, StoreError>;

    /// All links, the newest first.
    async fn links(&self) -> Result<Vec<LinkRow>, StoreError>;

    /// The link with the token that has this hash.
    async fn link_of_token(&self, sha256: &str) -> Result<Option<LinkRow>, StoreError>;

    /// Revokes a link, unless it is revoked already. Returns whether it exists.
    async fn revoke_link(&self, link: &str, at: &str) -> Result<bool, StoreError>;

    /// Keeps that a conversation begins, if the link is valid and fewer than `limit` have begun. Of several attempts at the same time, no
    /// more than `limit` succeed. The time at which the link expires is not compared.
    async fn start_talk(&self, talk: &LinkTalkRow, limit: Option<u64>) -> Result<TalkOutcome, StoreError>;

    /// The conversation of this link with this secret.
    async fn talk(&self, link: &str, secret_sha256: &str) -> Result<Option<LinkTalkRow>, StoreError>;

    /// The conversations of a link, sorted by their beginning.
    async fn talks(&self, link: &str) -> Result<Vec<LinkTalkRow>, StoreError>;

    /// Stores that a conversation has started, or that the consent was withdrawn, as the row says. Neither is ever undone.
    async fn update_talk(&self, talk: &LinkTalkRow) -> Result<(), StoreError>;

    /// Deletes the variables of a user. Only for a user whose sessions are deleted.
    async fn forget_user(&self, user: &str) -> Result<(), StoreError>;
}
