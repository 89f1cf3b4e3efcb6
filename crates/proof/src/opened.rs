//! Opens an envelope: who signed it, and what it states.

use crate::envelope::{Envelope, EnvelopeError, PAYLOAD_TYPE};
use crate::key::{KeyId, PublicKey};
use crate::statement::{Statement, StatementError};

/// A statement, and what its envelope's signature is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    pub statement: Statement,
    pub signer: Signer,
}

/// Who signed an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// One of the keys that are trusted.
    Trusted(KeyId),
    /// The key that the statement itself names, which is not trusted. Nothing was changed since it signed.
    Unknown(KeyId),
    /// Nobody: the signature does not fit the envelope.
    Nobody(KeyId),
}

/// Why there is no statement in an envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    #[error("it holds `{0}`, not `{PAYLOAD_TYPE}`")]
    OtherPayload(String),
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// Opens an envelope. The statement of one that nobody trusted has signed may state anything.
pub fn open(bytes: &[u8], trusted: &[PublicKey]) -> Result<Opened, NotOpened> {
    let envelope = Envelope::read(bytes)?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(NotOpened::OtherPayload(envelope.payload_type));
    }
    let statement = Statement::read(&envelope.payload)?;
    let signer = signer(&envelope, &statement, trusted);
    Ok(Opened { statement, signer })
}

fn signer(envelope: &Envelope, statement: &Statement, trusted: &[PublicKey]) -> Signer {
    let signed_with = |keys: &[PublicKey]| {
        let mut signatures = envelope.signatures.iter();
        let fits = |key: &&PublicKey, signature| envelope.is_signed_by(key, signature);
        signatures.find_map(|signature| {
            let mut named = keys.iter().filter(|key| key.id() == signature.key);
            named.find(|key| fits(key, signature)).map(PublicKey::id)
        })
    };
    if let Some(key) = signed_with(trusted) {
        return Signer::Trusted(key);
    }
    let named = &statement.predicate.towline.signer;
    let own = PublicKey::read_all(&named.public_key).unwrap_or_default();
    let own: Vec<PublicKey> = own.into_iter().filter(|key| key.id() == named.keyid).collect();
    match signed_with(&own) {
        Some(key) => Signer::Unknown(key),
        None => {
            let claimed = envelope.signatures.first().map(|signature| signature.key.clone());
            Signer::Nobody(claimed.unwrap_or_else(|| named.keyid.clone()))
        }
    }
}
