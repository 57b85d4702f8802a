//! The key that a worker shows its server. A command that found it must not be able to show it to whoever reads its log.

use std::sync::Arc;

use crate::mask::Mask;

/// The key of a worker. It is masked in everything that is recorded of its commands.
#[derive(Clone)]
pub struct OwnKey {
    text: Arc<str>,
    mask: Option<Arc<Mask>>,
}

impl OwnKey {
    /// The key with this text.
    pub fn new(text: &str) -> Self {
        // A key that is too large to be masked is too large for the header that carries it.
        Self { text: text.into(), mask: Mask::new(&[text]).ok().flatten() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The mask of the key alone.
    pub(crate) fn mask(&self) -> Option<Arc<Mask>> {
        self.mask.clone()
    }
}

impl std::fmt::Debug for OwnKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnKey")
    }
}
