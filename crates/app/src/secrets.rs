//! The secrets that this process has come across. They are hidden in everything that it shows or stores as a title.

use std::sync::{Arc, Mutex, PoisonError};

use towline_mask::{Mask, Secrets};

/// A handle on the known secrets; its copies share them.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    secrets: Secrets,
    /// Made when there is something to hide it in.
    mask: Option<Arc<Mask>>,
}

impl KnownSecrets {
    /// Hides these from now on, too.
    pub fn add(&self, secrets: &Secrets) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.secrets.extend(secrets);
        known.mask = None;
    }

    /// What hides all of them.
    pub fn mask(&self) -> Arc<Mask> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { secrets, mask } = &mut *known;
        Arc::clone(mask.get_or_insert_with(|| Arc::new(Mask::new(secrets))))
    }
}
