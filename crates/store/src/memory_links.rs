//! The links of the in-memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::link_contract::LinkStore;
use crate::link_rows::{LinkRow, LinkTalkRow, TalkOutcome};
use crate::memory::{MemoryStore, lock_mutex};

/// All links of a store, by id, with their conversations, by secret.
#[derive(Debug, Default)]
pub(crate) struct MemoryLinks {
    links: BTreeMap<String, (LinkRow, BTreeMap<String, LinkTalkRow>)>,
}

impl MemoryLinks {
    fn create(&mut self, link: &LinkRow) -> bool {
        let is_known = self.links.values().any(|(row, _)| row.id == link.id || row.token_sha256 == link.token_sha256);
        if !is_known {
            self.links.insert(link.id.clone(), (link.clone(), BTreeMap::new()));
        }
        !is_known
    }

    fn all(&self) -> Vec<LinkRow> {
        let counted = |(row, talks): &(LinkRow, BTreeMap<String, LinkTalkRow>)| LinkRow {
            talks: u64::try_from(talks.len()).unwrap_or(u64::MAX),
            ..row.clone()
        };
        let mut all: Vec<LinkRow> = self.links.values().map(counted).collect();
        all.sort_by(|a, b| (&b.created_at, &a.id).cmp(&(&a.created_at, &b.id)));
        all
    }

    fn revoke(&mut self, link: &str, at: &str) -> bool {
        let Some((row, _)) = self.links.get_mut(link) else { return false };
        row.revoked_at.get_or_insert_with(|| at.to_owned());
        true
    }

    fn start(&mut self, talk: &LinkTalkRow, limit: Option<u64>) -> TalkOutcome {
        let Some((link, talks)) = self.links.get_mut(&talk.link) else { return TalkOutcome::Closed };
        if let Some(earlier) = talks.get(&talk.secret_sha256) {
            return TalkOutcome::Repeated(earlier.clone());
        }
        if link.revoked_at.is_some() {
            return TalkOutcome::Closed;
        }
        if limit.is_some_and(|limit| u64::try_from(talks.len()).is_ok_and(|begun| begun >= limit)) {
            return TalkOutcome::UsedUp;
        }
        talks.insert(talk.secret_sha256.clone(), talk.clone());
        TalkOutcome::Begun
    }

    fn talks(&self, link: &str) -> Vec<LinkTalkRow> {
        let talks = self.links.get(link).map(|(_, talks)| talks.values().cloned().collect());
        let mut talks: Vec<LinkTalkRow> = talks.unwrap_or_default();
        talks.sort_by(|a, b| a.began_at.cmp(&b.began_at));
        talks
    }

    fn update(&mut self, talk: &LinkTalkRow) {
        let talks = self.links.get_mut(&talk.link).map(|(_, talks)| talks);
        let Some(stored) = talks.and_then(|talks| talks.get_mut(&talk.secret_sha256)) else { return };
        stored.is_started |= talk.is_started;
        if stored.withdrawn_at.is_none() {
            stored.withdrawn_at.clone_from(&talk.withdrawn_at);
        }
    }
}

#[async_trait]
impl LinkStore for MemoryStore {
    async fn create_link(&self, link: &LinkRow) -> Result<bool, StoreError> {
        Ok(lock_mutex(&self.state).links.create(link))
    }

    async fn links(&self) -> Result<Vec<LinkRow>, StoreError> {
        Ok(lock_mutex(&self.state).links.all())
    }

    async fn link_of_token(&self, sha256: &str) -> Result<Option<LinkRow>, StoreError> {
        Ok(self.links().await?.into_iter().find(|link| link.token_sha256 == sha256))
    }

    async fn revoke_link(&self, link: &str, at: &str) -> Result<bool, StoreError> {
        Ok(lock_mutex(&self.state).links.revoke(link, at))
    }

    async fn start_talk(&self, talk: &LinkTalkRow, limit: Option<u64>) -> Result<TalkOutcome, StoreError> {
        Ok(lock_mutex(&self.state).links.start(talk, limit))
    }

    async fn talk(&self, link: &str, secret_sha256: &str) -> Result<Option<LinkTalkRow>, StoreError> {
        let found = self.talks(link).await?;
        Ok(found.into_iter().find(|talk| talk.secret_sha256 == secret_sha256))
    }

    async fn talks(&self, link: &str) -> Result<Vec<LinkTalkRow>, StoreError> {
        Ok(lock_mutex(&self.state).links.talks(link))
    }

    async fn update_talk(&self, talk: &LinkTalkRow) -> Result<(), StoreError> {
        lock_mutex(&self.state).links.update(talk);
        Ok(())
    }

    async fn forget_user(&self, user: &str) -> Result<(), StoreError> {
        lock_mutex(&self.state).users.remove(user);
        Ok(())
    }
}
