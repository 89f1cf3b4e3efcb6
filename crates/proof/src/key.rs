//! Ed25519 keys: what signs, what verifies, and the forms in which they are stored and shown.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use crate::canonical::sha256;

/// What an Ed25519 key begins with as a SubjectPublicKeyInfo (RFC 8410).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the system gives no randomness for a key")]
    NoRandomness,
    #[error("it is no Ed25519 key in PKCS#8")]
    NotPrivate,
    #[error("it holds no Ed25519 public key: expected `{BEGIN}`")]
    NotPublic,
}

/// The name of a key: the SHA-256 of its public part as a SubjectPublicKeyInfo in DER.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    /// The name of a key as a file has it.
    pub fn named(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As much of it as people compare.
    pub fn short(&self) -> String {
        self.0.chars().take(16).collect()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What verifies signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// All keys of a text with PEM blocks; what is around them does not count.
    pub fn read_all(text: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        let mut rest = text;
        while let Some((_, block)) = rest.split_once(BEGIN) {
            let (base64, after) = block.split_once(END).ok_or(KeyError::NotPublic)?;
            keys.push(Self::from_base64(base64)?);
            rest = after;
        }
        if keys.is_empty() { Err(KeyError::NotPublic) } else { Ok(keys) }
    }

    fn from_base64(text: &str) -> Result<Self, KeyError> {
        let text: String = text.split_whitespace().collect();
        let der = STANDARD.decode(text).map_err(|_| KeyError::NotPublic)?;
        let raw = der.strip_prefix(&SPKI).ok_or(KeyError::NotPublic)?;
        raw.try_into().map(Self).map_err(|_| KeyError::NotPublic)
    }

    fn der(&self) -> Vec<u8> {
        [SPKI.as_slice(), &self.0].concat()
    }

    /// As other programs read it.
    pub fn pem(&self) -> String {
        format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(self.der()))
    }

    pub fn id(&self) -> KeyId {
        KeyId(sha256(&self.der()))
    }

    /// Whether the holder of the private part signed this message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }
}

/// What signs. It cannot be printed.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key, and the form of it to store: PKCS#8 in DER.
    pub fn generate() -> Result<(Self, Vec<u8>), KeyError> {
        let stored =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::NoRandomness)?;
        Ok((Self::read(stored.as_ref())?, stored.as_ref().to_vec()))
    }

    /// A key as it was stored.
    pub fn read(stored: &[u8]) -> Result<Self, KeyError> {
        Ed25519KeyPair::from_pkcs8(stored).map(Self).map_err(|_| KeyError::NotPrivate)
    }

    pub fn public(&self) -> Result<PublicKey, KeyError> {
        self.0.public_key().as_ref().try_into().map(PublicKey).map_err(|_| KeyError::NotPrivate)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_stored_and_its_shown_form() {
        let (key, stored) = SigningKey::generate().unwrap();
        let public = key.public().unwrap();
        assert_eq!(SigningKey::read(&stored).unwrap().public().unwrap(), public);
        let text = format!("key {}\n{}and another:\n{}", public.id(), public.pem(), public.pem());
        assert_eq!(PublicKey::read_all(&text).unwrap(), [public, public]);
        assert!(public.verifies(b"m", &key.sign(b"m")));
        assert!(!public.verifies(b"n", &key.sign(b"m")));
    }

    /// The key of RFC 8410, section 10.1; its id is what `openssl pkey -pubin -outform DER | sha256sum` prints.
    #[test]
    fn a_key_of_another_program_is_read_and_has_the_id_that_anybody_can_compute() {
        let pem = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
        let key = PublicKey::read_all(pem).unwrap()[0];
        assert_eq!(key.pem(), pem);
        assert_eq!(key.id().as_str(), "a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let broken = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----";
        for text in ["", "ssh-ed25519 AAAA", BEGIN, broken] {
            assert_eq!(PublicKey::read_all(text), Err(KeyError::NotPublic), "{text}");
        }
        assert!(matches!(SigningKey::read(b"no key"), Err(KeyError::NotPrivate)));
    }
}
